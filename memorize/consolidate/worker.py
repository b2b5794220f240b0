"""Run an extractor over open windows and hand each answer, whole, to the log.

One worker at a time (the caller holds an OS lock). Each window's memories, verdicts and claim are one strict batch, so
that a crash leaves either nothing or everything, and the next run sees the window open or closed. A window whose
model failed stays open; nothing falls through to the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from memorize.consolidate import answer as answers
from memorize.consolidate import prompt, rules, trust
from memorize.consolidate.attempts import Attempts, lane
from memorize.consolidate.login import Choice
from memorize.consolidate.port import OF_THE_SERVICE, Model, ModelFailed, Reply, Request
from memorize.consolidate.prompt import Offered, Part
from memorize.consolidate.reconcile import Memory, Outcome, reconcile
from memorize.consolidate.spend import CapReached, Meter, Metered, needs
from memorize.consolidate.windows import Found, Window, answer
from memorize.ids import random_id
from memorize.model import Draft

# An empty answer of a model is an answer; one that holds none of the expected form is a failure of the window.
GARBLED: Final = "garbled"


class Desk(Protocol):
    """What the worker needs of the shell: what stands already, and the way into the log."""

    def memory(self, window: Window) -> Memory:
        """Return what stands beside a window's memories."""
        ...

    def offered(self, window: Window) -> Sequence[Offered]:
        """Return the memories that a window may put right, the likeliest first."""
        ...

    def told(self, window: Window) -> frozenset[bytes]:
        """Return the memories that the window's session was told."""
        ...

    def append(self, drafts: Sequence[Draft]) -> object:
        """Write a batch; return when it is durable."""
        ...


class Terms(NamedTuple):
    """How the worker goes about it: the least sources of a window, tokens a question, seconds a call, the model."""

    observations_min: int = 1
    part_tokens: int = 24_000
    deadline_s: float = 120.0
    model: str | None = None
    by_hand: bool = False


class Report(NamedTuple):
    """What one run did.

    ``windows`` closed, ``memories`` formed, ``calls`` of a model; left open: ``small`` ones, those that ``wait``
    for a later boundary, ``parked`` ones, and those that ``failed`` now. ``notice`` tells why it stopped early, ""
    if it did not. ``dropped`` counts what was refused of the answers, ``unjudged`` the pairs of memories that look
    alike and that nobody judged.
    """

    windows: int = 0
    memories: int = 0
    calls: int = 0
    small: int = 0
    wait: int = 0
    parked: int = 0
    failed: int = 0
    dropped: int = 0
    unjudged: int = 0
    notice: str = ""

    def plus(self, **more: int) -> Report:
        """Return the report with these counts added."""
        return self._replace(**{name: getattr(self, name) + number for name, number in more.items()})


def run(
    windows: Iterable[Window], desk: Desk, choice: Choice, meter: Meter, attempts: Attempts, terms: Terms
) -> Report:
    """Close what can be closed. Ends early when the day's cap is reached or the service itself fails."""
    report = Report()
    if choice.name in ("off", "wait"):
        return report._replace(notice=choice.why)
    for window in windows:
        if len(window.sources) < terms.observations_min:
            report = report.plus(small=1)
        elif choice.model is None:
            report = _close(report, window, desk, screened(rules.extract(window)), rules.NAME, None, terms)
        else:
            report = _asked(report, window, desk, choice.model, meter, attempts, terms)
            if report.notice:
                break
    return report


def screened(found: Sequence[Found]) -> list[Found]:
    """Return what an extractor proposed, with what looks like an order to a model set aside for review."""
    return list(trust.screened(found))


def _asked(
    report: Report, window: Window, desk: Desk, model: Model, meter: Meter, attempts: Attempts, terms: Terms
) -> Report:
    """Ask a model about a window; what fails leaves it open."""
    of = lane(window.agent, window.session, window.project)
    due = attempts.due(window.key, of, by_hand=terms.by_hand)
    if due != "go":
        return report.plus(wait=1) if due == "wait" else report.plus(parked=1)
    metered = _Counted(Metered(model, meter, window.project, window.key))
    try:
        found, dropped = _extract(window, desk, metered, terms)
        done = _close(report.plus(dropped=dropped), window, desk, found, model.name, metered, terms)
    except CapReached as reached:
        return report.plus(calls=metered.calls)._replace(notice=reached.notice)
    except ModelFailed as failure:
        attempts.gave_up(window.key, of, window.project, failure)
        stop = f"{model.name} failed ({failure})" if failure.kind in OF_THE_SERVICE else ""
        return report.plus(calls=metered.calls, failed=1)._replace(notice=stop)
    except answers.NoAnswer as nothing:
        attempts.failed(window.key, of, window.project, GARBLED, nothing.reason)
        return report.plus(calls=metered.calls, failed=1)
    attempts.succeeded(window.key, of)
    return done.plus(calls=metered.calls)


class _Counted:
    """A model that knows how often it was asked."""

    def __init__(self, model: Metered) -> None:
        self._model = model
        self.calls = 0
        self.name = model.name

    def ask(self, request: Request) -> Reply:
        """Ask and count; a call that the cap forbids was none."""
        self.calls += 1
        try:
            return self._model.ask(request)
        except CapReached:
            self.calls -= 1
            raise


def _extract(window: Window, desk: Desk, model: Model, terms: Terms) -> tuple[list[Found], int]:
    """Return what a model makes of a window, part by part, and how many items of its answers were refused."""
    found: list[Found] = []
    dropped = 0
    for part in prompt.build(window, desk.offered(window), terms.part_tokens):
        reply = model.ask(request_of(part, terms))
        read = answers.read(reply.text, part)
        found += read.found
        dropped += sum(read.dropped.values())
    return screened(found), dropped


def request_of(part: Part, terms: Terms) -> Request:
    """Return the question about a part of a window."""
    return Request(part.system, part.text, answers.SCHEMA, "extract", terms.deadline_s, terms.model)


def _close(
    report: Report, window: Window, desk: Desk, found: Sequence[Found], name: str, model: Model | None, terms: Terms
) -> Report:
    """Reconcile what was found with what stands, and write all of it at once."""
    nonce = random_id()
    outcome: Outcome = reconcile(
        window,
        found,
        desk.memory(window),
        model,
        nonce,
        shown=desk.told(window),
        deadline_s=terms.deadline_s,
        model_name=terms.model,
    )
    desk.append(answer(window, outcome.found, name, nonce, outcome.drafts))
    done = report.plus(windows=1, memories=len(outcome.found), unjudged=outcome.unjudged)
    return done._replace(notice=outcome.failed.notice) if isinstance(outcome.failed, CapReached) else done


class Estimate(NamedTuple):
    """What a run would ask about one window: the questions, and the tokens they need at least."""

    parts: tuple[Part, ...]
    tokens: int


def estimate(window: Window, desk: Desk, extractor: str, terms: Terms) -> Estimate:
    """Return what a model would be asked about a window, without asking it."""
    parts = prompt.build(window, desk.offered(window), terms.part_tokens)
    return Estimate(tuple(parts), sum(needs(extractor, request_of(part, terms)) for part in parts))
