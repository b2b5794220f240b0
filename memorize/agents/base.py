"""What every agent's module offers, and the small values that the modules share.

An agent is a *module* that satisfies ``Agent``; the modules never import one another. The place of a working directory
is resolved by the index room and handed in, so that nothing here looks at a repository.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from memorize.model import Capture, Draft
from memorize.recall.words import Shell

if TYPE_CHECKING:  # to read payloads and transcripts takes tables of which these forms have no need
    from memorize.agents.transcripts import Head
    from memorize.agents.transcripts import Line as Spoken


class Place(Protocol):
    """Where a directory lies: its project, and what the ``.git`` files say of branch and HEAD."""

    @property
    def project(self) -> str:
        """The project's key, 32 hex digits."""
        ...

    @property
    def name(self) -> str:
        """The project's name for people."""
        ...

    @property
    def identities(self) -> Sequence[tuple[str, str]]:
        """(kind, value) of every identity found, the strongest first."""
        ...

    @property
    def root(self) -> str:
        """The top of the checkout, an absolute path."""
        ...

    @property
    def dir(self) -> str:
        """The directory relative to ``root``, with ``/``; empty at the top."""
        ...

    @property
    def branch(self) -> str:
        """The branch checked out, or empty."""
        ...

    @property
    def head(self) -> str:
        """The commit checked out, or empty."""
        ...

    @property
    def capture_off(self) -> bool:
        """Whether the person asked not to be remembered here."""
        ...


Locate = Callable[[str], Place]


class Target(NamedTuple):
    """A file that is about to be written: its path in the checkout that it lies in, and that checkout's branch."""

    path: str
    branch: str


class Intent(NamedTuple):
    """Who is about to do what, and where. ``command`` is empty where no shell is asked, ``targets`` where no file is.

    ``cwd`` is the working directory, absolute; ``shell``: whose grammar the command follows.
    """

    agent: str
    session: str
    cwd: str
    place: Place
    command: str = ""
    targets: tuple[Target, ...] = ()
    shell: Shell = "posix"


class Found(NamedTuple):
    """What was seen of an agent on this machine. ``root`` is its directory of settings, ``program`` its command."""

    agent: str
    root: Path
    program: str | None

    @property
    def present(self) -> bool:
        """Whether the agent is, or was, in use here."""
        return self.program is not None or self.root.is_dir()


class Entry(NamedTuple):
    """One hook of ours in an agent's settings. ``matcher`` None means every occasion; ``timeout`` in seconds."""

    event: str
    command: str
    timeout: int
    matcher: str | None = None


class Piece(NamedTuple):
    """Text that an edit inserted, and its offset, in characters, in the text after the edit."""

    offset: int
    text: str


class Edit(NamedTuple):
    """A settings file before and after. ``before`` None: it was not there; ``after`` None: it is to be deleted."""

    before: bytes | None
    after: bytes | None
    pieces: tuple[Piece, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.before != self.after


# Makes the command line for one event (``edit.hook_line`` with everything else bound).
Line = Callable[[str], str]


class Agent(Protocol):
    """One coding agent. Everything but ``detect`` and the finding of transcripts is pure."""

    @property
    def name(self) -> str:
        """The name in the hook line and in every event."""
        ...

    def detect(self, environ: Mapping[str, str], user: Path) -> Found:
        """Look for the agent; ``user`` is the person's home directory."""
        ...

    def settings(self, root: Path, project: Path | None) -> Path:
        """Return the file that holds the hooks: the person's, or the local one of ``project``."""
        ...

    def parse(self, capture: Capture, locate: Locate) -> list[Draft]:
        """Return what a hook call tells. Raises ``Unreadable`` when its payload cannot be read."""
        ...

    def intent(self, capture: Capture, locate: Locate) -> Intent | None:
        """Return what the call before a tool is about to do. Raises ``Unreadable`` as ``parse`` does."""
        ...

    def boundary(self, capture: Capture) -> str | None:
        """Return ``start``, ``compact`` or ``end`` when the call marks a boundary of the session."""
        ...

    def render(self, event: str, text: str) -> bytes:
        """Return the bytes to print so that the agent takes ``text`` in; empty where the event cannot answer."""
        ...

    def plan_install(self, text: bytes | None, line: Line, path: str) -> Edit:
        """Return the settings ``text`` with our hooks. Raises ``UnreadableSettings``, naming ``path``."""
        ...

    def plan_uninstall(self, text: bytes | None, path: str) -> Edit:
        """Return the settings ``text`` without any hook of ours. Raises ``UnreadableSettings``."""
        ...

    def transcript_files(self, root: Path, *, parts: bool = False) -> Iterator[Path]:
        """Yield the files of old sessions; with ``parts`` those of their subagents too."""
        ...

    def transcript_parts(self, transcript: Path) -> list[Path]:
        """Return the transcripts of the subagents of the session that a transcript is of."""
        ...

    def transcript_head(self, chunk: bytes, path: Path) -> Head:
        """Return which session a transcript is of, by its name and the beginning of its text."""
        ...

    def transcript_lines(self, chunk: bytes, start: int) -> list[Spoken]:
        """Return the messages on the whole lines of a chunk that begins at an offset of a transcript."""
        ...


def program_on_path(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the path of a command, or None."""
    return shutil.which(name, path=environ.get("PATH", ""))


def directory(environ: Mapping[str, str], variable: str, default: Path) -> Path:
    """Return the directory that ``variable`` names, else ``default``."""
    chosen = environ.get(variable, "")
    return Path(chosen).expanduser().absolute() if chosen else default
