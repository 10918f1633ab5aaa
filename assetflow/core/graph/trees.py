"""A graph as a tree: what follows from some boxes, each box once, below the first that leads to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


def tree(
    starts: Sequence[str], following: Mapping[str, Collection[str]], order: Callable[[str], tuple[int, int]]
) -> Iterator[tuple[str, int]]:
    """Yield each box with its depth, depth first: 0 for a start.

    Parameters:
        following: what follows directly from each box.
        order: returns the place of a box among those beside it.
    """
    seen: set[str] = set()
    stack = [(box, 0) for box in reversed(starts)]
    while stack:
        box, depth = stack.pop()
        if box not in seen:
            seen.add(box)
            yield box, depth
            stack += [(each, depth + 1) for each in sorted(following.get(box, ()), key=order, reverse=True)]
