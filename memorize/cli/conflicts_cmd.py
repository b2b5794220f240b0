"""``memorize conflicts``: memories that are at odds or that nobody has judged, and files that sessions share now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from memorize.cli.console import app, document, here_option, json_option, say, tell
from memorize.cli.rows import as_item, as_line
from memorize.clock import ago
from memorize.counted import counted
from memorize.index.query import Query, Row
from memorize.recall.plain import one_line

if TYPE_CHECKING:
    from memorize.bootstrap import App
    from memorize.consolidate.judge import Pair
    from memorize.index.read import Reader
    from memorize.index.working import Touch

# So many memories are compared with each other, those of the highest rank.
COMPARED_MAX: Final = 2_000
DISPUTED: Final = "disputed"
UNJUDGED: Final = "unjudged"


@click.command()
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="The most pairs to show.")
@click.option("--all-projects", is_flag=True, help="The pairs of every project.")
@here_option
@json_option
def command(limit: int, all_projects: bool, directory: str, as_json: bool) -> None:
    """List pairs of memories that contradict each other, pairs that look alike and were never judged, and shared files.

    A pair is disputed when a model judged that both cannot hold and neither is plainly the later one. Likeness alone
    decides nothing: unjudged pairs may well both be true. A file is shared when two sessions that are at work now
    edited it lately.
    """
    parts = app()
    reader = parts.reader()
    project = None if all_projects else parts.here(directory).project
    query = Query(reader.connection)
    pairs = [(DISPUTED, one, other, 1.0) for one, other in disputed(parts, query, project)]
    known = {frozenset((one.id, other.id)) for _, one, other, _ in pairs}
    for pair in unjudged(reader, project):
        rows = query.rows([ref for ref in (pair.old.ref, pair.new.ref) if isinstance(ref, bytes)])
        if len(rows) == 2 and frozenset(row.id for row in rows) not in known:
            pairs.append((UNJUDGED, rows[0], rows[1], pair.alike))
    _show(query, pairs[:limit], len(pairs), _shared(parts, reader, project), parts.clock.wall_ms(), as_json)


def _shared(parts: App, reader: Reader, project: str | None) -> list[list[Touch]]:
    """Return the files that sessions at work share, each with the latest edit of each of them."""
    from memorize.bootstrap.watching import at_work
    from memorize.recall.live import shared

    roots = [project] if project is not None else sorted({one.root for one in reader.projects()})
    now = parts.clock.wall_ms()
    return [edits for root in roots for edits in shared(at_work(parts, reader, reader.family(root), now)).values()]


def unjudged(reader: Reader, project: str | None) -> list[Pair]:
    """Return the pairs of live memories that look alike and on which there is no verdict, the likest first."""
    from memorize.consolidate.neighbours import standing, verdict_on
    from memorize.consolidate.reconcile import look_alikes

    sides = standing(reader, project, COMPARED_MAX)
    found = look_alikes(sides, COMPARED_MAX)
    connection = reader.connection
    return [
        pair
        for pair in found
        if not verdict_on(connection, [one for one in pair.new.members if isinstance(one, bytes)], pair.old.members)
    ]


def disputed(parts: App, query: Query, project: str | None) -> list[tuple[Row, Row]]:
    """Return the pairs that a verdict calls contradictory, each once, the older memory first."""
    hits = parts.search("", project, COMPARED_MAX, query=query).hits
    rows = {hit.row.id: hit.row for hit in hits}
    pairs: dict[frozenset[bytes], tuple[Row, Row]] = {}
    for row in rows.values():
        for other in query.rows(row.disputed):
            first, second = sorted((row, other), key=lambda one: (one.lamport, one.id))
            pairs.setdefault(frozenset((row.id, other.id)), (first, second))
    return list(pairs.values())


def _show(
    query: Query,
    pairs: Sequence[tuple[str, Row, Row, float]],
    total: int,
    shared: Sequence[Sequence[Touch]],
    now: int,
    as_json: bool,
) -> None:
    if as_json:
        files = [{"path": edits[0].path, "edits": [edit._asdict() for edit in edits]} for edits in shared]
        document({"items": [_item(*pair) for pair in pairs], "total": total, "shared": files})
        return
    for edits in shared:
        say(f"shared  {one_line(edits[0].path)}")
        for edit in edits:
            branch = f" on {one_line(edit.branch)}" if edit.branch else ""
            say(f"  {edit.session[:8]} {edit.agent}{branch}, {ago(edit.at, now)}, +{edit.added} -{edit.removed} lines")
    rivals = query.rivals([row.id for _, one, other, _ in pairs for row in (one, other)])
    for state, one, other, alike in pairs:
        say(state if state == DISPUTED else f"{state}, {alike:.0%} of the words in common")
        for row in (one, other):
            say(f"  {as_line(row, rivals)}")
    tell(f"{counted(total, 'pair')}." if total else "No memories are at odds.")
    if total:
        tell("memorize audit has them judged  |  memorize forget ID  |  memorize edit ID")


def _item(state: str, one: Row, other: Row, alike: float) -> dict[str, Any]:
    return {"state": state, "alike": round(alike, 3), "older": as_item(one), "newer": as_item(other)}
