"""How far a transcript has been read, and what of it a window reads next (DESIGN 8.1).

A transcript is a file of somebody else's: it grows, is cut, moved, copied into the file of a fork, or gone. So a claim
keeps where it ended and a hash of the bytes before that place; when they differ, a new generation of the file begins
at its start. What was read is known by the messages themselves: every line has a mark, made of the agent and the id of
the message, that stands among the sources of the claim as if it were an observation. Two claims that share a line thus
exclude each other wherever they were made, and nothing is read twice, however often a message is copied.

Pure but for the port that reads bytes; memory is bounded by the size of a block and of a line, not by that of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from blake3 import blake3

from memorize.consolidate.windows import Piece, Source, Spoken

BLOCK_BYTES: Final = 1024 * 1024
# A line that is longer than this is left out (a picture, a whole file).
LINE_BYTES_MAX: Final = 8 * 1024 * 1024
TAIL_BYTES: Final = 256
# What one window takes of a transcript. A model reads it in a few calls, and a claim names every line.
PIECE_CHARS_MAX: Final = 200_000
PIECE_LINES_MAX: Final = 1_000

_MARK_CONTEXT: Final = "memorize 2026 transcript line v1"
_TAIL_CONTEXT: Final = "memorize 2026 transcript tail v1"

# Bytes of the file from an offset, at most so many; fewer only at the end of the file.
Read = Callable[[int, int], bytes]


class Line(Spoken, Protocol):
    """A line of a transcript as a reader gives it; ``end`` is the offset of the byte behind it."""

    @property
    def end(self) -> int: ...  # noqa: D102 - told above


Parse = Callable[[bytes, int], Sequence[Any]]
# Of these marks, those that an accepted claim names.
Claimed = Callable[[Sequence[bytes]], Collection[bytes]]


class Slice(NamedTuple):
    """What of a transcript is to be read: whole lines from ``start`` to ``end``.

    ``fresh`` when the file is not the one that was read before, so that its lines may be known already.
    """

    generation: int
    start: int
    end: int
    tail_hash: str
    fresh: bool


def mark(agent: str, line_id: str) -> bytes:
    """Return the 32 bytes by which claims name a line, in whatever file it stands."""
    raw = f"{len(agent)} {agent}{line_id}".encode("utf-8", "surrogatepass")
    return blake3(raw, derive_key_context=_MARK_CONTEXT).digest()


def tail_hash(tail: bytes) -> str:
    """Return 32 hex digits for the last bytes before the place where a reading ended."""
    return blake3(tail[-TAIL_BYTES:], derive_key_context=_TAIL_CONTEXT).hexdigest(16)


def source_of(agent: str, session: str, said: object) -> Source | None:
    """Return what a claim says of a transcript (its field ``transcript``), None when it says nothing."""
    if not isinstance(said, Mapping):
        return None
    generation, start, end = (said.get(name) for name in ("generation", "from", "to"))
    tail, part = said.get("tail"), said.get("part", "")
    if type(generation) is not int or type(start) is not int or type(end) is not int:
        return None
    if not (isinstance(tail, str) and isinstance(part, str) and generation >= 0 and 0 <= start <= end):
        return None
    return Source(agent, session, generation, start, end, tail, part)


def advance(claimed: Iterable[Source], size: int, read: Read) -> Slice | None:
    """Return what is new in a transcript of ``size`` bytes; None when there is no whole line more.

    ``claimed`` are the sources of accepted claims about this very transcript. Nothing is skipped between them: the
    reading goes on where they cover the file without a gap.
    """
    covered = _covered(claimed)
    generation, start, tail = covered if covered is not None else (0, 0, "")
    fresh = covered is None
    if start and (size < start or tail_hash(read(max(0, start - TAIL_BYTES), min(start, TAIL_BYTES))) != tail):
        generation, start, fresh = generation + 1, 0, True
    end = _last_line_end(start, size, read)
    if end <= start:
        return None
    return Slice(generation, start, end, tail_hash(read(max(0, end - TAIL_BYTES), min(end, TAIL_BYTES))), fresh)


def _covered(claimed: Iterable[Source]) -> tuple[int, int, str] | None:
    """Return the last generation, how far it is covered from its start, and the hash at that place."""
    known = sorted(claimed, key=lambda source: (source.generation, source.start, source.end))
    if not known:
        return None
    latest = known[-1].generation
    reached, tail = 0, ""
    for source in known:
        if source.generation == latest and source.start <= reached < source.end:
            reached, tail = source.end, source.tail_hash
    return latest, reached, tail


def _last_line_end(start: int, size: int, read: Read) -> int:
    """Return the offset behind the last line end between ``start`` and ``size``, ``start`` when there is none."""
    place = size
    while place > start:
        begin = max(start, place - BLOCK_BYTES)
        found = read(begin, place - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        place = begin
    return start


def chunks(start: int, end: int, read: Read) -> Iterator[tuple[bytes, int]]:
    """Yield the whole lines of a range in pieces of about ``BLOCK_BYTES``, each with its offset.

    A line that is longer than ``LINE_BYTES_MAX`` is left out. Stops where the file turns out to be shorter.
    """
    held, place, skipping = b"", start, False
    while place < end:
        block = read(place, min(BLOCK_BYTES, end - place))
        if not block:
            return
        first = place - len(held)
        place += len(block)
        if skipping:
            cut = block.find(b"\n") + 1
            if not cut:
                continue
            block, first, skipping = block[cut:], place - len(block) + cut, False
        held += block
        cut = held.rfind(b"\n") + 1
        if cut:
            yield held[:cut], first
            held = held[cut:]
        if len(held) > LINE_BYTES_MAX:
            held, skipping = b"", True


def pieces(
    agent: str, session: str, part: str, found: Slice, read: Read, parse: Parse, claimed: Claimed
) -> Iterator[Piece]:
    """Yield what windows read of a slice, in order: lines that no claim names, and the range that they stand for.

    Lines that are known already only move the range on. The last range ends where the slice does; when nothing at all
    is new, there is no piece.
    """
    start, chars = found.start, 0
    lines: list[Any] = []
    seen: set[bytes] = set()
    for chunk, offset in chunks(found.start, found.end, read):
        parsed = parse(chunk, offset)
        marks = [mark(agent, line.id) for line in parsed]
        known = set(claimed(marks))
        for line, name in zip(parsed, marks, strict=True):
            if name in known or name in seen:
                continue
            # A piece ends between two lines of the file; messages that share a line stay together.
            full = len(lines) >= PIECE_LINES_MAX or chars >= PIECE_CHARS_MAX
            if full and lines[-1].end < line.end:
                end = lines[-1].end
                yield _piece(agent, session, part, found, start, end, read, lines)
                start, chars, lines = end, 0, []
            lines.append(_of_part(line) if part else line)
            seen.add(name)
            chars += len(line.text)
    if lines:
        yield _piece(agent, session, part, found, start, found.end, read, lines)


def _piece(
    agent: str, session: str, part: str, found: Slice, start: int, end: int, read: Read, lines: Sequence[Any]
) -> Piece:
    tail = found.tail_hash
    if end != found.end:
        tail = tail_hash(read(max(0, end - TAIL_BYTES), min(end, TAIL_BYTES)))
    source = Source(agent, session, found.generation, start, end, tail, part)
    return Piece(source, tuple(lines), tuple(mark(agent, line.id) for line in lines))


def _of_part(line: Any) -> Any:
    """Return a line of a subagent's transcript: nobody but the agent spoke to it."""
    return line._replace(role="assistant", trust="agent") if line.role == "user" else line
