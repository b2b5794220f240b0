"""State directories to measure on: captures of a coding agent in the spool, logs, stores of many memories.

Everything is drawn from a seed and goes the program's own way: spool file, ingester, index. Only the clock is set by
hand, so that a store holds a year of work. Payloads are the recorded ones of the agent with texts of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench.words import Author
from memorize.agents.hookfiles import put_hook_files
from memorize.bootstrap import App
from memorize.clock import SystemClock
from memorize.config import Config
from memorize.consolidate.windows import Found, Window, answer
from memorize.log.codec import new_header
from memorize.log.ingest import Ingester, Projection
from memorize.log.spool import put_batch, put_capture
from memorize.model import (
    MEMORY_FORMED,
    MEMORY_PINNED,
    MEMORY_SUPERSEDED,
    OBSERVED_EDIT,
    OBSERVED_PROMPT,
    SESSION_CLOSED,
    SESSION_OPENED,
    Draft,
    Event,
    Stored,
    text_key,
)
from memorize.paths import Home, adapters_dir

SEED: Final = 2026
DAY_MS: Final = 24 * 3600 * 1000
HISTORY_DAYS: Final = 365
_MEMORIES_A_WINDOW: Final = 8
_WINDOWS_A_ROUND: Final = 128
_CAPTURES_A_ROUND: Final = 4_096
_CALLS_A_SESSION: Final = 48
_PROJECTS: Final = 8
_KINDS: Final = {
    "fact": 25, "decision": 18, "constraint": 12, "failure": 12, "summary": 12, "preference": 8, "progress": 5,
    "question": 5, "rule": 3,
}  # fmt: skip
_PROJECT_FILES: Final = {
    ".git/HEAD": "ref: refs/heads/refund-api\n",
    ".git/config": '[remote "origin"]\n\turl = https://git.example.com/shop/checkout.git\n',
}


class Past:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.wall = SystemClock().wall_ms()
        self.mono = 10**15

    def set_back(self, days: float) -> None:
        """Let it be so many days ago."""
        self.wall = SystemClock().wall_ms() - int(days * DAY_MS)

    def go_on(self, ms: int) -> None:
        """Let time pass."""
        self.wall += ms
        self.mono += ms * 1_000_000

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ns(self) -> int:
        return self.mono

    def boot(self) -> bytes:
        return SystemClock().boot()

    def zone_minutes(self) -> int:
        return SystemClock().zone_minutes()


class Blind:
    """A projection that keeps nothing but what the ingester must know: for logs that are to be indexed later."""

    def __init__(self) -> None:
        self._top = 0
        self._offsets: dict[str, int] = {}
        self._known: dict[tuple[bytes, int], bytes] = {}

    def top(self) -> int:
        return self._top

    def offsets(self) -> Mapping[str, int]:
        return self._offsets

    def known(self, nonces: Sequence[bytes]) -> Mapping[tuple[bytes, int], bytes]:
        wanted = set(nonces)
        return {slot: identity for slot, identity in self._known.items() if slot[0] in wanted}

    def apply(self, events: Sequence[Stored], offsets: Mapping[str, int], received_ms: int) -> None:
        self._offsets.update(offsets)
        self._top = max([self._top, *(stored.event.header.lamport for stored in events)])
        self._known = {(stored.event.header.nonce, stored.event.header.ordinal): stored.event.id for stored in events}


def new_project(folder: Path) -> Path:
    """Make a checkout and return it."""
    for name, content in _PROJECT_FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


def new_app(root: Path, clock: Past | None = None) -> App:
    """Make a state directory with the hook's programs, from which no daemon is started."""
    home = Home(root)
    put_hook_files(home, sys.executable)
    (home.hook / "nodaemon").touch(mode=0o600)
    return App(home, Config(), clock or SystemClock())


def recorded(name: str) -> dict[str, Any]:
    """Return a recorded payload of Claude Code."""
    text = (adapters_dir() / "claude" / "fixtures" / f"{name}.json").read_text(encoding="utf-8")
    payload: dict[str, Any] = json.loads(text)["stdin"]
    return payload


class Agent:
    """Plays Claude Code at work in a checkout: an endless row of hook calls, each of which tells something.

    Events have about 500 bytes of payload in the mean. With ``silent`` also the calls that the agent makes but that
    leave no event: before a tool, after one that reads.
    """

    def __init__(self, project: Path, seed: int = SEED, *, silent: bool = False) -> None:
        names = "SessionStart UserPromptSubmit PreToolUse.Bash PostToolUse.Bash PostToolUseFailure.Bash"
        names += " PostToolUse.Write PostToolUse.Read Stop SessionEnd"
        self._payloads = {name: recorded(name) for name in names.split()}
        self._project = str(project)
        self._author = Author(seed)
        self._silent = silent
        self._session = ""

    def calls(self, count: int) -> Iterator[tuple[str, bytes]]:
        """Yield so many (event, payload)."""
        made = 0
        while True:
            self._session = f"{self._author.chance.getrandbits(128):032x}"
            for call in self._one_session():
                if made == count:
                    return
                yield call
                made += 1

    def _one_session(self) -> Iterator[tuple[str, bytes]]:
        write, chance = self._author, self._author.chance
        yield self._call("SessionStart", {"model": "a-model"})
        for number in range(_CALLS_A_SESSION):
            turn = number % 8
            if turn == 0:
                yield self._call("UserPromptSubmit", {"prompt": write.prose(chance.randrange(60, 500))})
            elif turn == 7:
                yield self._call("Stop", {"last_assistant_message": write.prose(chance.randrange(150, 700))})
            elif turn in (2, 5):
                yield self._edit()
            else:
                yield from self._command(failed=turn == 4)
        yield self._call("SessionEnd", {})

    def _command(self, *, failed: bool) -> Iterator[tuple[str, bytes]]:
        write = self._author
        given = {"command": write.command(), "description": write.words(6)}
        output = write.output(write.chance.randrange(40, 500))
        if self._silent:
            yield self._call("PreToolUse.Bash", {"tool_input": given})
            yield self._call("PostToolUse.Read", {"tool_input": {"file_path": f"{self._project}/{write.path()}"}})
        if failed:
            yield self._call("PostToolUseFailure.Bash", {"tool_input": given, "error": f"Exit code 1\n{output}"})
            return
        response = {**self._payloads["PostToolUse.Bash"]["tool_response"], "stdout": output}
        yield self._call("PostToolUse.Bash", {"tool_input": given, "tool_response": response})

    def _edit(self) -> tuple[str, bytes]:
        path = f"{self._project}/{self._author.path()}"
        lines = self._author.hunk(self._author.chance.randrange(3, 10))
        patch = {"oldStart": 3, "oldLines": 9, "newStart": 3, "newLines": 9, "lines": lines}
        response = {"type": "update", "filePath": path, "structuredPatch": [patch], "originalFile": None}
        given = {"file_path": path, "content": "\n".join(line[1:] for line in lines)}
        return self._call("PostToolUse.Write", {"tool_input": given, "tool_response": response})

    def _call(self, name: str, said: Mapping[str, Any]) -> tuple[str, bytes]:
        payload = {**self._payloads[name], "session_id": self._session, "cwd": self._project, **said}
        return name.partition(".")[0], json.dumps(payload, ensure_ascii=False).encode()


class Filler:
    """Fills a state directory with a past. ``blind`` writes the log alone and makes no index."""

    def __init__(self, root: Path, project: Path, seed: int = SEED, *, blind: bool = False) -> None:
        self.clock = Past()
        self.app = new_app(root, self.clock)
        self._author = Author(seed)
        self._agent = Agent(project, seed)
        self._projection: Projection = Blind() if blind else self.app.projector
        if not blind:
            self.app.ingest()
        self._ingester = Ingester(
            self.app.home, self.app.files, self.clock, self.app.identity, self.app.intake.normalise, self._projection
        )
        place = self.app.place(str(project))
        self._seen = self.app.intake.projects(place)
        self._projects = [
            place.project,
            *(f"{self._author.chance.getrandbits(128):032x}" for _ in range(_PROJECTS - 1)),
        ]

    def captures(self, count: int) -> None:
        """Add so many hook calls, as they come during the last year."""
        self.clock.set_back(HISTORY_DAYS)
        step = HISTORY_DAYS * DAY_MS // max(1, count)
        for start in range(0, count, _CAPTURES_A_ROUND):
            for event, payload in self._agent.calls(min(_CAPTURES_A_ROUND, count - start)):
                self.clock.go_on(step)
                put_capture(self.app.home, "claude", event, payload, self.clock, nonce=self._nonce())
            self._ingester.run()

    def memories(self, count: int) -> None:
        """Add so many memories, with the sessions that they were formed from, over the last year."""
        self.clock.set_back(HISTORY_DAYS)
        self._put(self._seen)
        windows = -(-count // _MEMORIES_A_WINDOW)
        step = HISTORY_DAYS * DAY_MS // windows
        left = count
        for start in range(0, windows, _WINDOWS_A_ROUND):
            sessions: list[tuple[Window, bytes]] = []
            for _ in range(min(_WINDOWS_A_ROUND, windows - start)):
                self.clock.go_on(step // 2)
                sessions.append(self._session())
            self._ingester.run()
            batches: list[tuple[bytes, list[Draft]]] = []
            for window, nonce in sessions:
                self.clock.go_on(step - step // 2)
                batches.append(self._consolidated(window, nonce, min(left, _MEMORIES_A_WINDOW)))
                left -= min(left, _MEMORIES_A_WINDOW)
            self._ingester.run()
            self._change(batches)

    def finish(self) -> App:
        """Close what is open, render the briefs and return the program for the state directory, at today's time."""
        self._ingester.close()
        self.app.close()
        today = App(self.app.home, Config(), SystemClock())
        today.refresh_briefs()
        return today

    def _nonce(self) -> bytes:
        return self._author.chance.randbytes(16)

    def _put(self, drafts: Sequence[Draft]) -> bytes:
        return put_batch(self.app.home, drafts, self.clock, nonce=self._nonce())

    def _session(self) -> tuple[Window, bytes]:
        """Put one session with a prompt and an edit into the spool; its ids are known once it is ingested."""
        write = self._author
        weights = [1 / place for place in range(1, _PROJECTS + 1)]
        project = write.chance.choices(self._projects, weights)[0]
        session = f"{write.chance.getrandbits(128):032x}"
        common = {
            "agent": "claude", "session": session, "project": project, "branch": "main", "head": "", "dir": "",
        }  # fmt: skip
        edit = {"path": write.path(), "op": "edit", "added": 3, "removed": 1, "diff": "\n".join(write.hunk(4))}
        drafts = [
            Draft(SESSION_OPENED, {**common, "source": "startup", "transcript": "", "model": "a-model"}, 0),
            Draft(OBSERVED_PROMPT, {**common, "text": write.prose(300)}, 1),
            Draft(OBSERVED_EDIT, {**common, **edit}, 2),
            Draft(SESSION_CLOSED, {**common, "reason": "other"}, 3),
        ]
        return Window("claude", session, project, ()), self._put(drafts)

    def _consolidated(self, window: Window, nonce: bytes, count: int) -> tuple[bytes, list[Draft]]:
        """Put memories and claim of a session's window into the spool."""
        known = self._projection.known([nonce])
        events = [Event(known[nonce, ordinal], new_header(b"", b"", b"", OBSERVED_PROMPT), {}) for ordinal in (1, 2)]
        sources = tuple(event.id for event in events)
        found = [self._memory(sources) for _ in range(count)]
        drafts = answer(window._replace(events=tuple(events)), found, "rules", self._nonce())
        return self._put(drafts), drafts

    def _memory(self, sources: tuple[bytes, ...]) -> Found:
        write, chance = self._author, self._author.chance
        kind = chance.choices(list(_KINDS), list(_KINDS.values()))[0]
        personal = kind in ("preference", "rule") and chance.random() < 0.5
        return Found(
            kind=kind,
            text=write.prose(chance.randrange(60, 220)),
            importance=min(10, max(1, round(chance.gauss(5, 2)))),
            scope="personal" if personal else "project",
            trust=chance.choice(("user", "agent", "agent")),
            confidence=70,
            sources=sources,
            branch="main",
            paths=(write.path(),) if chance.random() < 0.3 else (),
            tags=(),
            triggers=("git-push",) if kind == "rule" else (),
        )

    def _change(self, batches: Sequence[tuple[bytes, Sequence[Draft]]]) -> None:
        """Let the person pin a few of these memories and put others in new words, as happens to a few in hundred."""
        chance = self._author.chance
        known = self._projection.known([nonce for nonce, _ in batches])
        formed = [
            (known[nonce, draft.ordinal], draft.payload)
            for nonce, drafts in batches
            for draft in drafts
            if draft.kind == MEMORY_FORMED and (nonce, draft.ordinal) in known
        ]
        for identity, payload in chance.sample(formed, len(formed) // 30):
            text = self._author.prose(160)
            edited = {**payload, "text": text, "text_key": text_key(text), "trust": "user", "window": ""}
            self._put([Draft(MEMORY_FORMED, edited, 0), Draft(MEMORY_SUPERSEDED, {"reason": "edit"}, 1, (0, identity))])
        for identity, _ in chance.sample(formed, len(formed) // 300):
            self._put([Draft(MEMORY_PINNED, {}, 0, (identity,))])
        self._ingester.run()


def memory_store(folder: Path, count: int) -> tuple[App, Path]:
    """Return a store of ``count`` memories and its checkout below ``folder``; one that is there already is used."""
    root, project, mark = folder / f"m{count}", folder / "checkout", folder / f"m{count}.ready"
    if not mark.exists():
        filler = Filler(root, new_project(project))
        filler.memories(count)
        filler.finish().close()
        mark.touch()
    return App(Home(root), Config(), SystemClock()), project
