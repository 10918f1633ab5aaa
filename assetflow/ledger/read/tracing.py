"""What trees of causes are made from: level by level, with the same few statements for each. Contract 7.4."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Row, Select, and_, exists, func, or_, select

from assetflow.core.explain.events import maker_of
from assetflow.core.explain.plan import IN_SHORT
from assetflow.core.explain.trace import LEVELS, MOST, Causes, Held, Led, TracedAsset, TracedRun
from assetflow.core.freshness.records import Inputs, VerdictName
from assetflow.core.partitions import EveryTargetMapper
from assetflow.core.rules.ended_runs import EndedRun
from assetflow.core.values.consumers import ReceiptStatus
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import rounded_in_words
from assetflow.errors import MappingError
from assetflow.ledger.read import Topic
from assetflow.ledger.read.assets import READABLE_NAME
from assetflow.ledger.read.decisions import DECISIONS, decision_from_row
from assetflow.ledger.read.pruning import ENDED_RUNS
from assetflow.ledger.read.queues import words_of_queues
from assetflow.ledger.records import DecisionRecord
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.freshness_tables import KEPT_RUN, TARGET
from assetflow.ledger.sql.rows import EVENT_COLUMNS, event_from_row
from assetflow.ledger.sql.tables import ASSET, CONSUMER, DECISION, ENDED_RUN, EVENT, MISSED_DEADLINE, RECEIPT

# So many of the newest updates and decisions are looked through for those that begin a tree.
_SEARCHED = 5_000
_QUEUES = 100

_RECEIPTS = (
    select(RECEIPT.c.sequence, RECEIPT.c.consumer, CONSUMER.c.name, RECEIPT.c.target_key, RECEIPT.c.status)
    .add_columns(RECEIPT.c.decision)
    .join(CONSUMER, CONSUMER.c.id == RECEIPT.c.consumer)
    .where(in_values(RECEIPT.c.sequence, "sequences"))
    .order_by(RECEIPT.c.sequence, RECEIPT.c.consumer)
)
_BY_NUMBER = DECISIONS.where(in_values(DECISION.c.number, "numbers"))
_KEPT = (
    DECISIONS.add_columns(KEPT_RUN.c.tried)
    .join(KEPT_RUN, KEPT_RUN.c.id == DECISION.c.id)
    .where(in_values(DECISION.c.consumer, "consumers"), DECISION.c.kind.in_(("eager", "lazy", "backfill")))
    .order_by(DECISION.c.number)
)
_CONSUMED = (
    select(RECEIPT.c.decision, EVENT.c.uri, func.max(RECEIPT.c.sequence), func.max(EVENT.c.recorded))
    .join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
    .where(in_values(RECEIPT.c.decision, "numbers"), RECEIPT.c.decision.is_not(None))
    .group_by(RECEIPT.c.decision, EVENT.c.uri)
)
_MADE = select(*EVENT_COLUMNS).where(in_values(EVENT.c.flow_run_id, "runs")).order_by(EVENT.c.sequence)
_ENDS = select(*ENDED_RUNS.columns).where(in_values(ENDED_RUN.c.flow_run_id, "runs"))
_BEFORE = select(DECISION.c.number).order_by(DECISION.c.number.desc()).limit(1)
_NAMES = select(ASSET.c.uri, READABLE_NAME).where(in_values(ASSET.c.uri, "uris"))
_VERDICTS = select(TARGET.c.consumer, TARGET.c.target_key, TARGET.c.verdict).where(
    in_values(TARGET.c.consumer, "consumers"), in_values(TARGET.c.verdict, "verdicts")
)
_WAITS = ("waits", "missing_input", "paused", "retry", "owed", "not_needed")
_MISSED = (
    select(MISSED_DEADLINE.c.consumer, MISSED_DEADLINE.c.target_key, func.max(MISSED_DEADLINE.c.at))
    .where(in_values(MISSED_DEADLINE.c.consumer, "consumers"))
    .group_by(MISSED_DEADLINE.c.consumer, MISSED_DEADLINE.c.target_key)
)
_NEWEST = select(func.coalesce(func.max(EVENT.c.sequence), 0)).scalar_subquery()
_ASKED = exists().where(DECISION.c.flow_run_id == EVENT.c.flow_run_id)
# What no decision made: from outside, or by a run that somebody else, or the clock, started.
_FIRST = (
    select(*EVENT_COLUMNS, EVENT.c.recording)
    .where(EVENT.c.sequence > _NEWEST - _SEARCHED, ~_ASKED)
    .order_by(EVENT.c.sequence.desc())
)
_LAST = select(func.coalesce(func.max(DECISION.c.number), 0)).scalar_subquery()
_ALONE = DECISIONS.where(DECISION.c.number > _LAST - _SEARCHED, DECISION.c.kind != "asset").order_by(
    DECISION.c.number.desc()
)
_REFUSED: Mapping[ReceiptStatus, str] = {
    "dropped": "paused: dropped the update",
    "removed": "an operator removed the update from its queue",
    "expired": "the update expired",
    "skipped": "skipped at its deadline",
    "superseded": "its schedule was changed",
    "not_mapped": "its mapper cannot read the key",
}


class _Receipt(NamedTuple):
    sequence: int
    consumer: int
    flow: str
    key: str | None
    status: ReceiptStatus
    decision: int | None


@dataclass
class _Found:
    """What was read so far."""

    after: int
    updates: dict[int, AssetEvent] = field(default_factory=dict[int, AssetEvent])
    runs: dict[UUID, TracedRun] = field(default_factory=dict[UUID, TracedRun])
    by: dict[UUID, list[int]] = field(default_factory=lambda: defaultdict[UUID, list[int]](list))
    assets: dict[UUID, list[tuple[int, str, datetime | None]]] = field(default_factory=lambda: defaultdict(list))
    tried: dict[int, Mapping[str | None, _Tried]] = field(default_factory=dict[int, "Mapping[str | None, _Tried]"])
    held: list[_Receipt] = field(default_factory=list["_Receipt"])
    backfills: set[UUID | None] = field(default_factory=set["UUID | None"])
    is_cut: bool = False


class TraceReader(Topic):
    """Reads what trees of causes are made from."""

    def first_updates(self, limit: int) -> list[list[AssetEvent]]:
        """Return the newest updates that no decision made, those of one run or else of one recording together."""
        groups: dict[UUID, list[AssetEvent]] = {}
        for row in self._rows(_FIRST.limit(_SEARCHED)):
            event = event_from_row(row)
            run = event.source_flow_run
            group = groups.setdefault(row[-1] if run is None else run.id, [])
            group.insert(0, event)
            if len(groups) > limit:
                break
        return list(groups.values())[:limit]

    def recorded_with(self, event: UUID) -> list[AssetEvent]:
        """Return an update and those of other keys of its asset in the same recording; none for an unknown id."""
        of = select(EVENT.c.recording, EVENT.c.uri).where(EVENT.c.id == event).subquery()
        same = (EVENT.c.recording == of.c.recording, EVENT.c.uri == of.c.uri)
        rows = self._rows(select(*EVENT_COLUMNS).join(of, and_(*same)).order_by(EVENT.c.sequence).limit(MOST))
        return [event_from_row(row) for row in rows]

    def run_with(self, number: UUID) -> TracedRun | None:
        """Return the run with this id, or of the decision with it, as far as the ledger knows it."""
        query = DECISIONS.where(or_(DECISION.c.id == number, DECISION.c.flow_run_id == number))
        for row in self._rows(query.limit(1)):
            return traced(decision_from_row(row))
        if made := list(map(event_from_row, self._rows(_MADE.limit(MOST), {"runs": [number]}))):
            return other_run(made)
        for end in map(ENDED_RUNS.read, self._rows(_ENDS, {"runs": [number]})):
            return TracedRun(number, end.flow, end.target_key, "task", end.asked, number, end.began, end.ended, "")
        return None

    def alone(self, limit: int) -> list[TracedRun]:
        """Return the newest runs that consume nothing, and that no changed data was the reason for."""
        found = (decision_from_row(row) for row in self._rows(_ALONE.limit(_SEARCHED)))
        return [traced(made) for made in found if all(cause.kind != "data" for cause in made.because)][:limit]

    def follow(self, updates: Sequence[AssetEvent], runs: Sequence[TracedRun], now: datetime) -> Causes:
        """Return all that these updates, and what these runs updated, led to.

        Parameters:
            now: as of when it is said what a queue waits for.
        """
        first = [*(each.recorded for each in updates if each.recorded), *(each.made for each in runs)]
        with self._connect() as connection:
            before = connection.scalar(_BEFORE.where(DECISION.c.decided < min(first))) if first else 0
            found = _Found(before or 0, runs={run.id: run for run in runs})
            new, asked = {each.sequence or 0: each for each in updates}, list(runs)
            for _ in range(LEVELS):
                new |= _made(connection, asked, found)
                if not new or found.is_cut:
                    break
                found.updates |= new
                asked, new = _led_to(connection, new, found), {}
            else:
                found.is_cut = True
            held = list(_held(connection, found, now))
            ends = _ends(connection, found.runs.values())
            uris = {each.uri for each in found.updates.values()}
            uris |= {uri for assets in found.assets.values() for _, uri, _ in assets}
            names: dict[str, str] = {row[0]: row[1] for row in _all(connection, _NAMES, uris=uris)}
        led = [
            Led(
                _ended(run, ends.get(run.flow_run_id)),
                found.by[key],
                [(at, TracedAsset(uri, names.get(uri, uri), when)) for at, uri, when in found.assets[key]],
            )
            for key, run in found.runs.items()
        ]
        return Causes(list(found.updates.values()), led, held, names, found.is_cut)


def traced(made: DecisionRecord) -> TracedRun:
    """Return a decision as a run of a tree."""
    state = made.run_state or made.status
    of = (made.id, made.consumer_name, made.target_key, made.kind, made.made)
    if made.status == "undeliverable":
        return TracedRun(*of, None, None, made.ended or made.made, state, _first_line(made.error))
    return TracedRun(*of, made.flow_run_id, made.launched, made.ended, state)


def other_run(events: Sequence[AssetEvent]) -> TracedRun:
    """Return the run that made these updates, and that no decision asked for, as far as the ledger knows it."""
    first, last, run = events[0], events[-1], events[0].source_flow_run
    assert run is not None, "a run made them"
    of = (run.id, maker_of(first.origin), None, "task", first.recorded or first.occurred, run.id)
    return TracedRun(*of, None, last.recorded or last.occurred, "")


def _ends(connection: Connection, runs: Iterable[TracedRun]) -> Mapping[UUID | None, EndedRun]:
    asked = {run.flow_run_id for run in runs if run.flow_run_id is not None}
    return {end.flow_run_id: end for end in map(ENDED_RUNS.read, _all(connection, _ENDS, runs=asked))}


def _ended(run: TracedRun, end: EndedRun | None) -> TracedRun:
    """Return a run with what Prefect has said of its end."""
    if end is None:
        return run
    kind = end.started_by if run.kind == "task" else run.kind
    of = (run.id, run.flow, run.key or end.target_key, kind, run.made, run.flow_run_id)
    error = _first_line(end.error) if end.has_failed else ""
    return TracedRun(*of, end.began or run.launched, end.ended, end.state, error)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _all(connection: Connection, query: Select[Any], **given: Collection[object]) -> Sequence[Row[Any]]:
    """Return the rows for these values. Without values, no statement is sent."""
    values = {name: list(each) for name, each in given.items()}
    return connection.execute(query, values).all() if all(values.values()) else ()


def _made(connection: Connection, runs: Iterable[TracedRun], found: _Found) -> dict[int, AssetEvent]:
    """Return what these runs have updated."""
    runs = list(runs)
    found.backfills |= {run.flow_run_id for run in runs if run.kind == "backfill"}
    wanted = [run.flow_run_id for run in runs if run.flow_run_id is not None]
    room = MOST - len(found.updates)
    rows = _all(connection, _MADE.limit(room + 1), runs=wanted)
    found.is_cut |= len(rows) > room
    return {row[0]: event_from_row(row) for row in rows[:room] if row[0] not in found.updates}


def _led_to(connection: Connection, new: Mapping[int, AssetEvent], found: _Found) -> list[TracedRun]:
    """Return the runs that these updates led to, which were not known."""
    room = MOST - len(found.runs)
    receipts = [_Receipt(*row) for row in _all(connection, _RECEIPTS.limit(10 * MOST), sequences=new)]
    numbers = {each.decision for each in receipts if each.decision is not None}
    compared = [(new[each.sequence], each.consumer) for each in receipts if each.status == "compared"]
    found.held += [each for each in receipts if each.decision is None]
    made = _all(connection, _BY_NUMBER.limit(room + 1), numbers=numbers)
    found.is_cut |= len(made) > room
    asked = {each.number: traced(each) for each in map(decision_from_row, made[:room])}
    for number, uri, sequence, at in _all(connection, _CONSUMED, numbers=asked):
        found.assets[asked[number].id].append((sequence, uri, at))
    for each in receipts:
        if each.decision in asked:
            found.by[asked[each.decision].id].append(each.sequence)
    _read_kept(connection, {consumer for _, consumer in compared} - found.tried.keys(), found)
    read = list(_readers(compared, found))
    for event, kept in read:
        found.by[kept.run.id].append(event.sequence or 0)
        found.assets[kept.run.id] = [(0, uri, None) for uri in kept.changed]
    runs = {run.id: run for run in (*asked.values(), *(kept.run for _, kept in read)) if run.id not in found.runs}
    found.runs |= runs
    return list(runs.values())


@dataclass(frozen=True)
class _Kept:
    """A run that consumes nothing, with what it read, and the items whose change was its reason."""

    run: TracedRun
    inputs: Inputs
    items: Collection[tuple[str, str | None]]
    is_for_code: bool

    @property
    def changed(self) -> list[str]:
        return list(dict.fromkeys(uri for uri, _ in self.items))

    def is_led_by(self, event: AssetEvent, found: _Found) -> bool:
        """Return True if an update led to it: it read the update, and its causes name it, if they name items."""
        if event.uri not in self.inputs.reads or self.is_for_code:
            return False
        if self.run.kind == "backfill":
            return event.source_flow_run is not None and event.source_flow_run.id in found.backfills
        return not self.items or (event.uri, event.partition_key) in self.items


@dataclass(frozen=True)
class _Tried:
    """The runs of a target, and up to which update each of them, or one before it, has read."""

    runs: Sequence[_Kept]
    until: Sequence[int]


def _read_kept(connection: Connection, consumers: Collection[int], found: _Found) -> None:
    """Read the runs of Eager and Lazy consumers since the tree began, and sort them by target."""
    query = _KEPT.where(DECISION.c.number > found.after).limit(MOST)
    by_target: dict[int, dict[str | None, list[_Kept]]] = {each: defaultdict(list) for each in consumers}
    for row in _all(connection, query, consumers=consumers):
        made = decision_from_row(row)
        items = [(cause.uri, cause.key) for cause in made.because if cause.kind == "data"]
        is_for_code = bool(made.because) and all(cause.kind == "code" for cause in made.because)
        by_target[made.consumer][made.target_key].append(_Kept(traced(made), row[-1], items, is_for_code))
    for consumer, targets in by_target.items():
        found.tried[consumer] = {
            key: _Tried(kept, list(accumulate((each.inputs.sequence for each in kept), max)))
            for key, kept in targets.items()
        }


def _readers(compared: Iterable[tuple[AssetEvent, int]], found: _Found) -> Iterator[tuple[AssetEvent, _Kept]]:
    """Yield each update with the runs that it led to: those of each target that read it, up to a good one."""
    for event, consumer in compared:
        targets = found.tried[consumer]
        for key in _targets(event, targets):
            tried = targets[key]
            for kept in tried.runs[bisect_left(tried.until, event.sequence or 0) :]:
                if kept.is_led_by(event, found):
                    yield event, kept
                if not kept.run.has_failed:
                    break


def _targets(event: AssetEvent, targets: Mapping[str | None, _Tried]) -> Collection[str | None]:
    """Return the targets that read an update."""
    any_of_them = next(iter(targets.values()), None)
    mapper = None if any_of_them is None else any_of_them.runs[-1].inputs.reads.get(event.uri)
    if event.partition_key is None or None in targets or isinstance(mapper, EveryTargetMapper):
        return targets.keys()
    try:
        keys = [event.partition_key] if mapper is None else mapper.to_downstream(event.partition_key)
    except MappingError:
        return ()
    return [key for key in keys if key in targets]


def _held(connection: Connection, found: _Found, now: datetime) -> Iterator[Held]:
    """Yield the consumers that have not run on an update, each with the reason."""
    yield from _queued(connection, [each for each in found.held if each.status == "queued"], found, now)
    yield from (Held(each.sequence, each.flow, _REFUSED[each.status]) for each in found.held if each.status in _REFUSED)
    followed = {(sequence, run.flow) for key, run in found.runs.items() for sequence in found.by[key]}
    idle = [each for each in found.held if each.status == "compared" and (each.sequence, each.flow) not in followed]
    verdicts: dict[int, dict[str | None, VerdictName]] = defaultdict(dict)
    consumers = {each.consumer for each in idle}
    for consumer, key, verdict in _all(connection, _VERDICTS, consumers=consumers, verdicts=_WAITS):
        verdicts[consumer][key] = verdict
    for each in idle:
        of, key = verdicts[each.consumer], found.updates[each.sequence].partition_key
        # What every target reads, they all wait for.
        if verdict := of.get(key) or of.get(None) or (next(iter(of.values()), None) if key is None else None):
            yield Held(each.sequence, each.flow, f"waits: {IN_SHORT[verdict]}")


def _queued(connection: Connection, queued: Sequence[_Receipt], found: _Found, now: datetime) -> Iterator[Held]:
    places = list(dict.fromkeys((each.consumer, each.key) for each in queued))[:_QUEUES]
    if not places:
        return
    words = words_of_queues(connection, places, now)
    missed = {row[:2]: row[2] for row in _all(connection, _MISSED, consumers=[each for each, _ in places])}
    for each in queued:
        place, since = (each.consumer, each.key), found.updates[each.sequence].recorded or now
        if place in words:
            late = "; it missed its deadline" if place in missed and missed[place] >= since else ""
            why = f"{words[place][2]}, for {rounded_in_words(now - since)}{late}"
            yield Held(each.sequence, each.flow, why if why.startswith(("waits", "is ")) else f"waits: {why}")
