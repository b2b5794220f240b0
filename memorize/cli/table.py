"""The verbs by section, with a line on each, and the page of them: what ``memorize --help`` prints.

The page is what click would make of the table, which a test holds it to; but to load click takes longer than all else.
"""

from __future__ import annotations

ABOUT = "One memory for your coding agents that outlives sessions, models and machines."
# verb -> what it does; its module, ``memorize.cli.<verb>_cmd``, holds ``command``. Sections as in the help.
SECTIONS: dict[str, dict[str, str]] = {
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
VERBS = tuple(verb for verbs in SECTIONS.values() for verb in verbs)

COLUMNS_MIN = 80
COLUMNS_MAX = 100
_MARGIN = 2
_HEAD = "Usage: memorize [OPTIONS] COMMAND [ARGS]..."
_OPTIONS = """\
Options:
  --version   Show the version and exit.
  --debug     Show a traceback when something goes wrong.
  -h, --help  Show this message and exit.
"""


def page(columns: int) -> str:
    """Return the page for a terminal of so many columns, at least ``COLUMNS_MIN``."""
    width = min(columns, COLUMNS_MAX) - _MARGIN
    parts = [f"{_HEAD}\n", "".join(f"  {line}\n" for line in _lines(ABOUT, width - 2)), _OPTIONS]
    for title, verbs in SECTIONS.items():
        first = 2 + max(map(len, verbs)) + 2
        rows = [f"{title}:\n"]
        for verb, text in verbs.items():
            lines = _lines(text, width - first)
            rows.append(f"{f'  {verb}':{first}}" + f"\n{'':{first}}".join(lines) + "\n")
        parts.append("".join(rows))
    return "\n".join(parts)


def _lines(text: str, width: int) -> list[str]:
    """Return the text in lines of whole words."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
