"""When a consumer decides on what is queued: its opening hours, its intake and its deadline. Contract 9.7 to 9.12."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from assetflow.core.partitions import RollupMapper
from assetflow.core.time.timetables import (
    CronPartitionTimetable,
    PartitionedAtRuntime,
    Timetable,
    times_in_words,
    zone_of,
)
from assetflow.core.values.conditions import Condition, Gate, Leaf, Token, from_postfix
from assetflow.core.values.words import check_count, check_span, span_in_words
from assetflow.errors import InvalidSchedule

if TYPE_CHECKING:
    from assetflow.core.values.schedules import Partitioning, Schedule


OnDeadline = Literal["alert", "run", "skip"]


@dataclass(frozen=True)
class Opening:
    """When a schedule is open: from each time of a timetable on. Contract 9.7.

    Attributes:
        timetable: each of its times opens the schedule.
        until: each of its times closes the schedule; without it, only a decision does.
    """

    timetable: Timetable
    until: Timetable | None = None

    def __post_init__(self) -> None:
        check_times("timetable", self.timetable)
        check_times("until", self.until)
        if self.until == self.timetable:
            raise InvalidSchedule(
                "until has the times of the timetable, so the schedule would never be open",
                rule="9.16",
                fix="Give until other times, or leave it out",
            )

    @property
    def timezone(self) -> str:
        """The time zone of the timetable; texts beside it, such as a deadline, are in this zone."""
        return zone_of(self.timetable)

    def describe(self) -> str:
        """Return the opening hours in words: "from 06:00 to 22:00 (Europe/Berlin)"."""
        if self.until is None:
            return f"from {times_in_words(self.timetable)}"
        return f"from {times_in_words(self.timetable, known_zone=zone_of(self.until))} to {times_in_words(self.until)}"


@dataclass(frozen=True)
class Intake:
    """How many updates a decision takes, and how often. Contract 9.9 to 9.11.

    Attributes:
        debounce: wait until the newest queued update is that old.
        max_wait: wait at most that long after the update with which the condition holds for the first time.
        min_events: wait until that many updates are queued.
        max_events: a decision consumes at most that many, the oldest.
        cooldown: the least time from one decision to the next.
    """

    debounce: timedelta | None = None
    max_wait: timedelta | None = None
    min_events: int | None = None
    max_events: int | None = None
    cooldown: timedelta | None = None

    def __post_init__(self) -> None:
        for name in ("debounce", "max_wait", "cooldown"):
            if (span := getattr(self, name)) is not None:
                check_span(name, span)
        for name in ("min_events", "max_events"):
            if (count := getattr(self, name)) is not None:
                check_count(name, count)
        if self.max_wait is not None:
            self._check_max_wait(self.max_wait)
        if self.min_events is not None and self.max_events is not None and self.min_events > self.max_events:
            raise InvalidSchedule(
                f"min_events {self.min_events} is more than max_events {self.max_events}",
                rule="9.16",
                fix="Give max_events at least min_events, or leave one of them out",
            )

    def _check_max_wait(self, max_wait: timedelta) -> None:
        if self.debounce is None and self.min_events is None:
            raise InvalidSchedule(
                "max_wait limits nothing", rule="9.16", fix="Give debounce or min_events, which wait for more updates"
            )
        if self.debounce is not None and max_wait < self.debounce:
            raise InvalidSchedule(
                "max_wait is shorter than debounce", rule="9.16", fix="Give max_wait at least the length of debounce"
            )

    def describe(self) -> str:
        """Return the options in words: "debounce 10 min, max_wait 1 h"; an empty text if there are none."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        words = (
            f"{name} {span_in_words(value) if isinstance(value, timedelta) else value}" for name, value in given.items()
        )
        return ", ".join(words)

    @property
    def waits_for_more(self) -> bool:
        return self.debounce is not None or self.min_events is not None


@dataclass(frozen=True)
class Deadline:
    """By when a decision has to come, and what happens if none does. Contract 9.8.

    Attributes:
        after: counted from the opening, or else from the oldest queued update; `None` if `at` is given.
        at: the first of these times after the opening; `None` if `after` is given.
        then: "alert" only tells; "run" decides with what is queued; "skip" drops what is queued.
    """

    after: timedelta | None = None
    at: Timetable | None = None
    then: OnDeadline = "alert"

    def __post_init__(self) -> None:
        if self.after is not None:
            check_span("deadline", self.after)
        check_times("deadline", self.at)
        if cast(str, self.then) not in ("alert", "run", "skip"):
            raise InvalidSchedule(f"on_deadline is {self.then!r}", rule="9.16", fix='Write "alert", "run" or "skip"')

    def describe(self, *, known_zone: str = "") -> str:
        """Return the deadline in words: "at 08:00 with what is there", "alert after 2 h".

        Parameters:
            known_zone: a time zone that readers have seen already, so that it is left out.
        """
        when = f"after {span_in_words(self.after)}" if self.after is not None else ""
        if self.at is not None:
            when = f"at {times_in_words(self.at, known_zone=known_zone)}"
        match self.then:
            case "run":
                return f"{when} with what is there"
            case "skip":
                return f"{when} it skips what is there"
            case "alert":
                return f"alert {when}"

    def of_opening(self, opened: datetime, opening: Opening) -> datetime | None:
        """Return when the deadline of one opening is due; `None` if it has none.

        Parameters:
            opened: when the schedule opened.
            opening: the opening hours; a deadline is never later than the `until` that ends the opening.
        """
        due = opened + self.after if self.after is not None else next_time(self.at, opened)
        closes = next_time(opening.until, opened)
        moments = [moment for moment in (due, closes) if moment is not None]
        return min(moments) if due is not None and moments else None


def check_times(name: str, timetable: Timetable | None) -> None:
    """Refuse a timetable without times, and one that says of the runs by time what no run of updates has.

    Parameters:
        name: the option that it was given for.

    Raises:
        InvalidSchedule: people start the runs of this timetable, so it never opens or closes anything; the runs would
            lose the key that the timetable gives; or it says which of the missed times have a run.
    """
    if isinstance(timetable, CronPartitionTimetable):
        raise InvalidSchedule(
            f"{name} is CronPartitionTimetable(), whose key would be lost: a run of updates has the key of its updates",
            rule="9.16",
            fix=f"Write {name}={timetable.cron!r}, or schedule the flow on the CronPartitionTimetable alone",
        )
    if isinstance(timetable, PartitionedAtRuntime):
        raise InvalidSchedule(
            f"{name} is PartitionedAtRuntime(), which has no times",
            rule="9.7",
            fix='Write a cron such as "0 6 * * *", or another timetable',
        )
    if timetable is not None and timetable.catchup != "all":
        raise InvalidSchedule(
            f"{name} has a catchup, which is for timetables that start runs", rule="6.1", fix="Leave catchup out"
        )


def make_deadline(value: timedelta | Timetable | None, then: OnDeadline = "alert") -> Deadline | None:
    """Return the deadline that a span or a timetable means; `None` if neither is given.

    Raises:
        InvalidSchedule: `then` says what happens at a deadline that is not given, or is not one of its three values.
    """
    if value is None:
        if then != "alert":
            raise InvalidSchedule("on_deadline needs a deadline", rule="9.16", fix="Give deadline, or leave it out")
        return None
    return Deadline(at=value, then=then) if isinstance(value, Timetable) else Deadline(after=value, then=then)


def next_time(timetable: Timetable | None, moment: datetime) -> datetime | None:
    """Return the next time of a timetable after a moment; `None` if there is none."""
    tick = None if timetable is None else timetable.next_after(moment)
    return None if tick is None else tick.time


def check_timing(schedule: Schedule, intake: Intake, deadline: Deadline | None) -> None:
    """Refuse options that a schedule cannot have.

    Raises:
        InvalidSchedule: a time gate has no effect; a single update does not satisfy the condition whose queue
            `max_events` splits; there is no schedule on assets; or a deadline at a time of day has no opening to count
            from.
    """
    if schedule.condition is None:
        if intake != Intake() or deadline is not None:
            raise InvalidSchedule(
                "debounce, max_wait, min_events, max_events, cooldown and deadline need a schedule on assets",
                rule="9.16",
                fix="Schedule the flow on assets, or leave the option out",
            )
        return
    if schedule.condition.has_time_gates or intake.max_events is not None:
        _check_single_updates(schedule, schedule.condition, intake)
    if deadline is not None and deadline.at is not None and (schedule.opening is None or schedule.is_partitioned):
        raise InvalidSchedule(
            "a deadline at a time of day needs an AssetAndTimeSchedule without partitions: "
            "only its openings say from when on a run is missing",
            rule="9.16",
            fix="Write deadline=timedelta(hours=2), which counts from the oldest queued update",
        )


def one_by_one(intake: Intake) -> Intake:
    """Return an intake of one update for each run: Airflow's `batch_asset_events=False`.

    Raises:
        InvalidSchedule: `max_events` says another number.
    """
    if intake.max_events not in (None, 1):
        raise InvalidSchedule(
            f"batch_asset_events=False is max_events=1, and max_events is {intake.max_events}",
            rule="9.16",
            fix="Leave one of them out",
        )
    return replace(intake, max_events=1)


class _Alone(NamedTuple):
    """What single updates do for a part of a condition.

    Attributes:
        leaves: the leaves of the part.
        satisfy: those of them of which a single update satisfies it.
        is_and: it has an AND of several members, be they the same asset.
        always: it holds without any update.
        nodes: the number of its nodes.
    """

    leaves: frozenset[Token]
    satisfy: frozenset[Token]
    is_and: bool = False
    always: bool = False
    nodes: int = 1

    @property
    def suffices(self) -> bool:
        return self.satisfy >= self.leaves


def _check_single_updates(schedule: Schedule, condition: Condition, intake: Intake) -> None:
    leaves = ((place, node) for place, node in enumerate(condition.postfix) if not isinstance(node, Gate))
    found = {place: _leaf(node, schedule.partitioning) for place, node in leaves}
    for place, gate, places in condition.gates:
        members = [found.pop(each) for each in places]
        if gate.is_time_gate and members[0].suffices:
            inner = from_postfix(condition.postfix[place - members[0].nodes : place]).describe()
            raise InvalidSchedule(
                f"{gate.kind} has no effect on {inner}: a single update satisfies it",
                rule="9.5",
                fix=f"Write (orders & customers).{gate.kind}(...) or orders.times(2).{gate.kind}(...), or leave it out",
            )
        if isinstance(gate.argument, Timetable):
            check_times(gate.kind, gate.argument)
        found[place] = _gate(gate, members)._replace(nodes=1 + sum(member.nodes for member in members))
    whole = found[len(condition.postfix) - 1]
    if intake.max_events is not None and (whole.is_and or not whole.suffices):
        name = "batch_asset_events=False" if schedule.one_by_one else "max_events"
        raise InvalidSchedule(
            f"{name} splits the queue, but {condition.describe()} takes several updates together",
            rule="9.16",
            fix="Schedule on one asset, an alias or an OR, or use min_events",
        )


def _leaf(leaf: Leaf, partitioning: Partitioning | None) -> _Alone:
    token = frozenset((leaf.token,))
    rolled_up = partitioning is not None and isinstance(partitioning.mapper_for(token), RollupMapper)
    return _Alone(token, frozenset() if rolled_up else token)


def _gate(gate: Gate, members: Sequence[_Alone]) -> _Alone:
    leaves = frozenset[Token]().union(*(member.leaves for member in members))
    if gate.is_time_gate or (gate.kind == "times" and gate.argument == 1):
        return members[0]
    if gate.kind == "times":
        return _Alone(leaves, frozenset())
    needed = gate.needed - sum(member.always for member in members)
    is_and = (gate.kind == "all" and needed > 1) or any(member.is_and for member in members)
    if needed <= 0:
        return _Alone(leaves, leaves, is_and, always=True)
    times = Counter(token for member in members if not member.always for token in member.satisfy)
    return _Alone(leaves, frozenset(token for token, count in times.items() if count >= needed), is_and)
