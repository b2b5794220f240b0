"""Writes docs/cli.md from the help of the verbs.

Usage: python scripts/cli_doc.py            (from the project's folder; rewrites the page)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from memorize.cli.table import SECTIONS  # noqa: E402  # the checkout that this script lies in
from memorize.cli.verbs import cli  # noqa: E402

PAGE = ROOT / "docs" / "cli.md"

_HEAD = """\
# The command line

Made from the verbs' own help by `scripts/cli_doc.py`; a test compares both. `memorize VERB --help` says the same.

Every verb that reads takes `--json`: one document on standard output, lists as `{"items": [...], "total": n}`. Data
goes to standard output, everything else to standard error. Exit codes are in [errors.md](errors.md). `--debug` may
stand anywhere and shows a traceback when something goes wrong; `--version` prints the version. An id may be shortened
to any prefix that fits only one.

"""


def _option(option: click.Option, context: click.Context) -> str:
    record = option.get_help_record(context)
    assert record is not None
    return f"- `{record[0]}`: {' '.join(record[1].split())}\n"


def _verb(command: click.Command, context: click.Context, depth: int) -> Iterator[str]:
    yield f"{'#' * depth} {context.command_path}\n\n"
    paragraphs = (command.help or "").replace("\b", "").strip().split("\n\n")
    yield "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs) + "\n\n"
    yield f"```\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n\n"
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        yield "".join(_option(option, context) for option in options) + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _verb(child, _context(child, name, context), depth + 1)


def _context(command: click.Command, name: str, parent: click.Context) -> click.Context:
    # A fixed width: the page must not depend on the terminal it is made in.
    return click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100)


def page() -> str:
    """Return the page."""
    top = click.Context(cli, info_name="memorize", terminal_width=100)
    parts = [_HEAD]
    for title, verbs in SECTIONS.items():
        parts.append(f"## {title}\n\n")
        for name in verbs:
            command = cli.get_command(top, name)
            assert command is not None
            parts.extend(_verb(command, _context(command, name, top), 3))
    return "".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
