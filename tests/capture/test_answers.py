"""What comes out: the daemon's answer, the stored brief, the lean child's output, and nothing else."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memorize.capture.memorize_hook import brief_key, parse_name, socket_path
from memorize.index.schema import create
from tests.capture.kit import PATIENCE_S, PAYLOAD, Answer, FakeDaemon, Hook, finish, framed, replying

TEXT = '{"hookSpecificOutput":{"additionalContext":"결정: 저장은 파일로"}}'.encode()
EVENTS = ["SessionStart", "UserPromptSubmit", "PreToolUse"]
RECORD = '{"event":"SessionStart","items":[["ab","고정",900000]],"tokens":12}'


def store_brief(hook: Hook, text: bytes, record: str = RECORD, agent: str = "claude", cwd: str = "") -> Path:
    name, head = brief_key(agent, cwd or str(hook.cwd))
    path = hook.root / "hook" / "briefs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(head + record.encode() + b"\n" + text)
    return path


def delivered(hook: Hook) -> list[bytes]:
    return [data for agent, event, _, data in hook.captures() if (agent, event) == ("memorize", "delivered")]


@pytest.mark.parametrize("event", [*EVENTS, "session_start", "beforeAgent", "userPromptSubmitted", "pre-tool-use"])
def test_the_daemons_answer_is_printed_and_it_was_asked_with_the_name_of_the_file(hook: Hook, event: str) -> None:
    with FakeDaemon(hook.root, replying(framed(TEXT))) as daemon:
        assert hook.run("claude", event) == TEXT
    (path,) = (hook.root / "spool" / "new").iterdir()
    assert daemon.lines == [f"A {path.name}\n".encode()]
    assert hook.captures() == [("claude", event.replace("-", "_"), False, PAYLOAD)]
    assert not (hook.root / "hook" / "late").exists()


@pytest.mark.parametrize("event", ["PostToolUse", "Stop", "SessionEnd", "PreCompact", "something"])
def test_other_events_ask_nobody(hook: Hook, event: str) -> None:
    with FakeDaemon(hook.root, replying(framed(TEXT))) as daemon:
        assert hook.run("claude", event) == b""
    assert daemon.lines == []
    assert len(hook.captures()) == 1


REPLIES = {
    "silence": [b"0\n"],
    "nothing": [],
    "no length": [TEXT],
    "a word": [b"error\n" + TEXT],
    "short": [b"400\n", TEXT],
    "one byte short": [framed(TEXT)[:-1]],
    "too long": [framed(TEXT) + b"x"],
    "negative": [b"-1\n" + TEXT],
    "signed": [b"+5\nabcde"],
    "other digits": "٥\nabcde".encode(),
    "huge": [b"99999999999999999999\n" + TEXT],
    "many digits": [b"9" * 50_000 + b"\n"],
    "half a length": [b"12"],
    "too much": [framed(b"x" * 70_000)],
    "binary": [bytes(range(256))],
}


@pytest.mark.parametrize("parts", REPLIES.values(), ids=REPLIES.keys())
@pytest.mark.parametrize("event", ["SessionStart", "PreToolUse"])
def test_anything_but_a_complete_reply_is_silence(hook: Hook, parts: list[bytes] | bytes, event: str) -> None:
    store_brief(hook, b"not this")
    answer = replying(*([parts] if isinstance(parts, bytes) else parts))
    with FakeDaemon(hook.root, answer) as daemon:
        assert hook.run("claude", event) == b""
    assert len(daemon.lines) == 1
    assert delivered(hook) == []


def test_a_reply_in_pieces_is_put_together(hook: Hook) -> None:
    def answer(wire: socket.socket, line: bytes) -> None:
        for number in range(0, len(reply), 10):
            wire.sendall(reply[number : number + 10])

    reply = framed(TEXT)
    with FakeDaemon(hook.root, answer):
        assert hook.run("claude", "SessionStart") == TEXT


def test_a_reply_of_the_greatest_size_is_printed_whole(hook: Hook) -> None:
    text = b"\xea\xb8\xb0" * 20_000
    with FakeDaemon(hook.root, replying(framed(text))):
        assert hook.run("claude", "SessionStart") == text


def slow(wire: socket.socket, line: bytes) -> None:
    time.sleep(0.6)
    wire.sendall(framed(TEXT))


def dripping(wire: socket.socket, line: bytes) -> None:
    for byte in framed(TEXT):
        wire.sendall(bytes([byte]))
        time.sleep(0.05)


@pytest.mark.parametrize("answer", [slow, dripping, None], ids=["slow", "dripping", "never accepts"])
@pytest.mark.parametrize("event", EVENTS)
def test_a_missed_deadline_is_silence_and_spares_the_next_call(hook: Hook, answer: Answer | None, event: str) -> None:
    late = hook.root / "hook" / "late"
    with FakeDaemon(hook.root, answer) as daemon:
        assert hook.run("claude", event) == b""
        assert late.stat().st_size == 1
        asked = len(daemon.lines)
        assert hook.run("claude", event) == b""
        assert len(daemon.lines) == asked
    long_ago = time.time() - 31
    os.utime(late, (long_ago, long_ago))
    with FakeDaemon(hook.root, replying(framed(TEXT))) as daemon:
        assert hook.run("claude", event) == TEXT
    assert len(hook.captures()) == 3


def test_a_late_mark_from_the_future_does_not_count(hook: Hook) -> None:
    late = hook.root / "hook" / "late"
    late.touch()
    os.utime(late, (time.time() + 9999,) * 2)
    with FakeDaemon(hook.root, replying(framed(TEXT))):
        assert hook.run("claude", "UserPromptSubmit") == TEXT


def test_a_daemon_that_is_late_at_session_start_leaves_the_stored_brief(hook: Hook) -> None:
    store_brief(hook, TEXT)
    with FakeDaemon(hook.root, slow):
        assert hook.run("claude", "SessionStart") == TEXT
        assert hook.run("claude", "SessionStart") == TEXT
    assert len(delivered(hook)) == 2


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("kind", ["stale socket", "file", "directory"])
def test_a_socket_that_nobody_listens_to_is_no_daemon(hook: Hook, event: str, kind: str) -> None:
    path = hook.root / "hook" / "daemon.sock"
    if kind == "stale socket":
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
    elif kind == "file":
        path.touch()
    else:
        path.mkdir()
    store_brief(hook, TEXT)
    assert hook.run("claude", event) == (TEXT if event == "SessionStart" else b"")
    assert not (hook.root / "hook" / "late").exists()


def test_a_long_home_uses_a_socket_in_a_private_directory(hook: Hook, tmp_path: Path) -> None:
    hook = Hook(tmp_path / ("아주 긴 이름 " * 9).strip(), hook.cwd)
    path = Path(socket_path(str(hook.root)))
    path.parent.mkdir(mode=0o700)
    try:
        with FakeDaemon(hook.root, replying(framed(TEXT))) as daemon:
            assert hook.run("claude", "SessionStart") == TEXT
            path.parent.chmod(0o755)
            assert hook.run("claude", "SessionStart") == b""
            path.parent.chmod(0o700)
        assert len(daemon.lines) == 1
    finally:
        path.parent.rmdir()


def test_a_reader_that_is_gone_is_no_failure(hook: Hook) -> None:
    with FakeDaemon(hook.root, replying(framed(TEXT))):
        source, sink = os.pipe()
        os.close(source)
        process = subprocess.Popen(
            hook.command("claude", "SessionStart"),
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=subprocess.PIPE,
            cwd=hook.cwd,
            env=hook.environ(),
        )
        os.close(sink)
        assert process.communicate(PAYLOAD, timeout=PATIENCE_S)[1] == b""
        assert process.returncode == 0
    assert hook.captures() == [("claude", "SessionStart", False, PAYLOAD)]


@pytest.mark.parametrize("text", [TEXT, b"two\nlines\n", "여러 줄\n\n끝".encode(), b"\xff\x00"])
def test_without_a_daemon_the_stored_brief_is_printed_once_and_noted(hook: Hook, text: bytes) -> None:
    store_brief(hook, text)
    assert hook.run("claude", "SessionStart") == text
    (nonce,) = hook.nonces("SessionStart")
    assert delivered(hook) == [f"{nonce.hex()}\n{RECORD}".encode()]


@pytest.mark.parametrize(("text", "record", "noted"), [(b"", RECORD, 0), (TEXT, "", 0), (TEXT, RECORD, 1)])
def test_only_what_was_printed_is_noted(hook: Hook, text: bytes, record: str, noted: int) -> None:
    store_brief(hook, text, record)
    assert hook.run("claude", "SessionStart") == text
    assert len(delivered(hook)) == noted


def test_a_brief_of_another_directory_or_agent_is_not_printed(hook: Hook) -> None:
    path = store_brief(hook, TEXT)
    right = path.read_bytes()
    path.write_bytes(right.replace(b"claude\t", b"codex\t"))
    assert hook.run("claude", "SessionStart") == b""
    path.write_bytes(right.replace(b"/repo\n", b"/repo/deeper\n"))
    assert hook.run("claude", "SessionStart") == b""
    path.write_bytes(b"")
    assert hook.run("claude", "SessionStart") == b""
    path.write_bytes(right)
    assert hook.run("codex", "SessionStart") == b""
    assert hook.run("claude", "UserPromptSubmit") == b""
    assert hook.run("claude-code", "SessionStart") == TEXT
    assert len(delivered(hook)) == 1


def test_a_directory_with_a_newline_in_its_name_has_a_brief_too(hook: Hook, tmp_path: Path) -> None:
    folder = tmp_path / "두\n줄"
    folder.mkdir()
    store_brief(hook, TEXT, cwd=str(folder))
    assert hook.run("claude", "SessionStart", cwd=folder) == TEXT


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_the_locale_of_the_agent_does_not_matter(hook: Hook, tmp_path: Path, locale: str) -> None:
    folder = tmp_path / "한국어 폴더"
    folder.mkdir()
    store_brief(hook, TEXT, cwd=str(folder))
    assert hook.run("claude", "SessionStart", cwd=folder, environ={"LC_ALL": locale, "LANG": locale}) == TEXT
    (hook.root / "exclude").write_text(f"{folder}\n", encoding="utf-8")
    assert hook.run("claude", "SessionStart", cwd=folder, environ={"LC_ALL": locale, "LANG": locale}) == b""


def make_index(hook: Hook, place: str, agent: str = "claude", text: str = TEXT.decode(), record: str = RECORD) -> None:
    index = create(hook.root / "index.sqlite")
    index.execute("insert into places values ('other', ?, 'old', 1, x'01')", (place,))
    index.execute("insert into places values ('device', ?, 'key', 2, x'02')", (place,))
    index.execute("insert into projects values ('key', 'root', '이름', 2, x'02')")
    index.execute("insert into briefs values (?, '/어딘가', 'root', ?, ?)", (agent, record, text))
    index.execute("insert into briefs values (?, '/else', 'old', '{}', 'wrong')", (agent,))
    index.commit()
    index.close()


@pytest.mark.parametrize("depth", [0, 3])
def test_without_a_brief_file_the_lean_child_reads_the_index(hook: Hook, depth: int) -> None:
    make_index(hook, str(hook.cwd))
    inside = hook.cwd.joinpath(*["안"] * depth)
    inside.mkdir(parents=True, exist_ok=True)
    assert hook.run("claude", "SessionStart", cwd=inside) == TEXT
    (note,) = delivered(hook)
    nonce, _, record = note.partition(b"\n")
    assert bytes.fromhex(nonce.decode()) == hook.nonces("SessionStart")[0]
    assert record.decode() == RECORD


def test_the_lean_child_prefers_the_brief_of_the_very_directory(hook: Hook) -> None:
    make_index(hook, str(hook.cwd))
    inside = hook.cwd / "안쪽"
    inside.mkdir()
    with sqlite3.connect(hook.root / "index.sqlite") as index:
        index.execute("insert into briefs values ('claude', ?, 'root', '{}', 'here')", (str(inside),))
    index.close()
    assert hook.run("claude", "SessionStart", cwd=inside) == b"here"
    assert hook.run("claude", "SessionStart") == TEXT


def test_the_lean_child_does_not_leave_the_repository(hook: Hook) -> None:
    make_index(hook, str(hook.cwd))
    other = hook.cwd / "vendor" / "other"
    (other / "src").mkdir(parents=True)
    assert hook.run("claude", "SessionStart", cwd=other / "src") == TEXT
    (other / ".git").write_text("gitdir: elsewhere")
    assert hook.run("claude", "SessionStart", cwd=other / "src") == b""


def test_the_lean_child_is_silent_about_what_it_does_not_know(hook: Hook, tmp_path: Path) -> None:
    assert hook.run("claude", "SessionStart") == b""  # no index
    (hook.root / "index.sqlite").write_bytes(b"\0" * 5000)
    assert hook.run("claude", "SessionStart") == b""
    (hook.root / "index.sqlite").unlink()
    make_index(hook, str(hook.cwd), agent="codex")
    assert hook.run("claude", "SessionStart") == b""
    assert hook.run("codex", "SessionStart", cwd=tmp_path) == b""
    assert hook.run("codex", "SessionStart") == TEXT


@pytest.mark.parametrize(("text", "record"), [("", RECORD), (TEXT.decode(), '{"two":\n"lines"}')])
def test_the_lean_child_prints_no_half_answer(hook: Hook, text: str, record: str) -> None:
    make_index(hook, str(hook.cwd), text=text, record=record)
    assert hook.run("claude", "SessionStart") == b""


def test_a_locked_index_is_silence(hook: Hook) -> None:
    make_index(hook, str(hook.cwd))
    index = sqlite3.connect(hook.root / "index.sqlite", isolation_level=None)
    assert index.execute("pragma journal_mode = delete").fetchone() == ("delete",)
    index.execute("BEGIN EXCLUSIVE")
    assert hook.run("claude", "SessionStart") == b""
    index.rollback()
    assert hook.run("claude", "SessionStart") == TEXT
    index.close()


def ended(pid: int) -> bool:
    for _ in range(PATIENCE_S * 50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


LEAN = {
    "fails after printing": 'print("{}\\ntext"); sys.exit(3)',
    "prints one line": 'print("only one line", end="")',
    "prints too much": 'print("{}"); print("x" * 100_000)',
    "is wrong": "what is this",
    "is killed": 'print("{}\\ntext", flush=True); os.kill(os.getpid(), 9)',
    "prints on stderr": 'print("{}\\ntext", file=sys.stderr)',
    "sleeps": 'print("{}\\ntext", flush=True); time.sleep(60)',
    "closes and sleeps": 'print("{}\\ntext", flush=True); os.close(1); time.sleep(60)',
}


@pytest.mark.parametrize("body", LEAN.values(), ids=LEAN.keys())
def test_a_lean_child_that_misbehaves_is_not_heard_and_does_not_stay(hook: Hook, body: str) -> None:
    noted = hook.root / "pid"
    program = hook.root / "hook" / "memorize_lean.py"
    program.write_text(f"import os, sys, time\nopen({str(noted)!r}, 'w').write(str(os.getpid()))\n{body}\n")
    assert hook.run("claude", "SessionStart") == b""
    assert delivered(hook) == []
    if noted.exists():
        assert ended(int(noted.read_text()))


def test_before_a_tool_the_lean_child_runs_only_when_the_payload_holds_a_trigger(hook: Hook) -> None:
    (hook.root / "hook" / "memorize_lean.py").write_text("import sys\nprint()\nprint(*sys.argv[1:], end='')\n")
    payload = '{"tool_input":{"command":"git push # 올리기"}}'.encode()
    assert hook.run("claude", "PreToolUse", data=payload) == b""
    triggers = hook.root / "hook" / "triggers"
    triggers.write_bytes(b"\ngh pr\n\n")
    assert hook.run("claude", "PreToolUse", data=payload) == b""
    triggers.write_bytes("gh pr\n올리기\n".encode())
    assert hook.run("claude", "PostToolUse", data=payload) == b""
    assert hook.run("claude", "UserPromptSubmit", data=payload) == b""
    agent, *middle, nonce, event, name = hook.run("claude", "PreToolUse", data=payload).decode().split(" ")
    assert (agent, " ".join(middle), event) == ("claude", str(hook.cwd), "PreToolUse")
    parsed = parse_name(name)
    assert parsed is not None
    assert parsed[1].hex() == nonce
    assert (hook.root / "spool" / "new" / name).read_bytes() == payload


def test_without_the_whole_program_the_lean_child_has_nothing_to_say_before_a_tool(hook: Hook) -> None:
    make_index(hook, str(hook.cwd))
    (hook.root / "hook" / "triggers").write_bytes(b"git push\n")
    assert hook.run("claude", "PreToolUse", data=b"git push") == b""


@pytest.mark.parametrize("answer", [slow, None], ids=["slow", "never accepts"])
def test_before_a_tool_a_daemon_that_is_late_is_no_reason_to_start_a_program(hook: Hook, answer: Answer | None) -> None:
    (hook.root / "hook" / "memorize_lean.py").write_text("print('\\n규칙', end='')\n")
    (hook.root / "hook" / "triggers").write_bytes(b"git push\n")
    with FakeDaemon(hook.root, answer):
        for _ in range(2):  # the second call finds the mark of the first
            assert hook.run("claude", "PreToolUse", data=b"git push") == b""
    (hook.root / "hook" / "late").unlink()
    assert hook.run("claude", "PreToolUse", data=b"git push") == "규칙".encode()


DAEMON = """
import json, os, sys, time
null = os.stat("/dev/null").st_rdev
opened = []
for number in range(3, 256):
    try:
        os.fstat(number)
        opened.append(number)
    except OSError:
        pass
facts = {
    "null": [os.fstat(number).st_rdev == null for number in (0, 1, 2)],
    "leader": os.getsid(0) == os.getpid(),
    "pid": os.getpid(),
    "opened": opened,
    "home": os.environ["MEMORIZE_HOME"],
    "isolated": sys.flags.isolated,
}
path = os.environ["MEMORIZE_HOME"] + "/facts"
with open(path + ".new", "a") as file:
    file.write(json.dumps(facts) + "\\n")
os.rename(path + ".new", path)
time.sleep(60)
"""


def facts_of(hook: Hook) -> dict[str, object]:
    path = hook.root / "facts"
    for _ in range(PATIENCE_S * 50):
        if path.exists():
            found: dict[str, object] = json.loads(path.read_text())
            return found
        time.sleep(0.02)
    raise AssertionError("the daemon was not started")


def test_session_start_starts_the_daemon_and_nobody_waits_for_it(hook: Hook) -> None:
    (hook.root / "hook" / "memorize_daemon.py").write_text(DAEMON)
    store_brief(hook, TEXT)
    source, sink = os.pipe()  # a descriptor that the agent leaves open by mistake
    process = hook.start("claude", "SessionStart", pass_fds=(sink,))
    os.close(sink)
    assert finish(process, PAYLOAD) == (0, TEXT, b"")
    assert os.read(source, 1) == b""
    os.close(source)
    facts = facts_of(hook)
    pid = int(str(facts.pop("pid")))
    os.kill(pid, 0)  # it is still there although all our streams have ended
    os.kill(pid, 9)
    assert facts == {
        "null": [True] * 3,
        "leader": True,
        "opened": [],
        "home": str(hook.root),
        "isolated": 1,
    }


@pytest.mark.parametrize("event", ["SessionEnd", "PreCompact"])
def test_what_ends_a_session_starts_the_daemon_too_so_that_it_is_consolidated(hook: Hook, event: str) -> None:
    program = hook.root / "hook" / "memorize_daemon.py"
    program.write_text(DAEMON.replace("time.sleep(60)", ""))
    assert hook.run("claude", event) == b""
    assert facts_of(hook)["isolated"] == 1


def test_the_daemon_is_started_only_when_it_may_be_needed(hook: Hook) -> None:
    program = hook.root / "hook" / "memorize_daemon.py"
    started, never = hook.root / "hook" / "started", hook.root / "hook" / "nodaemon"
    program.write_text("import os\nopen(os.environ['MEMORIZE_HOME'] + '/facts', 'w')\n")
    for event in ("UserPromptSubmit", "PreToolUse", "Stop"):
        hook.run("claude", event)
    never.touch()
    hook.run("claude", "SessionStart")
    never.unlink()
    with FakeDaemon(hook.root, replying(b"0\n")):
        hook.run("claude", "SessionStart")
    assert not started.exists()
    started.touch()
    hook.run("claude", "SessionStart")
    time.sleep(0.2)
    assert not (hook.root / "facts").exists()
    long_ago = time.time() - 60
    os.utime(started, (long_ago, long_ago))
    hook.run("claude", "SessionStart")
    assert started.stat().st_mtime > long_ago + 1
    for _ in range(PATIENCE_S * 50):
        if (hook.root / "facts").exists():
            break
        time.sleep(0.02)
    assert (hook.root / "facts").exists()


def test_without_an_interpreter_to_name_there_is_no_child(hook: Hook) -> None:
    store_brief(hook, TEXT)
    (hook.root / "hook" / "memorize_daemon.py").write_text("raise SystemExit")
    code = f"import sys; sys.executable = '/없음'; sys.argv = {hook.command('claude', 'SessionStart')[3:]!r}; "
    code += f"exec(open({str(hook.program)!r}).read(), {{'__name__': '__main__', '__file__': {str(hook.program)!r}}})"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], input=PAYLOAD, capture_output=True, cwd=hook.cwd, env=hook.environ()
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, TEXT, b"")
