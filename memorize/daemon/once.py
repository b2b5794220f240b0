"""What the hook's lean child becomes before a tool when there is no daemon: one answer, from the parts that it takes.

An agent waits for it, so nothing that serves, listens or writes the log is loaded.
"""

from __future__ import annotations

import os
import sys

from memorize.bootstrap import App, open_app
from memorize.daemon.answer import Answerer
from memorize.errors import Problem


def main(arguments: list[str] | None = None) -> int:
    """Answer the hook whose spool file is the last argument; 0 when there was something to say, else 1 and silence.

    The answer is an empty line, then the exact text for the agent.
    """
    words = sys.argv[1:] if arguments is None else arguments
    os.umask(0o077)
    try:
        return 0 if answer_once(open_app(os.environ), words[-1]) else 1
    except (Problem, OSError):
        return 1


def answer_once(app: App, name: str) -> bool:
    """Print the answer to one hook's event without a daemon, and note it; False when there is nothing to say."""
    answerer = Answerer(app)
    answer = answerer.answer(name)
    if answer is None or not answer.text:
        return False
    with open(1, "wb", closefd=False) as to_hook:
        to_hook.write(b"\n" + answer.text)
    answerer.printed(answer)
    return True
