"""What intake, deadline and time gates ask of the schedule that they belong to. Contract 9.5, 9.16."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from assetflow.core.condition_tree import Gate, Token
from assetflow.core.partitions import RollupMapper
from assetflow.core.time.timetables import Timetable
from assetflow.core.values.conditions import Condition, Leaf, from_postfix
from assetflow.core.values.timing import Deadline, Intake, check_times
from assetflow.errors import InvalidSchedule

if TYPE_CHECKING:
    from assetflow.core.values.schedules import Partitioning, Schedule


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
    values: list[_Alone] = []
    for place, node in enumerate(condition.postfix):
        if not isinstance(node, Gate):
            values.append(_leaf(node, schedule.partitioning))
            continue
        start = len(values) - node.arity
        members = values[start:]
        del values[start:]
        if node.is_time_gate and members[0].suffices:
            inner = from_postfix(condition.postfix[place - members[0].nodes : place]).describe()
            raise InvalidSchedule(
                f"{node.kind} has no effect on {inner}: a single update satisfies it",
                rule="9.5",
                fix=f"Write (orders & customers).{node.kind}(...) or orders.times(2).{node.kind}(...), or leave it out",
            )
        nodes = 1 + sum(member.nodes for member in members)
        if isinstance(node.argument, Timetable):
            check_times(node.kind, node.argument)
        values.append(_gate(node, members)._replace(nodes=nodes))
    if intake.max_events is not None and (values[0].is_and or not values[0].suffices):
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
    needed = {"all": len(members), "any": 1}.get(gate.kind) or cast("int", gate.argument or 0)
    needed -= sum(member.always for member in members)
    is_and = (gate.kind == "all" and needed > 1) or any(member.is_and for member in members)
    if needed <= 0:
        return _Alone(leaves, leaves, is_and, always=True)
    times = Counter(token for member in members if not member.always for token in member.satisfy)
    return _Alone(leaves, frozenset(token for token, count in times.items() if count >= needed), is_and)
