"""A verb that only reads takes the log and the index as they are only where an ingester would change nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from memorize.bootstrap import App, open_app
from memorize.log.segments import HEADER_BYTES
from tests.test_bootstrap import app as app
from tests.test_bootstrap import drop, remember
from tests.test_bootstrap import project as project


def again(app: App) -> App:
    """Return the program as another process has it."""
    app.close()
    return open_app({"MEMORIZE_HOME": str(app.home.root)})


def segment(app: App) -> Path:
    return max(app.home.segments.iterdir())


def cut(app: App) -> None:
    with segment(app).open("r+b") as file:
        file.truncate(HEADER_BYTES + 1)


def longer(app: App) -> None:
    with segment(app).open("ab") as file:
        file.write(b"\0" * 9)


def without_index(app: App) -> None:
    app.home.index.unlink()


def damaged_index(app: App) -> None:
    app.home.index.write_bytes(b"no database" * 1000)


def without_log(app: App) -> None:
    shutil.rmtree(app.home.segments)


def without_spool(app: App) -> None:
    shutil.rmtree(app.home.spool)


def a_received_file(app: App) -> None:
    shutil.copy(segment(app), app.home.received)


def an_open_erasure(app: App) -> None:
    app.projector.close()
    with app.projector._open() as connection:
        connection.execute("insert into erased values(?, 0)", (b"e" * 32,))


CHANGES = [
    cut,
    longer,
    without_index,
    damaged_index,
    without_log,
    without_spool,
    a_received_file,
    an_open_erasure,
]


def test_a_store_that_was_just_written_rests(app: App, project: Path) -> None:
    remember(app, project, "환불은 취소와 다르다.")
    assert app._at_rest()
    assert again(app)._at_rest()


def test_a_store_that_was_never_used_does_not(app: App) -> None:
    assert not app._at_rest()


def test_what_lies_in_the_spool_ends_the_rest_until_it_is_taken_in(app: App, project: Path) -> None:
    remember(app, project, "환불은 취소와 다르다.")
    drop(app, "UserPromptSubmit", project, prompt="환불?")
    assert not app._at_rest()
    app.reader()
    assert app._at_rest()


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_an_ingester_acts_on_ends_the_rest(app: App, project: Path, change: Callable[[App], None]) -> None:
    remember(app, project, "환불은 취소와 다르다.")
    app = again(app)
    change(app)
    assert not app._at_rest()
    assert not app._readers


def test_another_index_version_ends_the_rest(app: App, project: Path) -> None:
    identity = remember(app, project, "환불은 취소와 다르다.")
    app = again(app)
    with app.projector._open() as connection:
        connection.execute("update meta set value = '0.0' where key = 'version'")
    app = again(app)
    assert not app._at_rest()
    app.reader()
    assert app._at_rest()
    assert app.group(identity).text == "환불은 취소와 다르다."


def test_the_look_takes_no_lock(app: App, project: Path) -> None:
    remember(app, project, "환불은 취소와 다르다.")
    app = again(app)
    with app._ingester._alone(0):
        assert again(app)._at_rest()
