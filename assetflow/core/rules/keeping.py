"""The pass of chapter 8: it follows that of event and time schedules in the same unit of work (8.16)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from assetflow.core.freshness.deciding import decide
from assetflow.core.freshness.demands import judge_states
from assetflow.core.freshness.reads import touch_flow
from assetflow.core.freshness.recording import (
    Made,
    adopt_run,
    begin_run,
    confirm,
    end_run,
    made_of,
    retry_run,
    see,
    start_run,
)
from assetflow.core.freshness.records import Asked, Inputs, Item, Run, RunKind, RunState, Target
from assetflow.core.rules.ended_runs import RunGoingOn
from assetflow.core.rules.state import State
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.errors import InvalidEvent


def keep_up_to_date(
    state: State, decided: Sequence[Decision], now: datetime, *, recorded: bool = False
) -> list[Decision]:
    """Ask for the Eager targets that are to be run now; return these decisions after those that were made before.

    Parameters:
        decided: the decisions of this pass for event schedules and backfills; their runs read from now on.
        recorded: whether all is recorded that counts at this instant (9.6).
    """
    if not state.freshness.compares:
        return list(decided)
    _begin_runs(state, decided, now)
    made = decide(state.freshness, now, recorded=recorded)
    for decision in made:
        state.decide(decision)
    return [*decided, *made]


def hear_going_on(state: State, run: RunGoingOn, now: datetime) -> None:
    """Remember a run that goes on, whoever started it, if it is not known and what it makes is compared (8.6)."""
    freshness = state.freshness
    node = freshness.graph.of_deployment(run.deployment) if freshness.compares else None
    number = run.decision or run.run
    if node is None or freshness.runs.of_flow_run(node.id, number) is not None:
        return
    kind: RunKind = "asset" if run.decision is not None else "time" if run.by_time else "manual"
    begin_other_run(state, Target(node.id, run.partition_key), number, kind, min(run.asked, now))
    if run.began is not None:
        start_kept_run(state, node.id, number, run.began, now)


def begin_other_run(state: State, target: Target, run: UUID, kind: RunKind, asked: datetime) -> None:
    """Remember a run that goes on and that no decision of chapter 8 asked for, if what it makes is compared (8.6).

    Parameters:
        asked: when it was created or was due. It reads what is there later, but clocks differ, and what it has not read
            must not count as tried: in doubt the earlier.
    """
    freshness = state.freshness
    node = freshness.graph.find(target.consumer)
    if (
        node is not None
        and (target.key is not None) == node.is_partitioned
        and any(map(freshness.concerns, node.outputs))
    ):
        begin_run(freshness, node, target.key, run, kind, asked, place=_place_before_news(state, node.inputs, asked))


def start_kept_run(state: State, consumer: int, run: UUID, started: datetime, now: datetime) -> None:
    """Remember when a run started, if what it read and tried is remembered: it has read what was there then (8.6).

    The start that was heard first counts.

    Parameters:
        run: the id of its decision, or its own if no decision asked for it.
        started: as Prefect gives it. Clocks differ, so it is neither before the decision nor after now.
    """
    known = _open_run(state, consumer, run)
    node = state.freshness.graph.find(consumer)
    at = min(started, now)
    if node is not None and known is not None and known.began == known.asked < at:
        place = max(known.tried.sequence, _place_before_news(state, node.inputs, at))
        start_run(state.freshness, node, known, at, place)


def start_run_of(state: State, event: AssetEvent, instant: datetime) -> None:
    """Remember when the run started that made an update, which carries that start: it may be heard of later (8.6).

    Parameters:
        instant: when the update became durable.
    """
    flow_run = event.origin.flow_run
    if event.started is None or flow_run is None or flow_run.deployment_id is None:
        return
    node = state.freshness.graph.of_deployment(flow_run.deployment_id)
    run = None if node is None else state.freshness.runs.of_flow_run(node.id, flow_run.id)
    if node is not None and run is not None:
        start_kept_run(state, node.id, run.id, event.started, instant)


def end_kept_run(state: State, consumer: int, run: UUID, outcome: RunState, ended: datetime) -> None:
    """Remember how a run ended, if what it read and tried is remembered. Contract 8.6.

    Parameters:
        run: the id of its decision, or its own if no decision asked for it.
    """
    known = _open_run(state, consumer, run)
    if known is not None:
        end_run(state.freshness, known, outcome, max(ended, known.began))


def retry_kept_run(state: State, consumer: int, run: UUID, at: datetime) -> None:
    """Remember that a run which had ended goes on again, if what it read and tried is remembered. Contract 8.6.

    Parameters:
        run: the id of its decision, or its own if no decision asked for it.
        at: when it left its final state. In doubt the earlier: what it has not read must not count as tried.
    """
    node = state.freshness.graph.find(consumer)
    known = None if node is None or not state.freshness.compares else state.freshness.runs.of_flow_run(consumer, run)
    if node is not None and known is not None:
        retry_run(state.freshness, node, known, at, _place_before_news(state, node.inputs, at))


def adopt_kept_run(
    state: State, target: Target, decision: UUID, asked: Asked, made: datetime, began: datetime | None
) -> None:
    """Remember the newest run of a target that an earlier ledger asked for. It goes on until its end is heard (8.17).

    Parameters:
        made: when the decision was made.
        began: when the run began; `None` if it did not yet.
    """
    node = state.freshness.graph.find(target.consumer)
    if node is not None and (target.key is not None) == node.is_partitioned:
        place = _place_before_news(state, node.inputs, began or made)
        inputs = Inputs(place, asked.code_versions, asked.reads)
        adopt_run(state.freshness, node, target, decision, asked.kind, made, began or made, inputs)


def _place_before_news(state: State, uris: Iterable[str], instant: datetime) -> int:
    """Return a place in the ledger before the updates of some assets that came later; in doubt an earlier one."""
    newest = ((uri, state.freshness.updates.newest_of(uri)) for uri in uris)
    later = [uri for uri, update in newest if update is not None and update.recorded > instant]
    places = (state.events.place_before_news(uri, instant) for uri in later)
    return min((place for place in places if place is not None), default=state.freshness.place())


def _open_run(state: State, consumer: int, run: UUID) -> Run | None:
    if not state.freshness.compares:
        return None
    return next((each for each in state.freshness.runs.of(consumer) if each.id == run), None)


def look_at_all(state: State, now: datetime) -> None:
    """Put all Eager targets on the agenda, because nothing was decided for a while."""
    for node in list(state.freshness.graph.all()):
        if node.keeping is not None:
            touch_flow(state.freshness, node, now)


def _begin_runs(state: State, decided: Iterable[Decision], now: datetime) -> None:
    """Remember the runs of flows that make what is compared."""
    freshness = state.freshness
    for each in decided:
        node = freshness.graph.find(each.consumer)
        if node is not None and each.kind in ("asset", "backfill") and any(map(freshness.concerns, node.outputs)):
            begin_run(freshness, node, each.target_key, each.id, each.kind, now)


# Updates from before an observation may be heard of a little later.
_HEARD_WITHIN = timedelta(seconds=15)


def check_observed(state: State, recording: Recording) -> Iterator[tuple[AssetEvent, InvalidEvent]]:
    """Yield what a recording observed that a flow makes, with the error: only sources may be observed."""
    for event in recording.observed:
        if state.is_made(event.uri):
            yield (
                event,
                InvalidEvent(
                    f"{event.uri} is observed, and a flow makes it",
                    rule="8.2",
                    fix="Observe sources only, or take the asset out of the outlets of the flow's tasks",
                ),
            )


def observed_updates(state: State, recording: Recording, instant: datetime) -> Iterator[AssetEvent]:
    """Yield the updates that a recording observed: those of sources whose version differs from the newest one."""
    for event in state.events.only_new(recording.id, recording.observed):
        newest = state.events.newest_of(event.uri, event.partition_key)
        if not state.is_made(event.uri) and (newest is None or _is_other(newest, event, instant)):
            yield event


def remember(state: State, recording: Recording, instant: datetime) -> None:
    """Remember what a recording confirmed, and which versions it observed, of the assets that are compared."""
    freshness = state.freshness
    seen = [event for event in recording.observed if freshness.concerns(event.uri) and not state.is_made(event.uri)]
    if seen:
        if freshness.graph.has_policies:
            # Afterwards nobody knows when the sources were observed before.
            judge_states(freshness, instant - _HEARD_WITHIN)
        for event in seen:
            see(freshness, Item(event.uri, event.partition_key), event.data_version, event.id, instant)
    for skipped in recording.confirmed:
        if freshness.concerns(skipped.uri):
            event = placed(state, skipped)
            start_run_of(state, event, instant)
            made = made_of(freshness, event) or Made(None, event.inputs or None, event.code_version, event.occurred)
            confirm(freshness, Item(event.uri, event.partition_key), event.id, made, instant)


def placed(state: State, event: AssetEvent) -> AssetEvent:
    """Return an event with what its task read as places in this ledger: it may have asked an earlier one.

    A ledger that does not know the id of a pinned event takes the newest one up to its instant.
    """
    if not event.read:
        return event
    places = state.events.places({pin.event for pin in event.read.values()})
    read = {
        uri: places[pin.event] if pin.event in places else state.events.place_at(uri, pin.recorded)
        for uri, pin in event.read.items()
    }
    return replace(event, inputs={**event.inputs, **read})


def _is_other(newest: AssetEvent, event: AssetEvent, instant: datetime) -> bool:
    """Return True if an observation saw another version. One that came before the newest update says nothing of it."""
    is_late = newest.recorded is not None and instant < newest.recorded
    return not is_late and newest.data_version != event.data_version
