"""The door to a model: one question, one answer, and the ways in which it can fail.

Everything that asks a model goes through ``Model``, so that what decides (prompt, reader, judge) needs no process and
no network to be tested, and so that one meter sees every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol

Purpose = Literal["extract", "judge", "audit"]
Kind = Literal[
    "timeout", "exit", "missing", "not-logged-in", "refused", "rate-limited", "empty", "garbled", "too-large"
]
# Failures that say something of the program or its service, not of what was asked: the next question fails as well.
OF_THE_SERVICE: Final[frozenset[Kind]] = frozenset({"timeout", "exit", "missing", "not-logged-in", "rate-limited"})
_DETAIL_CHARS: Final = 300


class Request(NamedTuple):
    """One question. ``schema`` is a JSON schema for the answer; ``model`` None leaves the choice to the program."""

    system: str
    prompt: str
    schema: Mapping[str, Any] | None
    purpose: Purpose
    deadline_s: float
    model: str | None = None


class Reply(NamedTuple):
    """The answer's text and what it cost: tokens (0: not told), millionths of a US dollar (None: not told)."""

    text: str
    tokens_in: int
    tokens_out: int
    cost_usd_micro: int | None
    model: str
    seconds: float


class ModelFailed(Exception):  # noqa: N818 - called for what happened
    """A question got no answer. Counted as an attempt; what failed is asked again later, and nothing takes its place.

    ``missing``: the program is gone; ``exit``: it failed in a way that nothing else describes; ``empty``: it answered
    with no text; ``garbled``: its output has another form than it should; ``too-large``: it printed more than is read.
    ``tokens_in``, ``tokens_out`` and ``cost_usd_micro`` are what the failure cost, where it is told.
    """

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        tokens_in: int = 0,
        tokens_out: int = 0,
        cost_usd_micro: int | None = None,
    ) -> None:
        """``detail`` is shown to the person, on one line and cut."""
        line = " ".join(detail.split())
        self.kind: Kind = kind
        self.detail = line if len(line) <= _DETAIL_CHARS else line[: _DETAIL_CHARS - 1] + "…"
        self.tokens_in, self.tokens_out = tokens_in, tokens_out
        self.cost_usd_micro = cost_usd_micro
        super().__init__(f"{kind}: {self.detail}" if self.detail else kind)


class Model(Protocol):
    """Something that answers."""

    @property
    def name(self) -> str:
        """The name of the extractor in claims and in the meter: ``claude``, ``codex``, ``url``."""
        ...

    def ask(self, request: Request) -> Reply:
        """Return the answer, at most about two seconds after the deadline. Raises ``ModelFailed`` and nothing else."""
        ...
