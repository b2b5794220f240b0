"""``memorize serve --stdio``: the other end of an exchange, for a device that reaches this one by ssh."""

from __future__ import annotations

import os
import sys

import click

from memorize.cli.console import app, tell


@click.command()
@click.option("--stdio", is_flag=True, required=True, expose_value=False, help="Speak on standard input and output.")
def command() -> None:
    """Answer another device of yours on standard input and output, until it is done.

    You need not run this: "memorize sync ssh://HOST" on the other device does, by ssh. Nothing but the exchange is
    written to standard output. Both sides must hold a key of the same store ("memorize key export").
    """
    from memorize.bootstrap import keeping, visits
    from memorize.sync.handshake import Role
    from memorize.sync.peer import sync_stream
    from memorize.sync.ring import adopt
    from memorize.sync.ssh import StandardStreams

    parts = app()
    ring = keeping.keyring(parts)
    parts.reader()
    sys.stdout.flush()
    # Whatever writes to standard output from here on must not get between the frames.
    sink = os.dup(1)
    os.dup2(2, 1)
    try:
        report = sync_stream(StandardStreams(0, sink).stream, parts.holding, ring, Role.RESPONDER)
    finally:
        os.close(sink)  # however it ends, the other side must not wait for more
    if adopt(ring, report.wrapped) != ring:
        keeping.update(parts, lambda current: adopt(current, report.wrapped))
    visits.note(parts, report, next(iter(os.environ.get("SSH_CONNECTION", "").split()), ""))
    if not report.converged:
        tell(f"memorize: {report.reason}")
