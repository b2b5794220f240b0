"""What the failures of the programs look like: the few texts by which a limit, a login or a refusal is known. Pure."""

from __future__ import annotations

import re
from typing import Final

from memorize.consolidate.port import Kind
from memorize.patterns import late

# A text of the service is short; an answer that merely speaks of limits is not, and begins with its JSON.
_NOTICE_CHARS_MAX: Final = 400
_LIMIT: Final = late(
    r"\b429\b|rate.?limit|too many requests|\boverloaded\b|\b529\b|quota (?:has been )?exceeded|insufficient_quota"
    r"|(?:usage|session|weekly|5-hour|opus|spending) limit|(?:hit|reached|exceeded) (?:your|the) (?:\w+ ){0,2}limit"
    r"|out of (?:credits|extra usage)|credit balance is too low",
    re.IGNORECASE,
)
_LOGIN: Final = late(
    r"\b401\b|not logged in|please (?:run )?/?log ?in|run `?codex login|invalid (?:api key|bearer token|authentication)"
    r"|authentication_error|unauthori[sz]ed|oauth token (?:has )?(?:expired|revoked)|token_expired"
    r"|missing environment variable|incorrect api key|refresh token",
    re.IGNORECASE,
)
_REFUSED: Final = late(
    r"violat\w+ (?:our|the|its) (?:usage )?polic|usage polic(?:y|ies)|content.?(?:policy|filter)|safety (?:stop|system)"
    r"|\brefus(?:al|ed to answer)\b|invalid_prompt",
    re.IGNORECASE,
)


def kind_of(text: str) -> Kind | None:
    """Return what a program's message of failure means; None when nothing of this is in it."""
    if _LIMIT.search(text):
        return "rate-limited"
    if _LOGIN.search(text):
        return "not-logged-in"
    return "refused" if _REFUSED.search(text) else None


def notice_of(answer: str) -> Kind | None:
    """Return what a supposed answer means that is a notice of the service instead (some versions print it as one)."""
    if len(answer) > _NOTICE_CHARS_MAX or "{" in answer or "[" in answer:
        return None
    found = kind_of(answer)
    return found if found in ("rate-limited", "not-logged-in") else None


def last_line(raw: bytes) -> str:
    """Return the last line of what a program printed that says something."""
    lines = [line.strip() for line in raw.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
