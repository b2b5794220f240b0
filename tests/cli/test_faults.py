"""What a person sees when something is wrong: named once, with a remedy that helps, and gone when it is mended."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from memorize.cli import version_cmd
from memorize.clock import SystemClock
from memorize.log.segments import scan_segment
from memorize.log.spool import put_capture
from tests.cli.kit import Person


def _level(person: Person, name: str) -> str:
    items = {item["name"]: item["level"] for item in json.loads(person.types("doctor", "--json").out)["items"]}
    return str(items[name])


def _flip(person: Person) -> None:
    (path,) = person.home.segments.iterdir()
    raw = bytearray(path.read_bytes())
    frame = scan_segment(bytes(raw)).frames[2]
    raw[frame.offset + frame.length - 9] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(errno.EROFS, "Read-only file system", "/어디/x"), 24, "/어디/x cannot be written: Read-only"),
        (OSError(errno.ENOSPC, "No space left on device", b"/y"), 24, "/y cannot be written: No space left"),
        (OSError(errno.EIO, "Input/output error"), 1, "Something went wrong: OSError"),
        (ValueError("묘한 값"), 1, "Something went wrong: ValueError: 묘한 값"),
    ],
)
def test_an_error_that_nobody_foresaw_is_two_lines_and_no_traceback(
    person: Person, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, said: str
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(version_cmd.command, "callback", lambda **_: fails())
    shown = person.types("version")
    assert shown.code == code
    first, second = shown.err.splitlines()
    assert first.startswith("memorize: ")
    assert said in first
    assert second.startswith("hint: ")
    with pytest.raises(type(error)):
        person.types("version", "--debug")


def test_where_no_lock_can_be_opened_no_daemon_runs(person: Person) -> None:
    person.remembers("기억.")
    (person.home.locks / "daemon").unlink(missing_ok=True)
    (person.home.locks / "daemon").mkdir()
    assert person.types("daemon", "status").out == "not running; it starts when a session does\n"
    assert person.types("status").code == 0


def test_a_flipped_bit_is_one_line_with_number_and_id_and_known_after_a_repair(person: Person) -> None:
    for number in range(3):
        person.remembers(f"기억 {number}.")
    _flip(person)
    said = person.types("doctor")
    assert said.code == 1
    (line,) = [line for line in said.out.splitlines() if line.startswith("fail")]
    assert "lost: event 3 of writer" in line
    assert ", id " in line
    assert "not checked" not in line
    assert person.types("verify", "--repair").code == 2
    verified = person.types("verify")
    assert verified.code == 0
    assert "known: 1 event lost, noted on" in verified.out
    assert _level(person, "log") == "ok"


@pytest.mark.parametrize("harm", ["cut", "deleted"])
@pytest.mark.parametrize("between", [("list",), ("doctor",), ("verify", "--deep")])
def test_a_lost_end_of_the_log_is_told_also_after_the_index_was_made_anew(
    person: Person, harm: str, between: tuple[str, ...]
) -> None:
    for number in range(5):
        person.remembers(f"기억 {number}: lost or kept.")
    (path,) = person.home.segments.iterdir()
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    else:
        path.unlink()
    person.types(*between)
    person.types("list")
    said = person.types("verify", "--deep")
    assert said.code == 2, said
    assert "missing: event" in said.out
    assert _level(person, "log") == "fail"
    person.types("verify", "--repair")
    assert person.types("verify", "--deep").code == 0


def test_a_foreign_name_in_the_spool_stops_no_check(person: Person) -> None:
    person.gets("list")
    (person.home.spool / "new" / "dir2").mkdir()
    (person.home.spool / "new" / "폴더 é").write_bytes(b"x")
    said = person.types("doctor")
    assert "config" in said.out
    assert "Traceback" not in said.err


def test_doctor_speaks_of_all_the_rest_when_the_configuration_is_broken(person: Person) -> None:
    person.gets("list")
    person.home.config.write_text("[recall\n", encoding="utf-8")
    said = person.types("doctor", "--json")
    assert said.code == 1
    levels = {item["name"]: item["level"] for item in said.json["items"]}
    assert levels["config"] == "fail"
    assert levels["index"] == levels["log"] == "ok"


def test_captures_that_say_nothing_are_no_damage_and_unreadable_ones_hold_no_secret(person: Person) -> None:
    secret = "ghp_" + "abcdefghij0123456789" + "ABCDEFGHIJ012345"
    for data in (b"", b"{}", b'{"session_id": "s", "cwd": null}', b'{"session_id": "s", "cwd": "rel"}'):
        put_capture(person.home, "claude", "Stop", data, SystemClock())
    person.gets("list")
    assert _level(person, "spool") == "ok"
    put_capture(person.home, "claude", "Stop", f'{{"토큰": "{secret}'.encode(), SystemClock())
    assert _level(person, "spool") == "fail"
    for path in person.home.root.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path
    for _ in range(2):
        assert "back into the spool" not in person.types("verify", "--repair").out
        assert _level(person, "spool") == "warn"


@pytest.mark.parametrize(
    ("text", "state"),
    [("{}", "lacking"), ("{broken", "unreadable"), (None, "lacking"), ("one missing", "lacking"), ("off", "disabled")],
)
def test_status_and_doctor_call_hooks_right_only_when_they_are(
    person: Person, own_home: Path, text: str | None, state: str
) -> None:
    person.gets("setup", "--agent", "claude")
    path = own_home / ".claude" / "settings.json"
    assert person.gets("status")["capture"][0]["state"] == "ok"
    assert _level(person, "hooks-claude") == "ok"
    settings = json.loads(path.read_text(encoding="utf-8"))
    if text == "one missing":
        del settings["hooks"]["Stop"]
        text = json.dumps(settings)
    elif text == "off":
        text = json.dumps({**settings, "disableAllHooks": True})
    path.unlink()
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert person.gets("status")["capture"][0]["state"] == state
    assert "Claude Code ok" not in person.types("status").out
    assert _level(person, "hooks-claude") == "fail"
    for line in person.types("doctor").out.splitlines():
        assert "as it says" not in line
        assert "Restart" not in line


@pytest.mark.parametrize("spoilt", ["\ufeff{}", '{"version": 1, {}'])
def test_status_and_doctor_say_when_codex_reads_nothing_of_its_hooks(
    person: Person, own_home: Path, spoilt: str
) -> None:
    person.gets("setup", "--agent", "codex")
    path = own_home / ".codex" / "hooks.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(spoilt.replace("{}", text if spoilt[0] == "\ufeff" else text[1:]), encoding="utf-8")
    assert person.gets("status")["capture"][0]["state"] == "refused"
    assert "Codex reads nothing of its hooks file" in person.types("status").out
    assert _level(person, "hooks-codex") == "fail"


def test_doctor_tells_when_the_hooks_of_an_agent_ran_last(person: Person) -> None:
    person.gets("setup", "--agent", "claude")
    assert "none has run yet" in person.types("doctor").out
    person.hook("UserPromptSubmit", {"session_id": "s", "prompt": "환불을 고쳐 줘"})
    assert "last ran " in person.types("doctor").out


def test_settings_that_cannot_be_parsed_fail_an_uninstall_too(person: Person, own_home: Path) -> None:
    person.gets("setup", "--agent", "claude")
    path = own_home / ".claude" / "settings.json"
    path.write_text('{"hooks": {}, // mine\n}', encoding="utf-8")
    said = person.types("uninstall")
    assert said.code == 30
    assert str(path) in said.err
    assert str(path) not in said.out


def test_what_has_expired_is_neither_listed_nor_found_but_among_the_old(person: Person) -> None:
    said = person.types("remember", "세일은 끝났다. The sale is on.", "--until", "2020-01-01")
    assert "that day has passed" in said.err
    assert person.gets("list")["total"] == 0
    assert person.gets("search", "sale")["items"] == []
    (item,) = person.gets("list", "--old")["items"]
    assert item["status"] == "expired"
    assert person.gets("search", "sale", "--old")["items"][0]["status"] == "expired"
    assert person.gets("show", item["id"])["status"] == "expired"
