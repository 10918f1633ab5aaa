"""Conditions over assets: what has to be updated before a flow runs.

A condition is a tree. Its leaves are assets, references and aliases; its gates are AND, OR, quorum, counts and time
gates. `condition_tree` holds what is common to all of them, `condition_words` how they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NoReturn,
    Protocol,
    TypeVar,
    cast,
    runtime_checkable,
)

from assetflow.core.grouping import grouped
from assetflow.core.time.timetables import CronTriggerTimetable, Timetable, times_in_words
from assetflow.core.values.words import check_count, check_span, span_in_words
from assetflow.errors import InvalidSchedule, not_a

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

    @property
    def needed(self) -> int:
        """How many of its members have to hold."""
        return {"all": self.arity, "at_least": cast("int", self.argument)}.get(self.kind, 1)


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
        places = ((node.token, place) for place, node in enumerate(self.postfix) if not isinstance(node, Gate))
        return {token: tuple(found) for token, found in grouped(places).items()}

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


def join_gate(gate: Gate, parts: list[str]) -> str:
    """Return a gate over its members in words: `a AND b`, `2 of: a, b, c`, `a 3 times`."""
    match gate.argument:
        case int(n) if gate.kind == "at_least":
            return f"{n} of: {', '.join(_grouped(part) for part in parts)}"
        case int(n):
            return f"{parts[0]} {n} times"
        case timedelta() as span:
            return f"{_grouped(parts[0])} within {span_in_words(span)} of each other"
        case Timetable() as timetable:
            return f"{_grouped(parts[0])} since {times_in_words(timetable)}"
        case None:
            return _join_all(gate, parts)


def _grouped(part: str) -> str:
    return f"({part})" if any(word in part for word in (" AND ", " OR ", " of: ", " within ", " since ")) else part


def _join_all(gate: Gate, parts: list[str]) -> str:
    word = " AND " if gate.kind == "all" else " OR "
    if not parts:
        return "always" if gate.kind == "all" else "never"
    if len(parts) == 1:
        return parts[0]
    return word.join(map(_grouped, parts))


def gate_in_python(gate: Gate, parts: list[str]) -> str:
    """Return a gate over its members as `repr` shows it: `AssetAll(a, b)`, `a.times(3)`."""
    match gate.kind:
        case "all":
            return f"AssetAll({', '.join(parts)})"
        case "any":
            return f"AssetAny({', '.join(parts)})"
        case "at_least":
            return f"AtLeast({', '.join((str(gate.argument), *parts))})"
        case _:
            return f"{parts[0]}.{gate.kind}({gate.argument!r})"


class Condition(ConditionTree):
    """The base class of assets, references, aliases and their combinations with `&` and `|`. Conditions are immutable.

    Contract 4.1.
    """

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r} cannot be changed after it was made. Make a new one with another {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} cannot be changed after it was made. Make a new one without {name}")

    def __and__(self, other: ConditionValue) -> AssetAll:
        return AssetAll(*_members(self, AssetAll), *_members(_operand(other, "&"), AssetAll))

    def __or__(self, other: ConditionValue) -> AssetAny:
        return AssetAny(*_members(self, AssetAny), *_members(_operand(other, "|"), AssetAny))

    def __rand__(self, other: ConditionValue) -> AssetAll:
        return to_condition(other) & self

    def __ror__(self, other: ConditionValue) -> AssetAny:
        return to_condition(other) | self

    def __bool__(self) -> bool:
        raise InvalidSchedule(
            "`and`, `or` and `not` cannot combine assets",
            fix="Write `orders & customers` or `orders | customers`",
        )

    def within(self, span: timedelta) -> Within:
        """Return the condition that this one holds over updates that came together.

        >>> from datetime import timedelta
        >>> from assetflow import Asset
        >>> (Asset("orders") & Asset("customers")).within(timedelta(hours=6)).describe()
        '(orders AND customers) within 6 h of each other'

        The span is measured from update to update, not from now: updates that came together stay together while the
        flow waits for something else. An update that can no longer be part of it expires. Contract 9.3, 9.5.

        Parameters:
            span: the elapsed time from the first to the last update, both included; at most 366 days.

        Raises:
            InvalidSchedule: the span is not above zero, or over 366 days.
        """
        return Within(self, span)

    def since(self, timetable: str | Timetable, *, timezone: str = "UTC") -> Since:
        """Return the condition that this one holds over updates of one period between two times of a timetable.

        >>> from assetflow import Asset
        >>> (Asset("orders") & Asset("customers")).since("0 0 * * *", timezone="Europe/Berlin").describe()
        '(orders AND customers) since 00:00 (Europe/Berlin)'

        So updates of yesterday never meet those of today. A period includes its first moment and excludes its last.
        Contract 9.4.

        Parameters:
            timetable: a timetable, or a cron such as "0 0 * * *" or "@daily".
            timezone: the IANA name of the cron's time zone; a timetable has its own.

        Raises:
            InvalidTimetable: the cron or the time zone cannot be read.
        """
        return Since(self, CronTriggerTimetable(timetable, timezone) if isinstance(timetable, str) else timetable)

    def describe(self) -> str:
        """Return the condition as text: `a AND (b OR c)`."""
        return fold_condition(self, lambda leaf: leaf.label, join_gate)


class Leaf(Condition):
    """An asset, a reference or an alias."""

    def times(self, n: int) -> Times:
        """Return the condition that at least `n` queued updates match this asset, reference or alias.

        >>> from assetflow import Asset
        >>> Asset("prices").times(3).describe()
        'prices 3 times'

        Updates of all assets behind an alias count together. Contract 9.2.

        Raises:
            InvalidSchedule: `n` is not a whole number from 1 on.
        """
        return Times(self, n)

    @property
    def token(self) -> Token:
        """The token by which the leaf's events are found."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The readable name of the leaf."""
        raise NotImplementedError


class BooleanCondition(Condition):
    """A gate over other conditions. Two are equal if their kinds are, and their members in the same order."""

    kind: ClassVar[GateKind]
    objects: tuple[Condition, ...]
    argument: GateArgument | None = None

    def __init__(self, *objects: ConditionValue) -> None:
        self.__dict__["objects"] = tuple(to_condition(item) for item in objects)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name == "times":
                raise _times_of(self)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def gate(self) -> Gate:
        """Return the gate as it stands in postfix order."""
        return Gate(self.kind, len(self.objects), self.argument)

    @property
    def members(self) -> Sequence[Condition]:
        return self.objects

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BooleanCondition) and self.postfix == other.postfix

    def __hash__(self) -> int:
        return hash(self.postfix)

    def __repr__(self) -> str:
        return fold_condition(self, repr, gate_in_python)


class AssetAll(BooleanCondition):
    """An AND over conditions: it holds when every member holds. `orders & customers` makes one, and so does a list.

    >>> from assetflow import Asset, AssetAll
    >>> AssetAll(Asset("s3://shop/orders"), Asset("s3://shop/customers")).describe()
    's3://shop/orders AND s3://shop/customers'

    Without members it always holds, but a flow never runs without an update. Contract 4.1.

    Parameters:
        objects: assets, references, aliases, or conditions made of them.

    Raises:
        InvalidSchedule: a member is something else.
    """

    kind = "all"


class AssetAny(BooleanCondition):
    """An OR over conditions: it holds when one member holds. `orders | customers` makes one.

    >>> from assetflow import Asset
    >>> orders, customers, prices = Asset("orders"), Asset("customers"), Asset("prices")
    >>> (orders | (customers & prices)).describe()
    'orders OR (customers AND prices)'

    Without members it never holds. Contract 4.1.

    Parameters:
        objects: assets, references, aliases, or conditions made of them.

    Raises:
        InvalidSchedule: a member is something else.
    """

    kind = "any"


class AtLeast(BooleanCondition):
    """A quorum: it holds when at least `n` of its members hold.

    >>> from assetflow import Asset, AtLeast
    >>> AtLeast(2, Asset("north"), Asset("south"), Asset("west")).describe()
    '2 of: north, south, west'

    A member that stands there twice counts twice. Contract 9.1.

    Parameters:
        n: how many members have to hold, from 1 up to the number of members.
        objects: assets, references, aliases, or conditions made of them.

    Raises:
        InvalidSchedule: `n` is below 1 or above the number of members, or a member is something else.
    """

    kind = "at_least"

    def __init__(self, n: int, *objects: ConditionValue) -> None:
        check_count("AtLeast", n)
        if n > len(objects):
            raise InvalidSchedule(
                f"AtLeast({n}, …) has {len(objects)} members", rule="9.16", fix="Ask for at most as many as there are"
            )
        super().__init__(*objects)
        self.__dict__["argument"] = n


class Times(BooleanCondition):
    """At least `n` queued updates of one asset, reference or alias: `orders.times(3)` makes one. Contract 9.2."""

    kind = "times"

    def __init__(self, leaf: ConditionValue, n: int) -> None:
        super().__init__(leaf)
        self.__dict__["argument"] = check_count("times", n)
        if not isinstance(self.objects[0], Leaf):
            raise _times_of(self.objects[0])


class Within(BooleanCondition):
    """A condition over updates that came within a span of each other: `c.within(span)` makes one. Contract 9.3."""

    kind = "within"

    def __init__(self, condition: ConditionValue, span: timedelta) -> None:
        super().__init__(condition)
        self.__dict__["argument"] = check_span("within", span)


class Since(BooleanCondition):
    """A condition over the updates of one period of a timetable: `c.since("@daily")` makes one. Contract 9.4."""

    kind = "since"

    def __init__(self, condition: ConditionValue, timetable: Timetable) -> None:
        super().__init__(condition)
        self.__dict__["argument"] = timetable


def _times_of(condition: Condition) -> InvalidSchedule:
    return InvalidSchedule(
        f"times() counts the updates of one asset, reference or alias, not of {condition.describe()}",
        rule="9.2",
        fix="Write orders.times(2) & customers.times(2), or AtLeast(n, ...) for n of several conditions",
    )


def _from_gate(gate: Gate, members: list[Condition]) -> BooleanCondition:
    match gate.kind, gate.argument, members:
        case "all", None, _:
            return AssetAll(*members)
        case "any", None, _:
            return AssetAny(*members)
        case "at_least", int(n), _:
            return AtLeast(n, *members)
        case "times", int(n), [member]:
            return Times(member, n)
        case "within", timedelta() as span, [member]:
            return Within(member, span)
        case "since", Timetable() as timetable, [member]:
            return Since(member, timetable)
        case _:
            raise InvalidSchedule(f"a stored condition is damaged: {gate} has {len(members)} members")


@runtime_checkable
class ConditionLike(Protocol):
    """An object that can be written in schedules and outlets like a condition, such as a flow made by `@asset`."""

    def as_condition(self) -> Condition: ...


@runtime_checkable
class PrefectAsset(Protocol):
    """A `prefect.assets.Asset`, which stands for the asset whose URI is its key. Contract 1.2."""

    @property
    def key(self) -> str: ...
    @property
    def properties(self) -> Any: ...


# What stands for an asset without being one.
AssetLike = ConditionLike | PrefectAsset
# What can be written where a condition is wanted. A list is an AND.
ConditionPart = Condition | AssetLike
ConditionValue = ConditionPart | Sequence[ConditionPart | Sequence[ConditionPart]]

SCHEDULE_FIX = (
    'Write Asset("...") for an asset, CronTriggerTimetable("...") for a timetable, '
    "and combine assets with `&`, `|` or a list"
)


def to_condition(value: ConditionValue) -> Condition:
    """Return the condition that a value in `schedule=` stands for.

    Parameters:
        value: a condition, an `AssetLike`, or a list of them (AND).

    Raises:
        InvalidSchedule: the value is something else. A text is refused too, because it could be an asset or a cron.
    """
    given = stands_for(value)
    if isinstance(given, Condition):
        return given
    if isinstance(given, list | tuple):
        return AssetAll(*cast("Sequence[ConditionPart]", given))
    raise not_a(InvalidSchedule, given, "a condition", SCHEDULE_FIX)


def stands_for(value: object) -> object:
    """Return the condition that an `@asset` or an asset of Prefect stands for, and any other value as it is."""
    if isinstance(value, ConditionLike) and not isinstance(value, type):
        return value.as_condition()
    if isinstance(value, PrefectAsset) and not isinstance(value, type):
        from assetflow.core.values.assets import Asset

        known = ("name", "description", "url", "owners")
        name, description, url, owners = (getattr(value.properties, each, None) for each in known)
        return Asset(value.key, name=name, description=description, url=url, owners=owners)
    return value


def from_postfix(nodes: Iterable[Leaf | Gate]) -> Condition:
    """Return the tree with this postfix form.

    Raises:
        InvalidSchedule: the nodes are not the postfix form of one tree.
    """
    values: list[Condition] = []
    for node in nodes:
        if isinstance(node, Gate):
            if node.arity < 0 or node.arity > len(values):
                raise InvalidSchedule(f"a stored condition is damaged: {node} has too few members")
            start = len(values) - node.arity
            members = values[start:]
            del values[start:]
            values.append(_from_gate(node, members))
        else:
            values.append(node)
    if len(values) != 1:
        raise InvalidSchedule(f"a stored condition is damaged: it has {len(values)} roots")
    return values[0]


def _members(condition: Condition, kind: type[BooleanCondition]) -> tuple[Condition, ...]:
    return condition.objects if isinstance(condition, kind) else (condition,)


def _operand(other: ConditionValue, sign: str) -> Condition:
    try:
        return to_condition(other)
    except InvalidSchedule as error:
        raise InvalidSchedule(f"`{sign}` joins assets, not {other!r}", fix=error.fix) from error
