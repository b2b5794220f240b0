"""What all verbs share: data on standard output, everything else on standard error, one JSON document a call."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from memorize.errors import NobodyToAsk

if TYPE_CHECKING:
    from memorize.bootstrap import App

# So long a verb waits for an index that another program has locked.
PATIENCE_S: Final = 2.0

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
here_option = click.option(
    "--project",
    "directory",
    default=".",
    show_default="this directory",
    type=click.Path(exists=True, file_okay=False),
    help="A directory of the project that is meant.",
)


def app() -> App:
    """Return the program's parts for this process's environment."""
    from memorize.agents.hookfiles import follow_start
    from memorize.bootstrap import open_app  # help and version need none of it

    parts = open_app(os.environ, patience_s=PATIENCE_S)
    parts.note = lambda problem: tell(f"note: {problem}")
    if (context := click.get_current_context(silent=True)) is not None:
        context.call_on_close(parts.close)
    follow_start(parts.home, parts.config.daemon)
    return parts


def say(text: str = "") -> None:
    """Print a line of data. Text that the terminal's encoding lacks is replaced, never an error."""
    try:
        click.echo(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding or "ascii"
        click.echo(text.encode(encoding, "replace").decode(encoding))


def tell(text: str) -> None:
    """Print a line that is not data."""
    click.echo(text, err=True)


def confirm(question: str, *, abort: bool = True) -> bool:
    """Ask a person yes or no; with ``abort`` a no leaves with code 130. Raises NobodyToAsk where is no terminal."""
    if not sys.stdin.isatty():
        raise NobodyToAsk(question=question)
    return click.confirm(question, abort=abort, err=True)


def document(value: Mapping[str, Any]) -> None:
    """Print one JSON document; ids are full hex."""
    say(json.dumps(value, ensure_ascii=False, indent=2, default=_plain))


def listing(items: Iterable[Mapping[str, Any]], total: int) -> None:
    """Print a list as every reading verb does: ``{"items": [...], "total": n}``."""
    document({"items": list(items), "total": total})


def text_of(words: tuple[str, ...]) -> str:
    """Return the text that a verb was given: its words, or standard input for a single ``-``."""
    if words == ("-",):
        return sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    return " ".join(words).strip()


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, frozenset | set):
        return sorted(value)
    return str(value)


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error while ``advance(done, total)`` is called; none when that is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
