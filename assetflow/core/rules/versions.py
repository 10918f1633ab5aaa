"""Recordings that need not make updates: confirmations and observations (contract 8.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from assetflow.core.freshness.recording import Made, confirm, made_of, see
from assetflow.core.freshness.records import Item
from assetflow.core.freshness.states import judge_states
from assetflow.core.rules.keeping import start_run_of
from assetflow.core.rules.state import State
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.errors import InvalidEvent

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
    book = state.freshness
    seen = [event for event in recording.observed if book.concerns(event.uri) and not state.is_made(event.uri)]
    if seen:
        if book.graph.has_policies:
            # Afterwards nobody knows when the sources were observed before.
            judge_states(book, instant - _HEARD_WITHIN)
        for event in seen:
            see(book, Item(event.uri, event.partition_key), event.data_version, event.id, instant)
    for skipped in recording.confirmed:
        if book.concerns(skipped.uri):
            event = placed(state, skipped)
            start_run_of(state, event, instant)
            made = made_of(book, event) or Made(None, event.inputs or None, event.code_version, event.occurred)
            confirm(book, Item(event.uri, event.partition_key), event.id, made, instant)


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
