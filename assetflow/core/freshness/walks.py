"""Walk through graphs that may be deep, with a stack of its own: what is reached, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
N = TypeVar("N")
V = TypeVar("V")


def reached(first: Iterable[K], following: Callable[[K], Iterable[K]]) -> dict[K, None]:
    """Return some nodes, and all that follow them, directly or through others."""
    found = dict.fromkeys(first)
    waiting = list(found)
    while waiting:
        new = [each for each in dict.fromkeys(following(waiting.pop())) if each not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return found


def work_out(
    start: N,
    name: Callable[[N], K],
    above: Callable[[N], Iterable[N]],
    find: Callable[[N], V],
    known: dict[K, V],
) -> V:
    """Return the value of a node, which follows from the values of the nodes above it.

    In a circle, the values are found again until none of them changes, so that it does not matter where it begins.

    Parameters:
        name: returns the key of a node in `known`.
        find: works out the value of a node from `known`. It begins without those of the nodes above in its circle.
        known: the values that earlier calls worked out. Those of this call are added.
    """
    waiting, entered, is_circle = [start], dict[K, N](), False
    while waiting:
        node = waiting[-1]
        key = name(node)
        if key in known:
            waiting.pop()
        elif key not in entered:
            entered[key] = node
            new = [each for each in above(node) if name(each) not in known]
            is_circle = is_circle or any(name(each) in entered for each in new)
            waiting += new
        else:
            known[key] = find(waiting.pop())
    while is_circle:
        found = {key: find(node) for key, node in entered.items()}
        is_circle = any(known[key] != value for key, value in found.items())
        known |= found
    return known[name(start)]
