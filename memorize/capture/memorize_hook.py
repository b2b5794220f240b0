"""The hook program. Setup copies it to ``<home>/hook/``; importing it has no side effects."""

_HEX = "0123456789abcdef"
_WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."
WORD_CHARS_MAX = 32


def _is(text: str, allowed: str, least: int, most: int) -> bool:
    return least <= len(text) <= most and not text.strip(allowed)


def spool_name(mono: int, nonce: bytes, length: int, crc: int, agent: str, event: str, cut: bool = False) -> str:
    """Return the name of a spool file: monotonic ns, nonce, length and crc32 of its bytes, agent, event, cut mark.

    ``agent`` and ``event`` are 1 to 32 of ``A-Z a-z 0-9 _ .``; ``ValueError`` for anything else.
    """
    if not (_is(agent, _WORD, 1, WORD_CHARS_MAX) and _is(event, _WORD, 1, WORD_CHARS_MAX) and len(nonce) == 16):
        raise ValueError
    return f"{mono:016x}-{nonce.hex()}-{length:x}-{crc:08x}-{agent}-{event}{'-cut' if cut else ''}"


def parse_name(name: str) -> "tuple[int, bytes, int, int, str, str, bool] | None":
    """Return (mono, nonce, length, crc, agent, event, cut), or None for a name that ``spool_name`` never gives."""
    parts = name.split("-")
    cut = len(parts) == 7 and parts[6] == "cut"
    if len(parts) != 6 + cut:
        return None
    mono, nonce, length, crc, agent, event = parts[:6]
    if not (_is(mono, _HEX, 16, 16) and _is(nonce, _HEX, 32, 32) and _is(crc, _HEX, 8, 8) and _is(length, _HEX, 1, 16)):
        return None
    if not (_is(agent, _WORD, 1, WORD_CHARS_MAX) and _is(event, _WORD, 1, WORD_CHARS_MAX)):
        return None
    if length != "0" and length[0] == "0":
        return None
    return int(mono, 16), bytes.fromhex(nonce), int(length, 16), int(crc, 16), agent, event, cut
