"""Which command lines and edits fire which triggers."""

from __future__ import annotations

import pytest

from memorize.recall.commands import Shell
from memorize.recall.triggers import edit_triggers, is_name, normal_name, own_triggers, triggers_of
from tests.recall.command_lines import ALIASES, CMD, OWN, POSIX, POWERSHELL


def _check(table: tuple[tuple[str, str], ...], shell: Shell) -> list[str]:
    wrong = []
    for fires, line in table:
        found = triggers_of(line, aliases=ALIASES, own=OWN, shell=shell)
        if found != tuple(fires.split()):
            wrong.append(f"{line!r} fires {' '.join(found) or 'nothing'} instead of {fires or 'nothing'}")
    return wrong


@pytest.mark.parametrize(("table", "shell"), [(POSIX, "posix"), (POWERSHELL, "powershell"), (CMD, "cmd")])
def test_every_line_of_the_table_fires_exactly_its_triggers(table: tuple[tuple[str, str], ...], shell: Shell) -> None:
    assert _check(table, shell) == []
