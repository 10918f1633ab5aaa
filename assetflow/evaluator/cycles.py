"""Flows that are scheduled on what they produce, themselves or through others: they may start each other for ever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from assetflow.core.assets import Asset
from assetflow.core.codec import FlowDeclaration
from assetflow.core.conditions import Leaf, Token

MOST = 20

Node = str | Token


@dataclass(frozen=True)
class Cycle:
    """A way from a consumer back to itself: consumers and assets in turn, the first consumer at both ends."""

    path: tuple[Node, ...]

    def __str__(self) -> str:
        way = " → ".join(node.value if isinstance(node, Token) else node for node in self.path)
        return f"{self.path[0]!r} is scheduled on what comes of its own runs: {way}"


def find_cycles(declarations: Mapping[str, FlowDeclaration]) -> list[Cycle]:
    """The cycles among consumers, up to 20 of them.

    Parameters:
        declarations: by the name of the consumer.
    """
    # From each node to those before it: consumer to the assets that it wants, asset to the consumers that produce it.
    before: dict[Node, dict[Node, None]] = {}
    uris = _uris_of_names(declarations.values())
    for name, declaration in sorted(declarations.items()):
        before[name] = {_resolved(leaf, uris): None for leaf in _leaves(declaration)}
        for outlet in declaration.produces:
            before.setdefault(_resolved(outlet, uris), {})[name] = None
    found: list[Cycle] = []
    while len(found) < MOST and (way := _one_cycle(before)):
        path = _from_first_consumer(way)
        found.append(Cycle(path))
        # Without the first consumer's interest in the asset before it, the next one shows.
        before[path[-1]].pop(path[-2])
    return found


def _leaves(declaration: FlowDeclaration) -> Iterable[Leaf]:
    condition = declaration.options.schedule.condition
    return () if condition is None else condition.leaves


def _one_cycle(before: Mapping[Node, Iterable[Node]]) -> list[Node] | None:
    """The nodes of a cycle, the first one at both ends, each before the next."""
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def _from_first_consumer(way: list[Node]) -> tuple[Node, ...]:
    ring = way[:-1]
    first = min(node for node in ring if isinstance(node, str))
    start = ring.index(first)
    return (*ring[start:], *ring[:start], first)


def _resolved(leaf: Leaf, uris: Mapping[str, str]) -> Token:
    token = leaf.token
    return Token("uri", uris[token.value]) if token.kind == "name" and token.value in uris else token


def _uris_of_names(declarations: Iterable[FlowDeclaration]) -> dict[str, str]:
    found: dict[str, str] = {}
    for declaration in declarations:
        condition = declaration.options.schedule.condition
        for leaf in (*(() if condition is None else condition.leaves), *declaration.produces, *declaration.reads):
            if isinstance(leaf, Asset):
                found.setdefault(leaf.name, leaf.uri)
    return found
