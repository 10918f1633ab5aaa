"""Conditions over assets: what has to be updated before a flow runs.

A condition is a tree of values: leaves (assets, references, aliases) and the two gates AND and OR. Everything that
looks at a tree (evaluation, the codec, Prefect's triggers, explanations) walks its postfix form with a stack of its
own, so that neither depth nor width of a schedule meets Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

from assetflow.errors import InvalidSchedule

GateKind = Literal["all", "any"]
T = TypeVar("T")


class Token(NamedTuple):
    """How a leaf finds its events: by URI, by a name that belongs to the URI, or by an alias linked to it."""

    kind: Literal["uri", "name", "alias"]
    value: str


class Gate(NamedTuple):
    """An AND ("all") or OR ("any") over the `arity` values before it in postfix order."""

    kind: GateKind
    arity: int


class Condition:
    """Something that can be satisfied by updates; combine with `&` and `|`."""

    def __and__(self, other: object) -> AssetAll:
        return AssetAll(*_members(self, AssetAll), *_members(_operand(other, "&"), AssetAll))

    def __or__(self, other: object) -> AssetAny:
        return AssetAny(*_members(self, AssetAny), *_members(_operand(other, "|"), AssetAny))

    def __rand__(self, other: object) -> AssetAll:
        return to_condition(other) & self

    def __ror__(self, other: object) -> AssetAny:
        return to_condition(other) | self

    def __bool__(self) -> bool:
        raise InvalidSchedule(
            "`and`, `or` and `not` cannot combine assets",
            fix="Write `orders & customers` or `orders | customers`",
        )

    @cached_property
    def postfix(self) -> tuple[Leaf | Gate, ...]:
        """The tree with children before their gate: the form that every visitor reads."""
        # Children are visited last to first, gates before them; the reverse of that is postfix order.
        found: list[Leaf | Gate] = []
        waiting: list[Condition] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, BooleanCondition):
                found.append(Gate(node.kind, len(node.objects)))
                waiting.extend(node.objects)
            else:
                found.append(cast(Leaf, node))
        found.reverse()
        return tuple(found)

    @cached_property
    def tokens(self) -> frozenset[Token]:
        """The tokens of all leaves: the index entries under which this condition's events are found."""
        return frozenset(node.token for node in self.postfix if isinstance(node, Leaf))

    @cached_property
    def needed_uris(self) -> frozenset[str]:
        """URIs without which the condition cannot hold: those of the leaves that only ANDs stand above."""
        found: set[str] = set()
        waiting: list[Condition] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, AssetAll):
                waiting.extend(node.objects)
            elif isinstance(node, Leaf) and node.token.kind == "uri":
                found.add(node.token.value)
        return frozenset(found)

    @cached_property
    def needs_nothing_else(self) -> bool:
        """Whether the condition holds as soon as its needed URIs are there: ANDs of assets and nothing else."""
        return all(node.kind == "all" if isinstance(node, Gate) else node.token.kind == "uri" for node in self.postfix)

    @property
    def leaves(self) -> Iterator[Leaf]:
        """The leaves from left to right, repeated ones too."""
        return (node for node in self.postfix if isinstance(node, Leaf))

    def describe(self) -> str:
        """The condition as text: `a AND (b OR c)`."""
        return fold_condition(self, lambda leaf: leaf.label, _join)


class Leaf(Condition):
    """An asset, a reference or an alias."""

    @property
    def token(self) -> Token:
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The leaf as a person reads it."""
        raise NotImplementedError


class BooleanCondition(Condition):
    """A gate over other conditions. Equal when kind and members are equal, in order."""

    kind: ClassVar[GateKind]
    objects: tuple[Condition, ...]

    def __init__(self, *objects: object) -> None:
        self.objects = tuple(to_condition(item) for item in objects)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BooleanCondition) and self.postfix == other.postfix

    def __hash__(self) -> int:
        return hash(self.postfix)

    def __repr__(self) -> str:
        return fold_condition(self, repr, lambda gate, parts: f"{_CLASS_NAMES[gate.kind]}({', '.join(parts)})")


class AssetAll(BooleanCondition):
    """AND: every member has to be satisfied. Without members it is true."""

    kind = "all"


class AssetAny(BooleanCondition):
    """OR: one member is enough. Without members it is false."""

    kind = "any"


_CLASS_NAMES: dict[GateKind, str] = {"all": "AssetAll", "any": "AssetAny"}


@runtime_checkable
class ConditionLike(Protocol):
    """An object that stands for a condition in schedules and outlets, such as a flow made by `@asset`."""

    def as_condition(self) -> Condition: ...


def to_condition(value: object) -> Condition:
    """The condition that a value in `schedule=` means: a condition, or a list of them (AND).

    Raises:
        InvalidSchedule: for anything else; a text too, since it could mean an asset or a cron.
    """
    if isinstance(value, Condition):
        return value
    if isinstance(value, ConditionLike):
        return value.as_condition()
    if isinstance(value, list | tuple):
        return AssetAll(*cast(Sequence[object], value))
    raise InvalidSchedule(
        f"{value!r} is no condition",
        fix='Write Asset("...") for an asset, CronTriggerTimetable("...") for a time table, '
        "and combine assets with `&`, `|` or a list",
    )


def fold_condition(condition: Condition, leaf: Callable[[Leaf], T], gate: Callable[[Gate, list[T]], T]) -> T:
    """The value of a tree, from the leaves up: `leaf` gives a leaf's value, `gate` joins those of its members."""
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


def from_postfix(nodes: Iterable[Leaf | Gate]) -> Condition:
    """The tree whose postfix form is given.

    Raises:
        InvalidSchedule: the nodes are no postfix form.
    """
    values: list[Condition] = []
    for node in nodes:
        if isinstance(node, Gate):
            if node.arity < 0 or node.arity > len(values):
                raise InvalidSchedule(f"a stored condition is damaged: {node} has too few members")
            start = len(values) - node.arity
            members = values[start:]
            del values[start:]
            values.append(AssetAll(*members) if node.kind == "all" else AssetAny(*members))
        else:
            values.append(node)
    if len(values) != 1:
        raise InvalidSchedule(f"a stored condition is damaged: it has {len(values)} roots")
    return values[0]


def _join(gate: Gate, parts: list[str]) -> str:
    word = " AND " if gate.kind == "all" else " OR "
    if not parts:
        return "always" if gate.kind == "all" else "never"
    if len(parts) == 1:
        return parts[0]
    return word.join(f"({part})" if " AND " in part or " OR " in part else part for part in parts)


def _members(condition: Condition, kind: type[BooleanCondition]) -> tuple[Condition, ...]:
    return condition.objects if isinstance(condition, kind) else (condition,)


def _operand(other: object, sign: str) -> Condition:
    try:
        return to_condition(other)
    except InvalidSchedule as error:
        raise InvalidSchedule(f"`{sign}` joins assets, not {other!r}", fix=error.fix) from error
