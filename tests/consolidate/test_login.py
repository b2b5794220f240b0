"""Which extractor is at work, found out without a call of a model."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from memorize.clock import FixedClock
from memorize.config import Config
from memorize.consolidate.login import Choice, Extractors
from memorize.paths import Home
from tests.consolidate.programs import program

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are written as scripts with #!")

HOUR = 3600 * 1000


class Machine:
    """A machine with the programs that a test puts there; ``calls`` are the words they were called with."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.home = Home(top / "state")
        self.wall = 1_796_000_000_000
        self.environ = {"PATH": f"{top / 'bin'}:/usr/bin:/bin", "HOME": str(top / "사람")}

    def has(self, agent: str, logged_in: bool, version: str = "2.1.332 (Claude Code)") -> None:
        said = {"claude": "auth status", "codex": "login status"}[agent]
        told = json.dumps({"loggedIn": logged_in})
        body = f"""echo "$*" >>'{self.top}/calls'
case "$*" in
--version) echo '{version}' ;;
'{said}') echo '{told}'; exit {0 if logged_in else 1} ;;
*) echo 'a call of the model'; exit 9 ;;
esac"""
        program(self.top / "bin" / agent, body)

    def extractors(self, **config: object) -> Extractors:
        settings = Config()._replace(**config)  # type: ignore[arg-type]
        return Extractors(self.home, settings, self.environ, FixedClock(self.wall))

    def chooses(self, **config: object) -> Choice:
        return self.extractors(**config).choose()

    @property
    def calls(self) -> list[str]:
        path = self.top / "calls"
        return path.read_text("utf-8").splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.home.root.mkdir()
    (tmp_path / "bin").mkdir()
    return made


def test_without_setup_no_model_is_used_and_no_program_is_even_asked(machine: Machine) -> None:
    machine.has("claude", True)
    assert machine.chooses().name == "rules"
    assert machine.calls == []
    assert not machine.home.extractor.exists()


def test_after_setup_the_first_that_is_logged_in_is_used(machine: Machine) -> None:
    machine.has("claude", False)
    machine.has("codex", True)
    machine.extractors().switch_on()
    choice = machine.chooses()
    assert choice.name == "codex"
    assert choice.model is not None
    assert choice.model.name == "codex"
    assert "a call" not in "".join(machine.calls)


def test_the_order_is_the_persons(machine: Machine) -> None:
    machine.has("claude", True)
    machine.has("codex", True)
    machine.extractors().switch_on()
    assert machine.chooses().name == "claude"
    assert machine.chooses(order="codex, claude").name == "codex"
    assert machine.chooses(order="url,codex", url="http://127.0.0.1:1/v1", model="m").name == "url"


def test_where_nothing_is_installed_or_logged_in_rules_run(machine: Machine) -> None:
    machine.extractors().switch_on()
    assert machine.chooses().name == "rules"
    machine.has("claude", False)
    assert machine.chooses() == Choice("rules", None, "no agent is logged in on this machine")


def test_a_login_is_remembered_with_its_time_and_looked_at_again_later(machine: Machine) -> None:
    machine.has("claude", True)
    machine.extractors().switch_on()
    assert machine.chooses().name == "claude"
    asked = len(machine.calls)
    for hours in (1, 12, 10):
        machine.wall += hours * HOUR
        assert machine.chooses().name == "claude"
    assert len(machine.calls) == asked
    machine.wall += 2 * HOUR
    assert machine.chooses().name == "claude"
    assert len(machine.calls) > asked


def test_what_is_remembered_of_the_future_does_not_count(machine: Machine) -> None:
    machine.has("claude", True)
    machine.extractors().switch_on()
    assert machine.chooses().name == "claude"
    machine.has("claude", False)
    machine.wall -= 24 * HOUR
    assert machine.chooses().name == "rules"


def test_a_login_that_comes_later_is_found_within_an_hour(machine: Machine) -> None:
    machine.has("claude", False)
    machine.extractors().switch_on()
    assert machine.chooses().name == "rules"
    machine.has("claude", True)
    assert machine.chooses().name == "rules"
    assert machine.extractors().choose(fresh=True).name == "claude"
    machine.wall += HOUR
    assert machine.chooses().name == "claude"


def test_who_waits_for_it_finds_a_login_that_has_just_come(machine: Machine) -> None:
    machine.has("claude", False)
    extractors = machine.extractors()
    extractors.switch_on()
    assert extractors.choose_anew().name == "rules"
    machine.has("claude", True)
    assert extractors.choose().name == "rules"
    assert extractors.choose_anew().name == "claude"
    assert extractors.choose().name == "claude"
    asked = machine.calls
    assert extractors.choose_anew().name == "claude"
    assert machine.calls == asked, "what is remembered of a login is enough"


def test_a_lost_login_makes_windows_wait_once_a_model_has_answered(machine: Machine) -> None:
    machine.has("claude", True)
    machine.extractors().switch_on()
    assert machine.chooses().name == "claude"
    machine.extractors().answered("claude")
    machine.has("claude", False)
    machine.extractors().forget("claude")
    assert machine.chooses() == Choice("wait", None, "Claude Code is not logged in; what was observed waits")
    (machine.top / "bin" / "claude").unlink()
    assert machine.chooses().name == "rules"


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_model_that_was_asked_for_by_name_is_never_replaced_by_rules(machine: Machine, agent: str) -> None:
    assert machine.chooses(extractor=agent).name == "wait"
    machine.has(agent, False)
    machine.wall += HOUR
    assert machine.chooses(extractor=agent).name == "wait"
    machine.has(agent, True)
    machine.wall += HOUR
    assert machine.chooses(extractor=agent).name == agent


def test_rules_and_off_ask_nobody(machine: Machine) -> None:
    machine.has("claude", True)
    machine.extractors().switch_on()
    assert [machine.chooses(extractor=name).name for name in ("rules", "off")] == ["rules", "off"]
    assert machine.calls == []


def test_inside_a_call_of_a_model_nothing_is_consolidated(machine: Machine) -> None:
    machine.environ["MEMORIZE_GUARD"] = "1"
    for name in ("auto", "claude", "rules"):
        assert machine.chooses(extractor=name).name == "off"


def test_an_old_claude_is_not_asked_with_words_that_it_would_take_for_a_prompt(machine: Machine) -> None:
    machine.has("claude", True, version="2.1.40 (Claude Code)")
    assert machine.chooses(extractor="claude").name == "wait"
    machine.environ["ANTHROPIC_API_KEY"] = "k"
    assert machine.extractors(extractor="claude").choose(fresh=True).name == "claude"
    del machine.environ["ANTHROPIC_API_KEY"]
    folder = machine.top / "사람" / ".claude"
    folder.mkdir(parents=True)
    (folder / ".credentials.json").touch()
    assert machine.extractors(extractor="claude").choose(fresh=True).name == "claude"
    assert set(machine.calls) == {"--version"}


def test_a_program_that_hangs_or_prints_rubbish_is_not_logged_in(machine: Machine) -> None:
    program(machine.top / "bin" / "claude", "echo rubbish")
    assert machine.chooses(extractor="claude").name == "wait"


def test_codex_with_a_provider_of_its_own_needs_only_its_key(machine: Machine) -> None:
    machine.has("codex", False)
    settings = machine.top / "사람" / ".codex" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        'model_provider = "lan"\n[model_providers.lan]\nbase_url = "http://127.0.0.1/v1"\nenv_key = "LAN_KEY"\n'
    )
    assert machine.extractors(extractor="codex").choose(fresh=True).name == "wait"
    machine.environ["LAN_KEY"] = "k"
    assert machine.extractors(extractor="codex").choose(fresh=True).name == "codex"
    settings.write_text("not toml [", encoding="utf-8")
    assert machine.extractors(extractor="codex").choose(fresh=True).name == "wait"
    machine.environ["CODEX_API_KEY"] = "k"
    assert machine.extractors(extractor="codex").choose(fresh=True).name == "codex"


def test_a_service_needs_address_model_and_the_key_that_is_named(machine: Machine) -> None:
    assert machine.chooses(extractor="url").name == "wait"
    known = {"extractor": "url", "url": "https://models.example/v1", "model": "m"}
    assert machine.chooses(**known).name == "url"
    assert "SERVICE_KEY" in machine.chooses(**known, url_key_env="SERVICE_KEY").why
    machine.environ["SERVICE_KEY"] = "geheim"
    choice = machine.chooses(**known, url_key_env="SERVICE_KEY")
    assert choice.name == "url"
    assert "geheim" not in str(choice)
    assert not machine.home.extractor.exists()


def test_a_daemon_with_another_path_finds_the_program_where_it_was(machine: Machine) -> None:
    machine.has("claude", True)
    machine.extractors().switch_on()
    assert machine.chooses().name == "claude"
    machine.environ["PATH"] = "/usr/bin:/bin"
    assert machine.chooses().name == "claude"


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\xff", b'{"logins": 3, "switched_on": "yes"}', b'{"logins": {"claude": 1}}']
)
def test_a_file_that_was_spoiled_switches_nothing_on(machine: Machine, content: bytes) -> None:
    machine.has("claude", True)
    machine.home.extractor.write_bytes(content)
    assert machine.chooses().name == "rules"
    machine.extractors().switch_on()
    assert machine.chooses().name == "claude"


def test_what_is_remembered_is_private_and_holds_no_key(machine: Machine) -> None:
    machine.has("claude", True)
    machine.environ["ANTHROPIC_API_KEY"] = "geheim"
    machine.extractors().switch_on()
    machine.chooses()
    assert stat.S_IMODE(machine.home.extractor.stat().st_mode) == 0o600
    assert "geheim" not in machine.home.extractor.read_text("utf-8")
    assert os.listdir(machine.home.root) == ["extractor.json"]  # noqa: PTH208 - only the names
