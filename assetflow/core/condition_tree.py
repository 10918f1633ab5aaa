"""The tree of a condition: its nodes in postfix order, and what follows from where they stand.

Evaluation, the codec, Prefect's triggers and explanations all read the postfix form of the tree with a stack of their
own. So a schedule can be as deep as it likes without meeting Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, cast

from assetflow.core.time.timetables import Timetable

if TYPE_CHECKING:
    from assetflow.core.values.conditions import Leaf

GateKind = Literal["all", "any", "at_least", "times", "within", "since"]
GateArgument = int | timedelta | Timetable
T = TypeVar("T")


class Token(NamedTuple):
    """A token that a leaf is matched by: the URI of an event's asset, a name of that URI, or an alias linked to it."""

    kind: Literal["uri", "name", "alias"]
    value: str


class Gate(NamedTuple):
    """A gate over the `arity` values before it in postfix order.

    Attributes:
        kind: "all" is AND, "any" is OR.
        argument: the number of "at_least" and "times", the span of "within", the timetable of "since"; None of others.
    """

    kind: GateKind
    arity: int
    argument: GateArgument | None = None

    @property
    def is_time_gate(self) -> bool:
        """Return True if the gate looks at parts of the queued events, one stretch of time after the other."""
        return self.kind in ("within", "since")


class ConditionTree:
    """One node of a condition's tree, with all that is below it."""

    @property
    def gate(self) -> Gate | None:
        """The gate as it stands in postfix order; `None` for a leaf."""
        return None

    @property
    def members(self) -> Sequence[ConditionTree]:
        """The nodes that a gate is over, from left to right; empty for a leaf."""
        return ()

    @cached_property
    def postfix(self) -> tuple[Leaf | Gate, ...]:
        """The nodes of the tree from left to right, each gate after its members."""
        # The loop visits each gate before its members, from right to left. The reverse of that is postfix order.
        found: list[Leaf | Gate] = []
        waiting: list[ConditionTree] = [self]
        while waiting:
            node = waiting.pop()
            gate = node.gate
            if gate is None:
                found.append(cast("Leaf", node))
            else:
                found.append(gate)
                waiting.extend(node.members)
        found.reverse()
        return tuple(found)

    @cached_property
    def tokens(self) -> frozenset[Token]:
        """The tokens of all leaves, by which the ledger's index finds the condition's events."""
        return frozenset(node.token for node in self.leaves)

    @cached_property
    def needed_uris(self) -> frozenset[str]:
        """The URIs without which the condition cannot hold: those of the leaves below no OR."""
        found: set[str] = set()
        waiting: list[ConditionTree] = [self]
        while waiting:
            node = waiting.pop()
            gate = node.gate
            if gate is None:
                token = cast("Leaf", node).token
                found |= {token.value} if token.kind == "uri" else set()
            elif gate.kind in ("all", "times", "within", "since"):
                waiting.extend(node.members)
        return frozenset(found)

    @cached_property
    def needs_nothing_else(self) -> bool:
        """True if the condition has only ANDs of assets: if time does not count, it holds once its URIs are updated."""
        return all(
            node.kind == "all" or node.is_time_gate if isinstance(node, Gate) else node.token.kind == "uri"
            for node in self.postfix
        )

    @cached_property
    def has_time_gates(self) -> bool:
        """Return True if the condition looks at when events were recorded. Contract 9.3, 9.4."""
        return bool(self.time_gate_places)

    @cached_property
    def time_gate_places(self) -> tuple[int, ...]:
        """The places in `postfix` of the gates that look at when events were recorded."""
        return tuple(place for place, node in enumerate(self.postfix) if isinstance(node, Gate) and node.is_time_gate)

    @cached_property
    def leaf_places(self) -> Mapping[Token, tuple[int, ...]]:
        """The places in `postfix` of the leaves that each token matches."""
        found: dict[Token, list[int]] = {}
        for place, node in enumerate(self.postfix):
            if not isinstance(node, Gate):
                found.setdefault(node.token, []).append(place)
        return {token: tuple(places) for token, places in found.items()}

    @cached_property
    def gates(self) -> tuple[tuple[int, Gate, tuple[int, ...]], ...]:
        """The gates as they stand in `postfix`, each with its own place and the places of its members."""
        found: list[tuple[int, Gate, tuple[int, ...]]] = []
        values: list[int] = []
        for place, node in enumerate(self.postfix):
            if isinstance(node, Gate):
                start = len(values) - node.arity
                found.append((place, node, tuple(values[start:])))
                del values[start:]
            values.append(place)
        return tuple(found)

    @cached_property
    def counted(self) -> Mapping[int, int]:
        """How many events each leaf inside a `times` needs, by the place of the leaf in `postfix`."""
        return {members[0]: cast("int", gate.argument) for _, gate, members in self.gates if gate.kind == "times"}

    @cached_property
    def time_gates_around(self) -> Mapping[int, tuple[int, ...]]:
        """The places in `postfix` of the time gates around each leaf, by the place of the leaf."""
        around: dict[int, tuple[int, ...]] = {}
        for place, gate, members in reversed(self.gates):
            inside = (*around.get(place, ()), place) if gate.is_time_gate else around.get(place, ())
            around |= dict.fromkeys(members, inside)
        return {place: around.get(place, ()) for places in self.leaf_places.values() for place in places}

    @cached_property
    def nests_time_gates(self) -> bool:
        """True if a time gate stands inside another one."""
        return any(len(places) > 1 for places in self.time_gates_around.values())

    @property
    def leaves(self) -> Iterator[Leaf]:
        """The leaves from left to right; a repeated leaf comes each time."""
        return (node for node in self.postfix if not isinstance(node, Gate))


def fold_condition(condition: ConditionTree, leaf: Callable[[Leaf], T], gate: Callable[[Gate, list[T]], T]) -> T:
    """Compute a value for a tree, from the leaves up.

    Parameters:
        leaf: returns the value of a leaf.
        gate: returns the value of a gate, given the values of its members.
    """
    values: list[T] = []
    for node in condition.postfix:
        if isinstance(node, Gate):
            start = len(values) - node.arity
            members = values[start:]
            del values[start:]
            values.append(gate(node, members))
        else:
            values.append(leaf(node))
    return values[0]
