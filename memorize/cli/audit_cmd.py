"""``memorize audit``: have the live memories judged, within the cap of the day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from memorize.cli.conflicts_cmd import COMPARED_MAX, disputed, unjudged
from memorize.cli.console import app, document, here_option, json_option, progress, say, tell
from memorize.ids import random_id
from memorize.index.query import Query

if TYPE_CHECKING:
    from memorize.bootstrap import App
    from memorize.consolidate.judge import Pair, Side, Verdict
    from memorize.consolidate.port import Model
    from memorize.model import Draft


@click.command()
@click.option("--again", is_flag=True, help="Judge pairs anew that were judged before.")
@click.option("--calls", type=click.IntRange(0, 1_000), help="The most calls of a model, besides the cap of the day.")
@click.option("--dry-run", is_flag=True, help="Show what would be asked, and change nothing.")
@click.option("--all-projects", is_flag=True, help="The memories of every project.")
@here_option
@json_option
def command(again: bool, calls: int | None, dry_run: bool, all_projects: bool, directory: str, as_json: bool) -> None:
    """Have live memories judged: pairs at odds or twice the same, and notes that read like orders to an agent.

    What is replaced stays in the history; what reads like an order waits in memorize review. Without a model only
    plain repetitions and updates are settled, and the rest is told.
    """
    parts = app()
    parts.reader()  # takes in what waits in the spool
    project = None if all_projects else parts.here(directory).project
    done = _Audit(parts, project, calls)
    with progress("judging", quiet=as_json) as advance:
        done.run(again, dry_run, advance)
    if not dry_run and done.changes:
        parts.refresh_briefs()
    _report(done, dry_run, as_json)


class _Audit:
    """One run: what was asked and what came of it."""

    def __init__(self, parts: App, project: str | None, calls: int | None) -> None:
        self._parts = parts
        self._project = project
        self._calls_max = calls
        self.calls = self.changes = self.left = 0
        self.words: Counter[str] = Counter()
        self.aside: list[bytes] = []
        self.extractor = ""
        self.notice = ""

    def run(self, again: bool, dry_run: bool, advance: Callable[[int, int], None]) -> None:
        """Settle what costs nothing, then ask, until everything is judged or the cap is reached."""
        from memorize.consolidate import audit
        from memorize.consolidate.neighbours import standing
        from memorize.consolidate.spend import Metered

        parts = self._parts
        choice = parts.models.extractors.choose_anew()
        self.extractor = choice.name
        reader = parts.reader()
        sides = standing(reader, self._project, COMPARED_MAX)
        pairs = self._all_pairs(sides) if again else unjudged(reader, self._project)
        found = audit.free(sides, pairs, by_words=choice.model is None)
        self.left = len(found.pairs)
        doubtful = [side for side in audit.vouched_by_nobody(sides) if side not in found.orders]
        if dry_run:
            self.calls = -(-len(found.pairs) // audit.PAIRS_MAX) + -(-len(doubtful) // audit.NOTES_MAX)
            self.aside = [side.ref for side in found.orders if isinstance(side.ref, bytes)]
            return
        self._settle(found.verdicts)
        self._set_aside(found.orders)
        if choice.model is None:
            self.notice = choice.why if found.pairs else ""
            return
        model = Metered(choice.model, parts.models.meter, self._project or "")
        self._ask(model, found.pairs, doubtful, again, advance)

    def _all_pairs(self, sides: list[Side]) -> list[Pair]:
        from memorize.consolidate.judge import Pair
        from memorize.consolidate.reconcile import look_alikes

        pairs = look_alikes(sides, COMPARED_MAX)
        known = {frozenset((pair.new.ref, pair.old.ref)) for pair in pairs}
        by_id = {side.ref: side for side in sides}
        # A dispute may be between memories that share few words.
        for one, other in disputed(self._parts, Query(self._parts.reader().connection), self._project):
            older, newer = by_id.get(one.id), by_id.get(other.id)
            if older and newer and frozenset((one.id, other.id)) not in known:
                pairs.append(Pair(newer, older, 1.0))
        return pairs

    def _ask(
        self,
        model: Model,
        pairs: tuple[Pair, ...],
        doubtful: list[Side],
        again: bool,
        advance: Callable[[int, int], None],
    ) -> None:
        from memorize.consolidate import audit, judge
        from memorize.consolidate.neighbours import verdicts_on
        from memorize.consolidate.port import ModelFailed
        from memorize.consolidate.spend import CapReached

        config, connection = self._parts.config, self._parts.reader().connection
        deadline, name = float(config.deadline_s), config.model or None
        try:
            for some in audit.batches(pairs):
                if self._is_enough():
                    return
                advance(len(pairs) - self.left, len(pairs))
                verdicts = judge.ask(model, some, "audit", deadline, name)
                self.calls += 1
                self.left -= len(verdicts)
                if again:
                    verdicts = [
                        one._replace(earlier=tuple(verdicts_on(connection, one.pair.new, one.pair.old)))
                        for one in verdicts
                    ]
                self._settle(verdicts)
            for start in range(0, len(doubtful), audit.NOTES_MAX):
                if self._is_enough():
                    return
                found = audit.orders(model, doubtful[start : start + audit.NOTES_MAX], deadline, name)
                self.calls += 1
                self._set_aside(found)
        except CapReached as reached:
            self.notice = reached.notice
        except ModelFailed as failed:
            self.calls += 1
            self.notice = f"{model.name} failed ({failed})"

    def _is_enough(self) -> bool:
        return self._calls_max is not None and self.calls >= self._calls_max

    def _settle(self, verdicts: Sequence[Verdict]) -> None:
        from memorize.consolidate.reconcile import plan

        self.words.update(one.word for one in verdicts)
        nonce = random_id()
        self._append(plan(verdicts, nonce.hex(), 0), nonce)

    def _set_aside(self, sides: Sequence[Side]) -> None:
        from memorize.consolidate.audit import aside

        for side in sides:
            event = self._parts.reader().event(side.ref) if isinstance(side.ref, bytes) else None
            if event is not None and event.payload:
                nonce = random_id()
                members = [one for one in side.members if isinstance(one, bytes)]
                self._append(aside(event.payload, members, nonce), nonce)
                self.aside.append(event.id)

    def _append(self, drafts: Sequence[Draft], nonce: bytes) -> None:
        from memorize.consolidate.audit import closed

        if drafts:
            self._parts.append(closed(drafts, nonce, self._project or "", self.extractor), strict=True)
            self.changes += len(drafts)


def _report(done: _Audit, dry_run: bool, as_json: bool) -> None:
    if as_json:
        facts = {"calls": done.calls, "verdicts": dict(done.words), "aside": done.aside, "unjudged": done.left}
        document({**facts, "extractor": done.extractor, "notice": done.notice, "dry_run": dry_run})
        return
    if dry_run:
        say(f"{done.left} pairs would be judged, and {len(done.aside)} notes set aside: {done.calls} calls at most")
        return
    for word, number in sorted(done.words.items()):
        say(f"{number:4} {word}")
    if done.aside:
        say(f"{len(done.aside):4} set aside: memorize review")
    if done.left:
        say(f"{done.left:4} not judged: memorize conflicts")
    if not (done.words or done.aside or done.left):
        say("nothing is at odds")
    if done.notice:
        tell(done.notice)
