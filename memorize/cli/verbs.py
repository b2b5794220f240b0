"""The verbs of ``memorize``: each is imported when it is asked for."""

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
from memorize.cli.table import ABOUT, COLUMNS_MAX, SECTIONS, VERBS
from memorize.errors import CannotWrite, Deferred, Problem


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


_UNWRITABLE: Final = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM)
_SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": COLUMNS_MAX}


@click.command(cls=Verbs, help=ABOUT, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="memorize")
@click.option("--debug", is_flag=True, help="Show a traceback when something goes wrong.")
@click.pass_context
def cli(ctx: click.Context, debug: bool) -> None:
    """Run a verb."""
    ctx.obj = {"debug": debug}


def run(words: Sequence[str]) -> None:
    """Run one verb and leave with the exit code of the error table (docs/errors.md)."""
    debug = "--debug" in words
    # "--debug" is understood anywhere, since it is added to a command that has just failed.
    words = (["--debug"] if debug else []) + [word for word in words if word != "--debug"]
    try:
        _run_mending(words)
    except click.exceptions.Exit as leave:
        sys.exit(leave.exit_code)
    except click.Abort:
        click.echo("memorize: stopped; nothing more was changed", err=True)
        sys.exit(130)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except Deferred as deferred:
        _say_kept(deferred, "--json" in words)
    except Exception as error:
        if debug or isinstance(error, BrokenPipeError):  # whose reader has enough; ``main`` knows what to do
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


def _run_mending(words: Sequence[str]) -> None:
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
