"""What the index knows of work: edits by time, runs of commands, sessions, and what a session was warned of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memorize import model
from memorize.index import commands, working
from memorize.index.read import Reader
from memorize.model import Draft
from tests.index.test_rebuild import COMMON, PROJECT, Log

SINCE = 0


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    found = Log(tmp_path / "상태 directory")
    yield found
    found.close()


def edit(path: str, **fields: Any) -> Draft:
    known = {**COMMON, "path": path, "op": "edit", "added": 3, "removed": 1, "diff": ""}
    return Draft(model.OBSERVED_EDIT, {**known, **fields})


def ran(command: str, ok: Any, **fields: Any) -> Draft:
    return Draft(model.OBSERVED_SHELL, {**COMMON, "command": command, "ok": ok, "exit": None, "output": "", **fields})


def warned(*items: Any) -> Draft:
    payload = {"session": "s", "agent": "claude", "project": PROJECT, "event": "PreToolUse", "items": list(items)}
    return Draft(model.CONFLICT_WARNED, payload)


def test_an_edit_is_known_by_file_session_branch_and_size(log: Log) -> None:
    (identity,) = log.write(edit("웹/장바구니.ts", branch="ui-cart"))
    with_nonsense = {"added": "viel", "removed": -1, "op": 7}
    log.write(edit("b.ts", **with_nonsense))
    reader = Reader.open(log.home)
    second, first = working.touches(reader.connection, [PROJECT], SINCE)
    assert (first.id, first.path, first.branch, first.op) == (identity, "웹/장바구니.ts", "ui-cart", "edit")
    assert (first.added, first.removed, first.session) == (3, 1, COMMON["session"])
    assert (second.path, second.op, second.added, second.removed) == ("b.ts", "", 0, 0)
    assert working.touches(reader.connection, ["b2" * 16], SINCE) == []
    assert len(working.touches(reader.connection, None, SINCE)) == 2
    assert working.touches(reader.connection, [PROJECT], first.at + 10**12) == []
    reader.close()


def test_runs_of_one_command_come_in_log_order_whatever_its_spaces(log: Log) -> None:
    log.write(ran("make  test", False))
    log.write(ran("make test", True))
    log.write(ran("make test", None, session="다른"))
    log.write(ran("make test", False, dir="web"))
    log.write(ran("make", "nobody knows"))
    reader = Reader.open(log.home)
    found = working.runs(reader.connection, [PROJECT], commands.number("make test"))
    assert [(run.ok, run.session) for run in found] == [
        (None, "다른"),
        (True, COMMON["session"]),
        (False, COMMON["session"]),
    ]
    assert reader.payload(found[-1].n)["command"] == "make  test"
    assert [run.ok for run in working.runs(reader.connection, [PROJECT], commands.number("cd web && make test"))] == [
        False
    ]
    assert [run.ok for run in working.runs(reader.connection, [PROJECT], commands.number("make"))] == [None]
    reader.close()


def test_a_session_knows_the_checkout_it_began_in(log: Log) -> None:
    opened = {**COMMON, "source": "startup", "transcript": "", "model": "", "root": "/집/check out"}
    log.write(Draft(model.SESSION_OPENED, opened))
    log.write(edit("a.ts", branch="ui-cart"))
    reader = Reader.open(log.home)
    [one] = working.sessions(reader.connection, [PROJECT], SINCE)
    assert (one.root, one.branch, one.closed) == ("/집/check out", "ui-cart", None)
    assert [one.root for one in reader.sessions(PROJECT)] == ["/집/check out"]
    assert len(working.sessions(reader.connection, None, SINCE)) == 1
    reader.close()


def test_what_a_session_was_warned_of_it_was_told_and_nonsense_is_left_out(log: Log) -> None:
    log.write(warned(["file", "가.ts", b"i" * 32, "다른"], ["file", 7, b"x", "y"], "nonsense", [], ["git"]))
    reader = Reader.open(log.home)
    assert reader.delivered("s") == {working.mark("file", "가.ts", b"i" * 32)}
    assert reader.delivered("다른") == frozenset()
    reader.close()


def test_marks_differ_by_kind_subject_and_source() -> None:
    marks = {working.mark(kind, subject, source) for kind in "ab" for subject in ("", "a") for source in (b"", b"a")}
    assert len(marks) == 8


def test_an_erased_edit_or_command_is_gone_from_what_is_known_of_work(log: Log) -> None:
    made = [*log.write(edit("a.ts")), *log.write(ran("make", False))]
    log.write(Draft(model.ERASE_REQUESTED, {"ids": made, "reason": ""}))
    reader = Reader.open(log.home)
    assert working.touches(reader.connection, [PROJECT], SINCE) == []
    assert working.runs(reader.connection, [PROJECT], commands.number("make")) == []
    reader.close()
