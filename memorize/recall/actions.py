"""The person's rules for what an agent is about to do: which of them hold for it, and the text that says so.

A look-up by key: no model, no ranking, no words compared, nothing written. The cost is that of the project's rules and
the personal ones, whatever else is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from memorize import limits
from memorize.index.query import Query, Row
from memorize.model import TRUSTS, Context
from memorize.recall import lines
from memorize.recall.blocks import Block, Item, compose
from memorize.recall.plain import harmless
from memorize.recall.tokens import estimate
from memorize.recall.triggers import EDIT, edit_triggers, normal_name

RULE: Final = "rule"
_NOTICE: Final = (
    "The person's rules for what you are about to do, newest first. Where they differ, follow the newest.\n"
)
_EXTERNAL: Final = TRUSTS[0]
# More than the frame around the rules takes.
_FRAME_TOKENS: Final = 80


def rules_for_action(
    query: Query, action: str, projects: Sequence[str], now_ms: int, k: int = limits.RULES_MAX
) -> list[Row]:
    """Return the rules for one action: a trigger's name in any case, or ``edit:`` and a path from the root.

    ``projects`` are root keys (``Query.family``). The rules of these projects come before the personal ones, the newest
    (lamport, id) first; at most ``k``, never more than ``limits.RULES_MAX``. What was overruled, has expired, waits for
    review or comes from outside never counts. An empty or unknown action, or ``k`` < 1, gives none. Reads only.
    """
    return rules_for_actions(query, (action,), projects, now_ms, k)


def rules_for_actions(
    query: Query, actions: Iterable[str], projects: Sequence[str], now_ms: int, k: int = limits.RULES_MAX
) -> list[Row]:
    """Return the rules for several actions at once, each rule once; otherwise as ``rules_for_action``."""
    wanted = {normal_name(action) for action in actions} - {"", EDIT}
    if not wanted or k < 1:
        return []
    found: list[Row] = []
    for root in dict.fromkeys((*projects, "")):
        rows = query.triggered(root, now_ms)
        found += [row for row, names in rows if row.trust != _EXTERNAL and _holds(names, wanted)]
        if len(found) >= k:
            break
    return found[: min(k, limits.RULES_MAX)]


def _holds(names: Sequence[str], wanted: set[str]) -> bool:
    """Tell whether a memory with these triggers is a rule for one of the actions."""
    own = {normal_name(name) for name in names}
    globs = [name for name in own if name.startswith(EDIT)]
    paths = [action.removeprefix(EDIT) for action in wanted if action.startswith(EDIT)] if globs else []
    return not wanted.isdisjoint(own - set(globs)) or any(edit_triggers(path, globs) for path in paths)


def action_context(rules: Sequence[Row], now_ms: int, zone_minutes: int = 0) -> Context:
    """Return the text that is put in front of an action, within its budget; empty without rules."""
    others = [row.id for row in rules]
    items = tuple(
        lines.item(row, (row.id, RULE, 0.0), lines.origin(row, now_ms, zone_minutes), others) for row in rules
    )
    blocks = [Block("", share, (item,)) for share, item in zip(_shares(items), items, strict=True)]
    text, placed, tokens = compose(blocks, _frame, limits.RULES_TOKENS, limits.ANSWER_BYTES_MAX)
    return Context(text, placed, tokens)


def _shares(items: Sequence[Item]) -> list[int]:
    """Return the tokens for each rule: what short ones leave goes to the long ones, and none pushes another out."""
    wanted = [estimate(f"- {item.head}{harmless(item.text)}{item.tail}\n") + 1 for item in items]
    left, level = limits.RULES_TOKENS - _FRAME_TOKENS, 0
    for number, tokens in enumerate(sorted(wanted)):
        level = left // (len(wanted) - number)
        if tokens > level:
            break
        left -= tokens
    return [min(tokens, level) for tokens in wanted] if max(wanted, default=0) > level else wanted


def _frame(items: int, tokens: int) -> tuple[str, str]:
    return f'<memorize-context items="{items}" tokens="{tokens}">\n{_NOTICE}', "</memorize-context>\n"
