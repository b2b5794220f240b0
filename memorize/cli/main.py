"""The command ``memorize``: a table of verbs, each imported only when it is asked for."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

from memorize import __version__
from memorize.errors import CannotWrite, Deferred, Problem

# verb -> what it does, for "memorize --help", which so loads no verb. Sections as in the help.
SECTIONS: Final[dict[str, dict[str, str]]] = {
    "Start": {
        "setup": "Put the hooks into your agents' settings.",
        "uninstall": "Give the settings back as they were; the memory stays.",
        "status": "Show what is remembered, wired and waiting, on five lines.",
        "doctor": "Check everything, and say what to do about what is wrong.",
        "demo": "Show the whole idea in a minute, with a recorded session.",
    },
    "Memory": {
        "remember": "Remember a text as it stands.",
        "search": "Search the memories of this project and the personal ones.",
        "pack": "Print a context for a task.",
        "show": "Show a memory or event in full.",
        "list": "List the memories by importance and recency.",
        "edit": "Replace a memory; the old one stays in its history.",
        "forget": "Forget memories; restore brings them back.",
        "restore": "Bring back what was forgotten or replaced.",
        "pin": "Have a memory told first in every session.",
        "unpin": "Take back the pins of a memory.",
        "confirm": "Say that a memory is still true.",
        "history": "Show what happened to a memory.",
        "review": "Accept or reject what waits for you before it is told.",
        "erase": "Erase texts for good, on all devices.",
    },
    "Work": {
        "consolidate": "Form memories from what was observed, now.",
        "rules": "List what is told right before an action.",
        "conflicts": "List memories that are at odds, or alike and not judged.",
        "audit": "Have live memories judged anew.",
        "usage": "Show what models were asked and what it cost.",
        "import": "Form memories from an agent's old transcripts.",
        "sessions": "List the sessions of this project and what they edited.",
        "projects": "List every project; say which two are one.",
    },
    "Store": {
        "log": "Show the newest events.",
        "digest": "Print the digests of all events and of the state.",
        "verify": "Check the log, and mend it with --repair.",
        "rebuild": "Build the index anew from the log.",
        "config": "Show every setting with its value and meaning.",
    },
    "Sync": {
        "sync": "Exchange events with your other devices now.",
        "peer": "Pair devices that exchange events directly.",
        "key": "Carry the keys to another device, or renew them.",
    },
    "Run": {
        "daemon": "Start or stop the daemon, or show its status.",
        "serve": "Answer another device on standard input and output.",
        "version": "Show the version, and those of what it stands on.",
    },
}
_UNWRITABLE: Final = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM)
VERBS: Final = tuple(verb for verbs in SECTIONS.values() for verb in verbs)


class Verbs(click.Group):
    """A group whose commands live in ``memorize.cli.<verb>_cmd``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module and return its command."""
        if cmd_name not in VERBS:
            return None
        command = import_module(f"memorize.cli.{cmd_name}_cmd").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; name the nearest one when there is none."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as wrong:
            from difflib import get_close_matches

            if near := get_close_matches(args[0], VERBS, n=1):
                message = f'{wrong.message.rstrip(".")}; did you mean "{near[0]}"?'
                raise click.UsageError(message, ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section of help a group of verbs."""
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(verbs.items()))


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="memorize")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """One memory for your coding agents that outlives sessions, models and machines."""
    ctx.obj = {"debug": debug}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one verb and leave with the exit code of the error table (docs/errors.md)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    # "--debug" is understood anywhere, since it is added to a command that has just failed.
    words = (["--debug"] if debug else []) + [word for word in words if word != "--debug"]
    try:
        _run(words)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.Abort:
        click.echo("memorize: stopped; nothing more was changed", err=True)
        sys.exit(130)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except BrokenPipeError:
        # The reader (head, a pager) has enough. Python would complain again when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Deferred as deferred:
        _say_kept(deferred, "--json" in words)
    except Exception as error:
        if debug:
            raise
        problem = error if isinstance(error, Problem) else _unforeseen(error)
        click.echo(f"memorize: {problem}", err=True)
        click.echo(f"hint: {problem.remedy()}", err=True)
        sys.exit(problem.exit)


def _unforeseen(error: Exception) -> Problem:
    """Return what a person is told of an error for which there is no place in the table of errors."""
    if isinstance(error, OSError) and error.filename and error.errno in _UNWRITABLE:
        return CannotWrite(path=os.fsdecode(error.filename), detail=error.strerror or error)
    return Problem(detail=f"{type(error).__name__}: {error}")


def _say_kept(deferred: Deferred, as_json: bool) -> None:
    """Say that what was given is kept although nothing can be told of it yet."""
    if as_json:
        click.echo(json.dumps({"id": None, "waiting": True, "reason": str(deferred.reason)}, ensure_ascii=False))
    click.echo(f"memorize: {deferred.reason}", err=True)
    click.echo("It is kept in the spool, and a later command takes it in: do not give it again.", err=True)


def _run(words: Sequence[str]) -> None:
    """Run the verb; when the index turns out to be damaged, make it anew and run the verb once more.

    That is safe: verbs print when they know everything, and what they write twice counts once.
    """
    try:
        cli.main(args=list(words), prog_name="memorize", standalone_mode=False)
        return
    except Exception as error:
        if not _is_damage(error):
            raise
    from memorize.bootstrap import open_app

    open_app(os.environ).rebuild()
    click.echo("memorize: the index was damaged and was made anew from the log; nothing was lost", err=True)
    cli.main(args=list(words), prog_name="memorize", standalone_mode=False)


def _is_damage(error: Exception) -> bool:
    if isinstance(error, click.ClickException | click.exceptions.Exit | click.Abort | OSError):
        return False
    from memorize.index.damage import is_damage  # a verb that went well needs none of it

    return is_damage(error)


if __name__ == "__main__":
    main()
