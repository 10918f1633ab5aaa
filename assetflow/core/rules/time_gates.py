"""Which of the queued events satisfy a condition with time gates, and which can count for nothing any more.

The queued events stand in order of time. A condition only gains by further events, and a time gate looks at events that
follow each other. So one number for each start says all: how far one has to read from there until the condition holds.
`Reach` works that out for every node of the condition, from the leaves up. Contract 9.1 to 9.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from assetflow.core.condition_tree import Gate, Token
from assetflow.core.conditions import Condition, Leaf
from assetflow.core.events import AssetEvent
from assetflow.core.partitions import RollupMapper
from assetflow.core.rules.evaluation import TokensOf
from assetflow.core.schedules import Schedule
from assetflow.core.time.timetables import Timetable

Ends = list[int]
"""For each start, the number of events up to which one has to read; more than there are means: never."""


def in_order(events: Sequence[AssetEvent]) -> list[AssetEvent]:
    """Return events by the instant at which each was recorded, and by their place in the ledger."""
    return sorted(events, key=lambda event: (instant_of(event), event.sequence))


def instant_of(event: AssetEvent) -> datetime:
    """Return the instant at which a recorded event became durable. Contract 9.6."""
    assert event.recorded is not None, "only recorded events are queued"
    return event.recorded


class Reach:
    """How far one has to read the queued events of one target key until a condition holds.

    Parameters:
        schedule: its condition is asked about; its mappers tell which assets are rolled up.
        target_key: the key of the queue; None for a plain consumer.
        events: the queued events, as `in_order` gives them.
        tokens_of: the tokens under which an asset is known now.
    """

    def __init__(
        self, schedule: Schedule, target_key: str | None, events: Sequence[AssetEvent], tokens_of: TokensOf
    ) -> None:
        assert schedule.condition is not None, "only a schedule on assets has a queue"
        self.events = events
        self.condition: Condition = schedule.condition
        self._partitioning = schedule.partitioning
        self._target_key = target_key
        self._tokens = {event.uri: tokens_of(event.uri) for event in events}
        self._instants = [instant_of(event) for event in events]
        self._never = len(events) + 1
        self._leaf_ends: dict[tuple[Token, int], Ends] = {}
        self._holding: dict[int, bool] = {}
        self._root = self._ends()

    @property
    def holds(self) -> bool:
        """Whether the condition holds over all events."""
        return self._root[0] < self._never

    @property
    def time_gates(self) -> Mapping[int, bool]:
        """Return for the place of each time gate in postfix order whether it holds over all events."""
        return self._holding

    @property
    def completing(self) -> AssetEvent | None:
        """The event with which the condition holds for the first time, if one takes the events oldest first."""
        return self.events[self._root[0] - 1] if self.holds and self._root[0] else None

    def too_old(self, event: AssetEvent, margin: timedelta) -> Iterator[datetime | None]:
        """Yield, for each leaf that an event matches, when the event becomes too old for it.

        That is the first instant at which it is too old for a time gate around the leaf that does not hold; None if
        there is no such gate, so that the event may still count.

        Parameters:
            margin: how long after the end of a span an event is too old for it.
        """
        tokens = self._tokens[event.uri]
        for leaf, gates in self.condition.time_gates_around:
            if leaf.token in tokens:
                lost = [self._end_for(event, place, margin) for place in gates if not self._holding[place]]
                yield min(lost, default=None)

    def _end_for(self, event: AssetEvent, place: int, margin: timedelta) -> datetime:
        gate = cast("Gate", self.condition.postfix[place])
        if isinstance(gate.argument, timedelta):
            return instant_of(event) + gate.argument + margin
        return period_end(cast("Timetable", gate.argument), instant_of(event))

    def _ends(self) -> Ends:
        values: list[Ends] = []
        for place, node in enumerate(self.condition.postfix):
            if not isinstance(node, Gate):
                values.append(self._ends_of_leaf(node, 1))
                continue
            start = len(values) - node.arity
            members = values[start:]
            del values[start:]
            if node.kind == "times":
                leaf = cast("Leaf", self.condition.postfix[place - 1])
                values.append(self._ends_of_leaf(leaf, cast("int", node.argument)))
            elif node.is_time_gate:
                values.append(self._ends_of_time_gate(node, members[0]))
                self._holding[place] = values[-1][0] < self._never
            else:
                values.append(self._ends_of_gate(node, members))
        return values[0]

    def _ends_of_gate(self, gate: Gate, members: Sequence[Ends]) -> Ends:
        starts = range(self._never)
        if gate.kind == "all":
            return [max((ends[start] for ends in members), default=start) for start in starts]
        if gate.kind == "any":
            return [min((ends[start] for ends in members), default=self._never) for start in starts]
        nth = cast("int", gate.argument) - 1
        return [sorted(ends[start] for ends in members)[nth] for start in starts]

    def _ends_of_time_gate(self, gate: Gate, inside: Ends) -> Ends:
        """Return the least end of a stretch, for each start before or at which it may begin."""
        ends = [self._never] * self._never
        best = self._never
        for start in range(len(self.events), -1, -1):
            end = inside[start]
            if end < self._never and (end <= start or self._in_one(gate, start, end - 1)):
                best = min(best, max(end, start))
            ends[start] = best
        return ends

    def _in_one(self, gate: Gate, first: int, last: int) -> bool:
        """Return True if two events lie within one stretch, or one period, of a time gate."""
        if isinstance(gate.argument, timedelta):
            return self._instants[last] - self._instants[first] <= gate.argument
        return self._instants[last] < period_end(cast("Timetable", gate.argument), self._instants[first])

    def _ends_of_leaf(self, leaf: Leaf, count: int) -> Ends:
        known = self._leaf_ends.get((leaf.token, count))
        if known is None:
            known = self._leaf_ends[leaf.token, count] = self._read_leaf(leaf, count)
        return known

    def _read_leaf(self, leaf: Leaf, count: int) -> Ends:
        places = [place for place, event in enumerate(self.events) if leaf.token in self._tokens[event.uri]]
        rolled_up = {
            uri: mapper for uri in {self.events[place].uri for place in places} if (mapper := self._rollup(uri))
        }
        if rolled_up:
            return self._search(lambda start, end: self._count(places, rolled_up, start, end) >= count)
        ends: Ends = []
        skipped = 0
        for start in range(self._never):
            while skipped < len(places) and places[skipped] < start:
                skipped += 1
            last = skipped + count - 1
            ends.append(places[last] + 1 if last < len(places) else self._never)
        return ends

    def _rollup(self, uri: str) -> RollupMapper | None:
        if self._partitioning is None or self._target_key is None:
            return None
        mapper = self._partitioning.mapper_for(self._tokens[uri])
        return mapper if isinstance(mapper, RollupMapper) else None

    def _search(self, enough: Callable[[int, int], bool]) -> Ends:
        """Return the least end for each start; a later start never has an earlier end."""
        ends: Ends = []
        end = 0
        for start in range(self._never):
            end = max(end, start)
            while end < self._never and not enough(start, end):
                end += 1
            ends.append(end)
        return ends

    def _count(self, places: Sequence[int], rolled_up: dict[str, RollupMapper], start: int, end: int) -> int:
        """Count the events that match a leaf; those of a rolled-up asset only if its wait policy is met (9.2)."""
        found: dict[str, list[str]] = {}
        for place in places:
            if start <= place < end:
                event = self.events[place]
                found.setdefault(event.uri, []).append(event.partition_key or "")
        return sum(
            len(keys)
            for uri, keys in found.items()
            if uri not in rolled_up or rolled_up[uri].is_met(cast("str", self._target_key), keys)
        )


def period_end(timetable: Timetable, moment: datetime) -> datetime:
    """Return when the period of a timetable ends that a moment belongs to; the first moment belongs to it. 9.4."""
    tick = timetable.next_after(moment)
    return _LAST if tick is None else tick.time


_LAST = datetime.max.replace(tzinfo=UTC)
