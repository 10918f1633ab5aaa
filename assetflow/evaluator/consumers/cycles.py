"""Find flows that are scheduled on assets that they produce, directly or through others: they may run for ever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from assetflow.core.condition_tree import Token
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Leaf
from assetflow.core.wire import FlowDeclaration

MOST = 20

Node = str | Token


@dataclass(frozen=True)
class Cycle:
    """A path from a consumer back to itself: consumers and assets in turn, the first consumer at both ends."""

    path: tuple[Node, ...]

    def __str__(self) -> str:
        nodes = " → ".join(node.value if isinstance(node, Token) else node for node in self.path)
        return f"{self.path[0]!r} is scheduled on what its own runs lead to: {nodes}"


def find_cycles(declarations: Mapping[str, FlowDeclaration]) -> list[Cycle]:
    """Return the cycles among consumers, at most 20.

    Parameters:
        declarations: the declarations of flows, by the name of the consumer.
    """
    # From each node to its predecessors: a consumer's are the assets of its schedule, an asset's are its producers.
    before: dict[Node, dict[Node, None]] = {}
    uris = _uris_of_names(declarations.values())
    for name, declaration in sorted(declarations.items()):
        before[name] = {_resolved(leaf, uris): None for leaf in _leaves(declaration)}
        for outlet in declaration.produces:
            before.setdefault(_resolved(outlet, uris), {})[name] = None
    found: list[Cycle] = []
    while len(found) < MOST and (nodes := _one_cycle(before)):
        path = _from_first_consumer(nodes)
        found.append(Cycle(path))
        # Break this cycle, so that the search finds the next one.
        before[path[-1]].pop(path[-2])
    return found


def _leaves(declaration: FlowDeclaration) -> Iterable[Leaf]:
    condition = declaration.options.schedule.condition
    return () if condition is None else condition.leaves


def _one_cycle(before: Mapping[Node, Iterable[Node]]) -> list[Node] | None:
    """Return the nodes of a cycle, the first one at both ends, or `None`."""
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def _from_first_consumer(nodes: list[Node]) -> tuple[Node, ...]:
    ring = nodes[:-1]
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
