"""The installed files, and what the hook loads."""

from __future__ import annotations

import importlib.util
import marshal
import shutil
import stat
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from memorize.capture import memorize_hook
from memorize.capture.install import compiled, hook_files, install_hook
from tests.capture.kit import PATIENCE_S, PAYLOAD, FakeDaemon, Hook, framed, modules_loaded, replying

ALLOWED = {"posix", "nt", "time", "zlib", "_thread"}
ANSWERING = ["SessionStart", "UserPromptSubmit", "PreToolUse"]


def _frozen() -> set[str]:
    import _imp

    return set(_imp._frozen_module_names())  # type: ignore[attr-defined]


@pytest.mark.parametrize("event", ["PostToolUse", *ANSWERING])
@pytest.mark.parametrize("daemon", [False, True])
def test_the_hook_loads_only_what_the_list_allows(hook: Hook, event: str, daemon: bool) -> None:
    bare = modules_loaded([sys.executable, "-I", "-S", "-c", "pass"], hook.environ(), hook.cwd)
    if daemon:
        with FakeDaemon(hook.root, replying(framed(b"text"))):
            loaded = modules_loaded(hook.command("claude", event), hook.environ(), hook.cwd, PAYLOAD)
    else:
        loaded = modules_loaded(hook.command("claude", event), hook.environ(), hook.cwd, PAYLOAD)
    assert "zlib" in loaded or "zlib" in sys.builtin_module_names
    more = loaded - bare - _frozen() - ALLOWED
    assert more <= ({"_socket"} if daemon and event in ANSWERING else set())


@pytest.mark.parametrize("plain", [False, True], ids=["installed", "source"])
def test_no_python_file_is_loaded(hook: Hook, plain: bool) -> None:
    if plain:
        shutil.copy(memorize_hook.__file__, hook.program)

    def loaded(*words: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-v", *words],
            input=PAYLOAD,
            capture_output=True,
            cwd=hook.cwd,
            env=hook.environ(),
            timeout=PATIENCE_S,
            check=True,
        )
        lines = done.stderr.decode("utf-8", "replace").splitlines()
        return {
            line.partition(" object at ")[0] for line in lines if "SourceFileLoader" in line or ".pyc matches" in line
        }

    with FakeDaemon(hook.root, replying(framed(b"text"))) as daemon:
        assert loaded(*hook.command("claude", "SessionStart")[1:]) == loaded("-I", "-S", "-c", "pass")
    assert len(daemon.lines) == 1


def test_the_program_files_are_private_and_written_only_when_they_changed(tmp_path: Path) -> None:
    folder = tmp_path / "상태" / "hook"
    assert install_hook(folder) == tuple(hook_files())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.name for path in folder.iterdir()) == sorted(hook_files())
    assert install_hook(folder) == ()
    (folder / "memorize_hook.code").write_bytes(b"old")
    assert install_hook(folder) == ("memorize_hook.code",)


def _missing(code: Path) -> None:
    code.unlink()


def _other_python(code: Path) -> None:
    code.write_bytes(b"\0\0\r\n" + code.read_bytes()[4:])


def _torn(code: Path) -> None:
    code.write_bytes(code.read_bytes()[:-100])


def _zeros(code: Path) -> None:
    code.write_bytes(b"\0" * code.stat().st_size)


def _flipped(code: Path) -> None:
    data = bytearray(code.read_bytes())
    data[len(data) // 2] ^= 0xFF
    code.write_bytes(data)


def _no_code(code: Path) -> None:
    body = marshal.dumps(None)[:0]
    code.write_bytes(importlib.util.MAGIC_NUMBER + f"{zlib.crc32(body):08x}".encode() + body)


@pytest.mark.parametrize("spoil", [_missing, _other_python, _torn, _zeros, _flipped, _no_code])
def test_without_its_compiled_code_the_hook_runs_from_source(hook: Hook, spoil: Callable[[Path], None]) -> None:
    spoil(hook.root / "hook" / "memorize_hook.code")
    with FakeDaemon(hook.root, replying(framed(b"text"))):
        assert hook.run("claude", "SessionStart") == b"text"
    assert hook.captures() == [("claude", "SessionStart", False, PAYLOAD)]


def test_without_code_and_source_the_hook_is_silent(hook: Hook) -> None:
    for name in ("memorize_hook.code", "memorize_hook.source"):
        (hook.root / "hook" / name).unlink()
    assert hook.run("claude", "SessionStart") == b""
    (hook.root / "hook" / "memorize_hook.source").write_text("this is no program")
    assert hook.run("claude", "SessionStart") == b""
    (hook.root / "hook" / "memorize_hook.source").write_text("1 / 0")
    assert hook.run("claude", "SessionStart") == b""


def test_a_plain_copy_of_the_source_works_too(hook: Hook) -> None:
    for path in (hook.root / "hook").iterdir():
        path.unlink()
    shutil.copy(memorize_hook.__file__, hook.program)
    assert hook.run("claude", "SessionStart") == b""
    assert hook.captures() == [("claude", "SessionStart", False, PAYLOAD)]


def test_the_code_file_is_the_same_each_time() -> None:
    source = Path(memorize_hook.__file__).read_bytes()
    assert compiled(source) == compiled(source)
