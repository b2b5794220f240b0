"""Strongly connected components, without recursion (a chain of edits may be longer than the stack)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence


def components(graph: Mapping[bytes, Sequence[bytes]]) -> Iterator[list[bytes]]:
    """Return every strongly connected component of two or more nodes (Tarjan)."""
    number: dict[bytes, int] = {}
    low: dict[bytes, int] = {}
    path: list[bytes] = []
    on_path: set[bytes] = set()
    for start in graph:
        if start in number:
            continue
        number[start] = low[start] = len(number)
        path.append(start)
        on_path.add(start)
        work = [(start, iter(graph[start]))]
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in number:
                    number[target] = low[target] = len(number)
                    path.append(target)
                    on_path.add(target)
                    work.append((target, iter(graph.get(target, ()))))
                    break
                if target in on_path:
                    low[node] = min(low[node], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    ring = [path.pop()]
                    while ring[-1] != node:
                        ring.append(path.pop())
                    on_path.difference_update(ring)
                    if len(ring) > 1:
                        yield ring
