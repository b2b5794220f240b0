"""Which projects are one: the components of the links in force."""

from __future__ import annotations

from collections.abc import Mapping

from memorize import model
from memorize.fold.intake import Intake


def roots(taken: Intake) -> Mapping[str, str]:
    """Map every project key that a link in force names to the least key of its component."""
    linked = taken.acts[model.PROJECT_LINKED]
    undone: set[bytes] = set()
    for act in taken.acts[model.PROJECT_UNLINKED].values():
        undone.update(dep for dep in act.deps if dep in linked and linked[dep].person == act.person)
    parent: dict[str, str] = {}

    def root(key: str) -> str:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for identity, (one, other) in taken.links.items():
        if identity not in undone and one != other:
            low, high = sorted((root(one), root(other)))
            parent[high] = low
    return {key: root(key) for key in sorted(parent)}
