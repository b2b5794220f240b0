"""Whether the project at a path is one that was known there by another key (DESIGN 5, "Projects").

A first commit, a first remote or a renamed remote changes the key of a project. Its memory follows only when nothing
speaks for another repository in the same place: containers and templates put many into one path.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from memorize import model
from memorize.index import gitfiles
from memorize.index.packing import key_number
from memorize.index.place import Place

_MARKER: Final = "marker"


def former_key(connection: sqlite3.Connection, device: str, place: Place) -> str:
    """Return the key by which this device knew the project at this place until now, and which is to be linked with it.

    "" when it is known by the same key, was linked with it before (also when that was undone), or is another project.
    """
    sql = "select project from places where device = ? and path = ?"
    row = connection.execute(sql, (device, place.root)).fetchone()
    old = str(row[0]) if row else ""
    if not old or old == place.project or _linked_once(connection, old, place.project):
        return ""
    if connection.execute("select 1 from projects where key = ?", (old,)).fetchone() is None:
        return ""  # every place is told together with its project: this one is a damaged value
    keys = family(connection, old)
    if place.project in keys:
        return ""
    marks = ",".join("?" * len(keys))
    known = connection.execute(f"select kind, value from identities where project in ({marks})", keys).fetchall()
    kinds = {kind for kind, _ in known} | {place.identities[0][0]}
    if _MARKER in kinds:  # a person names projects by markers, also several in one repository
        return ""
    return old if _same_repository(place, {value for kind, value in known if kind == "root"}) else ""


def family(connection: sqlite3.Connection, project: str) -> tuple[str, ...]:
    """Return every key that is joined with a project, its own first."""
    row = connection.execute("select root from projects where key = ?", (project,)).fetchone()
    root = str(row[0]) if row else project
    joined = [str(key) for (key,) in connection.execute("select key from projects where root = ?", (root,))]
    return tuple(dict.fromkeys((project, root, *joined)))


def _same_repository(place: Place, roots: set[str]) -> bool:
    """Tell whether nothing but the name of a repository has changed, by its first commit or by what its log tells."""
    now = dict(place.identities)
    root, remote = now.get("root", ""), now.get("remote", "")
    if root and roots:
        return root in roots
    told = gitfiles.history(place.root)
    if roots:  # the first commit cannot be reached any more, or the repository is gone
        return any(commit in told.commits for commit in roots)
    if told.source is not None:  # made as a copy: of what is its remote now, or of what was
        return gitfiles.normal_remote(told.source) != remote
    # Without any log a repository that has commits, and none that can be reached, may be any.
    return bool(root or told.commits or not place.head)


def links_between(connection: sqlite3.Connection, one: str, other: str) -> list[bytes]:
    """Return the ids of the links that name both keys, those that were undone too."""
    numbers = [key_number(b"p" + key.encode("utf-8", "surrogatepass")) for key in (one, other)]
    sql = """select e.id from links a join links b on b.n = a.n join events e on e.n = a.n
        where a.key = ? and b.key = ? and e.kind = ? order by e.lamport, e.id"""
    return [bytes(identity) for (identity,) in connection.execute(sql, (*numbers, model.PROJECT_LINKED))]


def _linked_once(connection: sqlite3.Connection, one: str, other: str) -> bool:
    return bool(links_between(connection, one, other))
