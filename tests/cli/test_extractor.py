"""Which extractor setup switches on, what status and doctor say of it, and that no model is ever called by that."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from memorize.clock import SystemClock
from memorize.consolidate.attempts import Attempts
from memorize.consolidate.meter import MeterFile
from memorize.consolidate.port import Reply
from memorize.consolidate.spend import Caps, Meter
from tests.cli.kit import Person
from tests.consolidate.programs import program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are written as scripts with #!")


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without agents but for those that a test puts there; what they are called with is written down."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "CLAUDE_", "CODEX_", "OPENAI_")):
            monkeypatch.delenv(name)
    return tmp_path / "calls"


def claude(calls: Path, logged_in: bool) -> None:
    status = f"echo '{{\"loggedIn\": {str(logged_in).lower()}}}'; exit {0 if logged_in else 1}"
    body = f"""echo "$*" >>'{calls}'
case "$*" in --version) echo 2.1.332 ;; 'auth status') {status} ;; *) exit 9 ;; esac"""
    program(calls.parent / "bin" / "claude", body)


def asked(calls: Path) -> set[str]:
    return set(calls.read_text("utf-8").splitlines()) if calls.exists() else set()


def extractor(person: Person, *options: str) -> str:
    shown = person.types("setup", "--agent", "claude", *options)
    assert shown.code == 0, shown
    [line] = [line for line in shown.out.splitlines() if line.startswith("extractor ")]
    return line.removeprefix("extractor").strip()


def checks(person: Person) -> list[dict[str, str]]:
    found: list[dict[str, str]] = person.types("doctor", "--json").json["items"]  # it may fail for other reasons
    return found


def test_setup_switches_on_who_is_logged_in_and_says_so_with_the_cap(person: Person, calls: Path) -> None:
    claude(calls, True)
    assert extractor(person) == (
        "claude, with your login: at most 24 calls and 400,000 tokens a day; --extractor rules refuses"
    )
    assert asked(calls) == {"--version", "auth status"}
    assert not person.home.config.exists()
    found = person.gets("status")["consolidate"]
    assert (found["extractor"], found["calls_today"], found["calls_per_day"]) == ("claude", 0, 24)
    assert "by claude, 0 of 24 calls today" in person.types("status").out


def test_before_setup_nothing_is_switched_on(person: Person, calls: Path) -> None:
    claude(calls, True)
    assert person.gets("status")["consolidate"]["extractor"] == "rules"
    assert asked(calls) == set()


def test_where_nobody_is_logged_in_setup_says_what_happens_later(person: Person, calls: Path) -> None:
    claude(calls, False)
    assert extractor(person) == (
        "rules: no agent is logged in on this machine; once one is, it is used"
        " (at most 24 calls and 400,000 tokens a day; --extractor rules refuses)"
    )
    assert "by rules, no model calls" in person.types("status").out


def test_rules_refuse_a_model_for_good(person: Person, calls: Path) -> None:
    claude(calls, True)
    assert extractor(person, "--extractor", "rules") == "rules: no model is called, nothing leaves this machine"
    assert person.home.config.read_text("utf-8") == '[consolidate]\nextractor = "rules"\n'
    assert extractor(person).startswith("rules:")
    assert person.gets("status")["consolidate"]["extractor"] == "rules"
    assert asked(calls) == set()


def test_off_forms_no_memories(person: Person, calls: Path) -> None:
    assert extractor(person, "--extractor", "off") == "off: no memories are formed; what is observed is kept"
    assert "switched off" in person.types("status").out


def test_the_persons_file_stays_as_it_is_but_for_the_one_key(person: Person, calls: Path, tmp_path: Path) -> None:
    own = tmp_path / "설정 모음.toml"
    own.write_text("# 내 것\n[consolidate]\ncalls_per_day = 5   # 아껴서\n", encoding="utf-8")
    own.chmod(0o640)
    person.home.config.symlink_to(own)
    assert extractor(person, "--extractor", "codex") == "codex: Codex CLI is not installed; what was observed waits"
    assert own.read_text("utf-8") == '# 내 것\n[consolidate]\nextractor = "codex"\ncalls_per_day = 5   # 아껴서\n'
    assert own.stat().st_mode & 0o777 == 0o640
    assert person.home.config.is_symlink()
    assert "not installed" in person.types("status").out
    assert any("not installed" in one["text"] for one in checks(person))


def test_a_dry_run_tells_and_writes_nothing(person: Person, calls: Path) -> None:
    claude(calls, True)
    before = sorted(person.home.root.rglob("*"))
    assert extractor(person, "--dry-run").startswith("claude, with your login")
    assert extractor(person, "--dry-run", "--extractor", "rules").startswith("rules: no model")
    assert sorted(person.home.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("project", "kind", "told"), [("here", "garbled", True), ("other", "garbled", False), ("other", "exit", True)]
)
def test_a_try_that_failed_is_told_with_its_reason_until_it_is_made_good(
    person: Person, calls: Path, project: str, kind: str, told: bool
) -> None:
    claude(calls, True)
    extractor(person)
    key = person.gets("status")["project"]["key"] if project == "here" else "other"
    attempts = Attempts(MeterFile(person.home.meter), SystemClock())
    attempts.failed(b"w", "claude s p", key, kind, "로그인이 풀림")
    assert ("failed: 로그인이 풀림" in person.types("status").out) == told
    assert (person.gets("status")["consolidate"]["failed"] is not None) == told
    [check] = [one for one in checks(person) if one["name"] == "model"]
    assert "1 window could not be read" in check["text"]
    assert "로그인이 풀림" in check["text"]
    attempts.succeeded(b"w", "claude s p")
    assert "failed" not in person.types("status").out
    assert not [one for one in checks(person) if one["name"] == "model"]


def test_status_says_when_the_cap_stopped_it_and_doctor_lists_what_is_parked(person: Person, calls: Path) -> None:
    claude(calls, True)
    extractor(person)
    person.home.config.write_text("[consolidate]\ncalls_per_day = 1\n", encoding="utf-8")
    file = MeterFile(person.home.meter)
    meter = Meter(file, SystemClock(), Caps(1, 10**9))
    meter.end(meter.begin("claude", "extract", "p", b"w", 100), Reply("답", 1, 1, None, "haiku", 1.0))
    for _ in range(5):
        Attempts(file, SystemClock()).failed(b"w", "claude s p", "p", "garbled", "읽을 수 없음")
    shown = person.types("status").out
    assert "claude: the cap of 1 model calls a day is reached; it goes on tomorrow" in shown
    assert "1 window parked" in shown
    found = {one["name"]: one for one in checks(person)}
    assert found["spend"]["level"] == "warn"
    assert found["parked"]["do"] == "memorize consolidate --retry-parked"
    assert "garbled 읽을 수 없음" in found["parked"]["text"]
