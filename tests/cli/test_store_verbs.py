"""The verbs about the store: log, digest, verify, rebuild, status, doctor, and setup with its undoing."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

import pytest

from memorize.cli.demo_cmd import CORRECTED, RULE
from tests.cli.kit import Person


def test_a_session_becomes_memories_and_the_next_one_is_told(person: Person) -> None:
    person.works()
    made = person.gets("consolidate", "--wait")
    assert made["memories"] > 5
    start = person.hook("SessionStart", {"session_id": "next", "source": "startup"})
    text = start.stdout.decode()
    for title in ("Constraints", "Decisions", "Tried and failed", "Open", "Last time", "Personal"):
        assert title in text
    delivered = person.gets("log", "--kind", "context.delivered", "--limit", "1")["items"][0]["payload"]
    assert delivered["session"] == "next"
    assert len(delivered["items"]) == text.count("\n- [")


def test_consolidating_twice_makes_nothing_new(person: Person) -> None:
    person.works()
    person.gets("consolidate", "--wait")
    before = person.gets("digest")
    again = person.gets("consolidate", "--wait")
    assert (again["windows"], again["memories"], again["extractor"]) == (0, 0, "rules")
    assert person.gets("digest") == before


def test_a_dry_run_consolidates_nothing(person: Person) -> None:
    person.works()
    assert person.gets("consolidate", "--dry-run")["total"] == 1
    assert person.gets("list")["total"] == 0


def test_a_rebuilt_index_gives_the_same_digests_and_answers(person: Person) -> None:
    person.works()
    person.gets("consolidate", "--wait")
    before = person.gets("digest"), person.gets("search", "환불 refund")["items"]
    for path in person.home.root.glob("index.sqlite*"):
        path.unlink()
    person.gets("rebuild")
    after = person.gets("digest"), person.gets("search", "환불 refund")["items"]
    for item in [*before[1], *after[1]]:
        item["score"].pop("recency"), item["score"].pop("total"), item["score"].pop("age_days")
    assert after == before


@pytest.mark.parametrize("harm", ["deleted", "garbage", "empty"])
def test_a_lost_index_heals_by_itself(person: Person, harm: str) -> None:
    person.remembers("Still here. 아직 있다.")
    for path in person.home.root.glob("index.sqlite*"):
        path.unlink()
    if harm != "deleted":
        person.home.index.write_bytes(b"" if harm == "empty" else b"no database " * 999)
    assert [item["text"] for item in person.gets("list")["items"]] == ["Still here. 아직 있다."]


def test_a_clean_log_verifies_and_a_flipped_bit_is_named(person: Person) -> None:
    person.remembers("One.")
    person.remembers("Two.")
    assert person.types("verify", "--deep").code == 0
    (segment,) = person.home.segments.iterdir()
    raw = bytearray(segment.read_bytes())
    raw[len(raw) // 2] ^= 1
    segment.write_bytes(raw)
    said = person.types("verify", "--deep")
    assert said.code == 2
    assert f"damaged segments/{segment.name}" in said.out


def test_status_and_doctor_speak_of_an_empty_store(person: Person) -> None:
    assert person.gets("status")["memories"] == 0
    said = person.types("doctor")
    assert "no agent is wired" in said.out
    assert said.code == 0


def test_the_total_of_the_log_counts_what_was_asked_for(person: Person) -> None:
    for number in range(3):
        person.remembers(f"기억 {number}.")
    everything = person.gets("log", "--limit", "1000")
    assert everything["total"] == len(everything["items"])
    formed = person.gets("log", "--kind", "memory", "--limit", "1")
    assert (len(formed["items"]), formed["total"]) == (1, 3)
    assert person.gets("log", "--session", "없음")["total"] == 0
    here = person.gets("log", "--here", "--limit", "1000")
    assert 3 <= here["total"] == len(here["items"]) < everything["total"]
    pack = person.gets("pack", "기억")
    assert pack["total"] == len(pack["items"]) > 0


def test_the_log_shows_what_a_hook_dropped(person: Person) -> None:
    person.hook("UserPromptSubmit", {"session_id": "s", "prompt": "환불을 고쳐 줘"})
    item = person.gets("log", "--limit", "1")["items"][0]
    assert (item["kind"], item["payload"]["text"]) == ("observed.prompt", "환불을 고쳐 줘")


def test_sessions_and_projects_are_listed(person: Person) -> None:
    person.works()
    assert person.gets("sessions")["items"][0]["agent"] == "claude"
    assert person.gets("projects")["items"][0]["name"] == "결제 checkout"


def test_setup_and_uninstall_give_foreign_settings_back_byte_for_byte(person: Person, own_home: Path) -> None:
    settings = {
        own_home / ".claude" / "settings.json": b'{"hooks": {"Stop": [{"hooks": [{"type":"command","command":"x"}]}]}}',
        own_home / ".codex" / "hooks.json": '\ufeff{\r\n  "메모": "남의 것",\r\n  "hooks": {}\r\n}'.encode(),
    }
    for path, content in settings.items():
        path.parent.mkdir()
        path.write_bytes(content)
    person.gets("setup", "--agent", "claude", "--agent", "codex")
    assert all(path.read_bytes() != content for path, content in settings.items())
    assert not person.gets("setup", "--agent", "claude,codex")["edits"][0]["changes"]
    person.gets("uninstall")
    assert {path: path.read_bytes() for path in settings} == settings


@pytest.mark.parametrize("linked", [False, True])
def test_a_purge_deletes_every_byte_also_where_the_state_directory_is_a_link(
    person: Person, tmp_path: Path, linked: bool
) -> None:
    person.remembers("지워질 기억")
    root = person.home.root
    if linked:
        root.rename(tmp_path / "elsewhere")
        root.symlink_to(tmp_path / "elsewhere")
    said = person.types("uninstall", "--purge", "--yes")
    assert (said.code, said.out.splitlines()[-1]) == (0, "the memory is deleted")
    assert not root.exists()
    assert not root.is_symlink()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may delete anything")
def test_a_purge_that_could_not_delete_everything_says_so(person: Person) -> None:
    person.remembers("남는 기억")
    person.home.segments.chmod(0o500)
    try:
        said = person.types("uninstall", "--purge", "--yes")
        assert said.code == 22
        assert "the memory is deleted" not in said.out
    finally:
        person.home.segments.chmod(0o700)


def test_setup_without_an_agent_still_says_what_reads_sessions_from_now_on(person: Person) -> None:
    said = person.types("setup", "--extractor", "rules")
    assert "no agent was found" in said.out
    assert "rules: no model is called, nothing leaves this machine" in said.out


def test_settings_that_cannot_be_parsed_are_left_alone_and_named(person: Person, own_home: Path) -> None:
    path = own_home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"hooks": {}, // mine\n}', encoding="utf-8")
    said = person.types("setup", "--agent", "claude")
    assert said.code == 30
    assert str(path) in said.err
    assert path.read_text(encoding="utf-8") == '{"hooks": {}, // mine\n}'


def test_the_hook_line_that_setup_wrote_captures_in_silence(person: Person, own_home: Path) -> None:
    person.gets("setup", "--agent", "claude")
    settings = json.loads((own_home / ".claude" / "settings.json").read_text(encoding="utf-8"))
    line = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    payload = {"session_id": "s", "cwd": str(person.project), "last_assistant_message": "끝났습니다."}
    (person.project / "payload").write_text(json.dumps(payload), encoding="utf-8")
    assert os.system(f"{line.replace(' 2>/dev/null', ' <payload >out 2>/dev/null')}") == 0
    assert (person.project / "out").read_bytes() == b""
    assert person.gets("log", "--limit", "1")["items"][0]["payload"]["text"] == "끝났습니다."


def test_a_dry_run_of_setup_writes_nothing(person: Person, own_home: Path) -> None:
    assert person.gets("setup", "--agent", "claude", "--dry-run")["edits"][0]["changes"] is True
    assert not (own_home / ".claude").exists()


def test_a_wrong_configuration_is_named_with_the_key(person: Person) -> None:
    person.home.config.write_text("[recall]\nhalf_life_days = -1\n", encoding="utf-8")
    said = person.types("list")
    assert said.code == 32
    assert "half_life_days must be a number" in said.err


def test_config_and_version_tell_what_holds(person: Person) -> None:
    assert person.gets("config")["values"]["recall.half_life_days"] == 14.0
    assert person.gets("version")["memorize"]


def test_the_demo_shows_what_is_kept_a_rule_before_its_commit_and_a_second_device_and_leaves_nothing(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    said = person.types("demo")
    assert said.code == 0
    for kind in ("constraint", "decision", "failure"):
        assert f"   {kind:10} " in said.out
    assert "x relevance 1.00" in said.out
    first, second = said.out.split("7. A second device gets it")
    told = [line.split("told", 1)[1].split("] ")[-1].strip() for line in first.splitlines() if "   told   " in line]
    assert [line.split(" (user")[0] for line in told] == [RULE, "nothing, the text only speaks of it", CORRECTED]
    assert re.search(r"received [1-9]\d* from 1 pack: done", second)
    assert f"] {CORRECTED} (user" in second
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("content", [b"", b"{", b'{"files": 1}', "설정".encode("cp949")])
def test_a_damaged_receipt_of_setup_stops_no_status_and_is_mended_as_it_says(person: Person, content: bytes) -> None:
    receipt = person.home.receipts / "setup.json"
    person.remembers("하나")
    assert person.types("setup", "--agent", "claude").code == 0
    receipt.write_bytes(content)
    for verb in ("status", "doctor"):
        said = person.types(verb)
        assert f"move {receipt} away" in said.out, said
    assert person.types("status").code == 0
    assert person.types("setup", "--agent", "claude").code == 36
    receipt.unlink()
    assert person.types("setup", "--agent", "claude").code == 0
    assert "Claude Code ok" in person.types("status").out
