"""Setup and uninstall on a home directory with everything that people have in theirs."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memorize import paths
from memorize.agents import agent, edit, install, receipt, traces
from memorize.agents.hookfiles import extra_files
from memorize.agents.hookline import hook_line
from memorize.agents.write import replace
from memorize.errors import BadHome, CannotRead, CannotWrite, HookFails, UnknownAgent, UnreadableSettings
from memorize.paths import Home

SETTINGS = '{\n  "model": "opus",\n  "env": {"이름": "값"}\n}\n'.encode()


class Machine:
    """A person's home directory, and the state directory inside it."""

    def __init__(self, root: Path) -> None:
        self.user = root / "사람 home"
        self.user.mkdir()
        self.home = Home(self.user / ".local" / "share" / "memorize")
        self.environ = {"HOME": str(self.user), "PATH": str(self.user / "bin")}
        self.claude = self.user / ".claude" / "settings.json"
        self.codex = self.user / ".codex" / "hooks.json"

    def write(self, path: Path, content: bytes, mode: int = 0o644) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def plan(self, *agents: str, python: str = sys.executable, project: Path | None = None) -> install.Plan:
        return install.plan(self.home, python, agents, self.environ, project)

    def setup(self, *agents: str, python: str = sys.executable, project: Path | None = None) -> list[str]:
        return install.apply(self.plan(*agents, python=python, project=project), self.home)

    def files(self) -> dict[str, tuple[str, int]]:
        """Return every file outside the state directory with its digest and mode."""
        return {
            str(path.relative_to(self.user)): (
                hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
                path.stat().st_mode,
            )
            for path in sorted(self.user.rglob("*"))
            if not path.is_relative_to(self.user / ".local")
        }


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def commands(path: Path) -> list[str]:
    return [command for _, command in edit.commands(path.read_bytes(), str(path)) if edit.is_ours(command)]


def test_planning_changes_nothing(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    before = machine.files()
    planned = machine.plan()
    assert [item.agent for item in planned.edits] == ["claude"]
    assert machine.files() == before
    assert not machine.home.root.exists()


def test_setup_and_uninstall_leave_the_home_byte_for_byte(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS, 0o640)
    machine.write(machine.codex, b'{"hooks":{"Stop":[]}}', 0o600)
    machine.write(machine.user / ".codex" / "config.toml", b'model = "x"\n')
    before = machine.files()
    machine.setup()
    assert (len(commands(machine.claude)), len(commands(machine.codex))) == (8, 7)
    assert machine.claude.stat().st_mode & 0o777 == 0o640
    told, _ = install.undo(machine.home)
    assert machine.files() == before
    assert all("as it was before" in line for line in told)
    assert not receipt.location(machine.home).exists()
    assert [path.name for path in machine.home.hook.iterdir()] == []


def test_what_setup_made_goes_again_with_its_folders(machine: Machine) -> None:
    project = machine.user / "work" / "프로젝트"
    project.mkdir(parents=True)
    before = machine.files()
    machine.setup("claude", "codex", project=project)
    assert len(commands(project / ".claude" / "settings.local.json")) == 8
    assert len(commands(project / ".codex" / "hooks.json")) == 7
    assert not machine.claude.exists()
    install.undo(machine.home)
    assert machine.files() == before


def test_local_settings_that_git_does_not_ignore_are_named(machine: Machine) -> None:
    project = machine.user / "work" / "프로젝트"
    project.mkdir(parents=True)

    def named() -> list[str]:
        planned = machine.plan("claude", "codex", project=project)
        return [note.split(" is not ignored by git")[0] for note in planned.notes if "ignored by git" in note]

    assert named() == []
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    local = [str(project / ".claude" / "settings.local.json"), str(project / ".codex" / "hooks.json")]
    assert named() == local
    (project / ".gitignore").write_text("settings.local.json\n", encoding="utf-8")
    assert named() == local[1:]


def test_setting_up_twice_changes_nothing_more(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup()
    first, kept = machine.files(), receipt.location(machine.home).read_bytes()
    planned = machine.plan()
    assert not any(item.edit.changes for item in planned.edits)
    assert not any("Restart" in note for note in planned.notes)
    install.apply(planned, machine.home)
    assert machine.files() == first
    assert receipt.location(machine.home).read_bytes() == kept
    install.undo(machine.home)
    assert machine.claude.read_bytes() == SETTINGS


def test_everything_of_ours_is_private(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup("claude", "codex")
    assert machine.codex.stat().st_mode & 0o777 == 0o600
    for path in (machine.home.root, *machine.home.root.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert machine.home.root.joinpath("hook", "python").read_text(encoding="utf-8") == sys.executable


def test_the_installed_lines_capture(machine: Machine, tmp_path: Path) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup()
    (line,) = [command for command in commands(machine.claude) if " Stop " in command]
    payload = json.dumps({"session_id": "s", "cwd": str(tmp_path), "last_assistant_message": "다 했다"}).encode()
    done = subprocess.run(["sh", "-c", line], input=payload, capture_output=True, cwd=tmp_path, env={}, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (captured,) = (machine.home.spool / "new").iterdir()
    assert captured.name.endswith("-claude-Stop")
    assert captured.read_bytes() == payload


def test_the_trial_leaves_no_trace(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup()
    assert not machine.home.spool.exists()
    assert sorted(path.name for path in machine.home.root.iterdir()) == ["hook", "receipts"]


def test_a_hook_that_does_not_run_stops_setup_before_any_settings_change(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    with pytest.raises(HookFails):
        machine.setup(python=str(machine.user / "no python"))
    assert machine.claude.read_bytes() == SETTINGS


def test_links_are_written_through_and_stay_links(machine: Machine) -> None:
    real = machine.write(machine.user / "dotfiles" / "claude.json", SETTINGS)
    machine.claude.parent.mkdir()
    machine.claude.symlink_to(real)
    machine.setup()
    assert machine.claude.is_symlink()
    assert len(commands(real)) == 8
    install.undo(machine.home)
    assert machine.claude.is_symlink()
    assert real.read_bytes() == SETTINGS


def test_a_file_that_cannot_be_parsed_is_named_and_the_others_are_done(machine: Machine) -> None:
    broken = b'{\n  // mine\n  "model": "opus"\n}\n'
    machine.write(machine.claude, broken)
    machine.codex.parent.mkdir()
    planned = machine.plan()
    (problem,) = planned.problems
    assert isinstance(problem, UnreadableSettings)
    assert str(machine.claude) in str(problem)
    assert "comment" in str(problem)
    install.apply(planned, machine.home)
    assert machine.claude.read_bytes() == broken
    assert len(commands(machine.codex)) == 7


def test_a_file_that_changes_between_plan_and_apply_is_left(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    planned = machine.plan()
    machine.claude.write_bytes(b'{"model": "sonnet"}')
    (told,) = install.apply(planned, machine.home)
    assert "changed while setup ran" in told
    assert machine.claude.read_bytes() == b'{"model": "sonnet"}'


def test_setup_that_stops_before_any_write_can_be_undone_and_repeated(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.write(machine.claude, SETTINGS)
    real, left = replace, [0]

    def failing(path: Path, content: bytes, mode: int | None = None) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise CannotWrite(path=path, detail="No space left on device")
        real(path, content, mode)

    for writes in range(8):
        left[0] = writes
        with monkeypatch.context() as patched:
            patched.setattr(install, "replace", failing)
            try:
                machine.setup("claude", "codex")
            except CannotWrite:
                done = False
            else:
                done = True
        install.undo(machine.home)
        assert machine.claude.read_bytes() == SETTINGS
        assert not machine.codex.exists()
        if done:
            return
    pytest.fail("setup never came through")


def test_a_person_who_edited_since_keeps_the_edit(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup()
    text = machine.claude.read_bytes().replace(b'"opus"', b'"haiku"')
    machine.claude.write_bytes(text)
    (told,), _ = install.undo(machine.home)
    assert "changed since" in told
    assert machine.claude.read_bytes() == SETTINGS.replace(b'"opus"', b'"haiku"')


def test_a_hook_of_ours_that_was_changed_by_hand_is_told_and_left(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup()
    machine.claude.write_bytes(machine.claude.read_bytes().replace(b" claude Stop ", b" claude Stop --mine "))
    (told,), _ = install.undo(machine.home)
    assert "1 hook calling" in told
    assert len(commands(machine.claude)) == 1


def test_another_interpreter_later_still_ends_with_the_first_bytes(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup()
    other = machine.user / "python link"
    other.symlink_to(sys.executable)
    machine.setup(python=str(other))
    assert all(str(other) in command for command in commands(machine.claude))
    assert len(commands(machine.claude)) == 8
    install.undo(machine.home)
    assert machine.claude.read_bytes() == SETTINGS


def test_hooks_without_a_receipt_are_found_again(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup()
    receipt.location(machine.home).unlink()
    assert install.undo(machine.home) == ([], [])
    assert len(commands(machine.claude)) == 8
    install.undo(machine.home, machine.environ)
    assert json.loads(machine.claude.read_bytes()) == json.loads(SETTINGS)


def test_setup_over_hooks_without_a_receipt_can_be_undone(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup()
    receipt.location(machine.home).unlink()
    machine.setup()
    install.undo(machine.home)
    assert json.loads(machine.claude.read_bytes()) == json.loads(SETTINGS)


def test_a_damaged_receipt_is_named(machine: Machine) -> None:
    machine.write(receipt.location(machine.home), b'{"files": [{}]}')
    with pytest.raises(CannotRead, match=r"setup\.json"):
        machine.plan("claude")


def test_a_file_that_is_gone_or_broken_does_not_stop_the_undo(machine: Machine) -> None:
    machine.write(machine.claude, SETTINGS)
    machine.setup("claude", "codex")
    machine.codex.unlink()
    machine.claude.write_bytes(b"{broken")
    told, problems = install.undo(machine.home)
    assert ["could not be parsed" in str(problem) for problem in problems] == [True]
    assert any("gone already" in line for line in told)
    assert [path.name for path in receipt.load(machine.home)] == ["settings.json"]


def test_a_settings_path_that_is_a_directory_is_named(machine: Machine) -> None:
    machine.claude.mkdir(parents=True)
    (problem,) = machine.plan("claude").problems
    assert isinstance(problem, CannotRead)


def test_a_state_directory_that_cannot_be_made_is_named(machine: Machine) -> None:
    machine.write(machine.user / ".local" / "share", b"a file")
    with pytest.raises(BadHome):
        machine.setup("claude")


def test_the_agents_own_directories_are_honoured(machine: Machine, tmp_path: Path) -> None:
    machine.environ |= {"CLAUDE_CONFIG_DIR": str(tmp_path / "c c"), "CODEX_HOME": str(tmp_path / "x")}
    paths = [item.path for item in machine.plan("claude-code", "codex").edits]
    assert paths == [tmp_path / "c c" / "settings.json", tmp_path / "x" / "hooks.json"]
    with pytest.raises(UnknownAgent):
        machine.plan("robot")


def test_the_daemon_program_finds_memorize(machine: Machine) -> None:
    code = extra_files(sys.executable)["memorize_daemon.py"].decode()
    compile(code, "memorize_daemon.py", "exec")
    found, chosen, _ = code.partition('if sys.argv[1] == "before":')
    assert chosen
    done = subprocess.run(
        [sys.executable, "-I", "-c", found + "import memorize; print('ok')", "serve"],
        capture_output=True,
        check=True,
    )
    assert done.stdout.strip() == b"ok"


# --- what else is on the machine


def notes(machine: Machine, *agents: str) -> str:
    return "\n".join(machine.plan(*agents).notes)


def test_the_first_setup_says_restart_and_codex_trust(machine: Machine) -> None:
    told = notes(machine, "claude", "codex")
    assert "Restart Claude Code" in told
    assert "Trust all and continue" in told


def trust(machine: Machine, hashes: Mapping[str, str]) -> None:
    lines = []
    for event, group, index, entry in edit.positions(machine.codex.read_bytes(), "x"):
        name = "".join("_" + char.lower() if char.isupper() else char for char in event).lstrip("_")
        handler: dict[str, Any] = {
            "async": False,
            "command": entry.command,
            "timeout": entry.timeout,
            "type": "command",
        }
        content: dict[str, Any] = {"event_name": name, "hooks": [handler]}
        if entry.matcher is not None:
            content["matcher"] = entry.matcher
        text = json.dumps(content, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        value = hashes.get(event, "sha256:" + hashlib.sha256(text.encode()).hexdigest())
        lines.append(f'[hooks.state."{machine.codex}:{name}:{group}:{index}"]\ntrusted_hash = "{value}"\n')
    machine.write(machine.user / ".codex" / "config.toml", "".join(lines).encode())


def test_trust_that_was_given_is_seen_and_trust_in_another_command_is_not(machine: Machine) -> None:
    machine.setup("codex")
    assert "Trust all" in notes(machine, "codex")
    trust(machine, {})
    assert "Trust all" not in notes(machine, "codex")
    trust(machine, {"Stop": "sha256:0"})
    assert "Trust all" in notes(machine, "codex")


def test_our_lines_have_the_fingerprints_that_codex_itself_gave(machine: Machine) -> None:
    """A line, matcher or timeout that changes costs every person the trust that they gave."""
    recorded = json.loads((paths.adapters_dir() / "codex" / "trust.json").read_text(encoding="utf-8"))
    change = agent("codex").plan_install(
        None, lambda event: hook_line(recorded["python"], recorded["program"], "codex", event), "hooks.json"
    )
    machine.write(machine.codex, change.after or b"")
    state = "".join(
        f'[hooks.state."{machine.codex}:{event}:0:0"]\ntrusted_hash = "{value}"\n'
        for event, value in recorded["hashes"].items()
    )
    machine.write(machine.user / ".codex" / "config.toml", state.encode())
    assert len(recorded["hashes"]) == 7
    assert traces.codex_trust(machine.codex.parent, machine.codex, change.after or b"") is None


def test_hooks_in_two_forms_and_hooks_switched_off_are_told(machine: Machine) -> None:
    machine.write(machine.user / ".codex" / "config.toml", b"[[hooks.Stop]]\nhooks = []\n")
    machine.write(machine.claude, b'{"disableAllHooks": true}')
    told = notes(machine)
    assert "holds hooks too" in told
    assert "disableAllHooks" in told


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b'\xef\xbb\xbf{"hooks": {}}', "byte order mark"),
        ('{"hooks": {}, "나의 것": 1}'.encode(), "has the key"),
        (b'{"hooks": {}, "description": "mine"}', None),
        (b"", None),
        (None, None),
    ],
)
def test_a_hooks_file_of_which_codex_reads_nothing_is_told(
    machine: Machine, text: bytes | None, word: str | None
) -> None:
    if text is not None:
        machine.write(machine.codex, text)
    told = notes(machine)
    assert ("Codex reads nothing of it" in told) == (word is not None)
    assert (word or "") in told


def test_the_memorize_for_node_is_recognised_and_ours_is_not(machine: Machine) -> None:
    program = machine.write(
        machine.user / "bin" / "memorize", b"#!/home/x/venv/bin/python\nfrom memorize.cli.main import main\n"
    )
    assert "Node" not in notes(machine, "claude")
    program.write_bytes(b"#!/usr/bin/env node\nrequire('../dist/cli.js')\n")
    told = notes(machine, "claude")
    assert str(program) in told
    assert f'"{program} uninstall"' in told


def test_hooks_and_variables_of_the_memorize_for_node_are_recognised(machine: Machine) -> None:
    foreign = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "memorize hook claude Stop"}]}]}}
    machine.write(machine.claude, json.dumps(foreign).encode())
    machine.environ["MEMORIZE_ROOT"] = "/x"
    told = notes(machine, "claude")
    assert f"1 hooks in {machine.claude}" in told
    assert "MEMORIZE_ROOT" in told
    machine.setup("claude")
    assert json.loads(machine.claude.read_bytes())["hooks"]["Stop"][0] == foreign["hooks"]["Stop"][0]


def test_old_transcripts_are_counted(machine: Machine) -> None:
    for name in ("a/1.jsonl", "a/2.jsonl", "b/3.jsonl", "a/1/subagents/agent-1.jsonl"):
        machine.write(machine.user / ".claude" / "projects" / name, b"{}\n")
    machine.write(machine.user / ".codex/sessions/2026/11/29/rollout-2026-11-29T18-00-00-x.jsonl", b"{}\n")
    assert machine.plan().transcripts == {"claude": 3, "codex": 1}


def test_a_trust_note_needs_no_codex_configuration(tmp_path: Path) -> None:
    assert traces.codex_trust(tmp_path, tmp_path / "hooks.json", b'{"hooks": {}}') is None
