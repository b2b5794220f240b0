"""What of an environment belongs to whoever runs around us, and not to the person. Pure.

The daemon and every program that it asks get the person's environment: proxies, certificates, logins and the keys of
any provider, whose names nobody can list. They do not get the marks that an agent, an editor, a debugger or git leaves
behind for its own children.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from memorize.patterns import late

MARKS: Final = (
    r"CLAUDECODE|CLAUDE_(?:PROJECT_DIR|PID|ENV_FILE|PLUGIN_\w+|EFFORT"
    r"|CODE_(?:SESSION_\w+|MESSAGING_\w+|ENTRYPOINT|SSE_PORT|CHILD_\w+))"
    r"|AI_AGENT|CODEX_(?:SANDBOX\w*|SESSION_ID|THREAD_ID|INTERNAL_\w+|CI)"
    r"|GEMINI_(?:SESSION_ID|PROJECT_DIR|CWD|CLI)|COPILOT_\w+|CURSOR_\w+|COREPACK_ENABLE_AUTO_PIN"
    r"|NoDefaultCurrentDirectoryInExePath|NODE_OPTIONS|VSCODE_\w+|GIT_\w+|PYTHON\w+|MAX_THINKING_TOKENS"
    r"|OLDPWD|PWD|MEMORIZE_(?!HOME$)\w+"
)
_MARK: Final = late(MARKS)


def own(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the person set, without what other programs left for their own children."""
    return {name: value for name, value in environ.items() if not _MARK.fullmatch(name)}
