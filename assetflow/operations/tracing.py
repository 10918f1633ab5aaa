"""Trees of causes by what a user names, and the newest ones. Contract 7.4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from assetflow.core.explain.trace import Trace, TracedRun, trace
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import IdStart
from assetflow.errors import UnknownEvent
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.read.tracing import other_run
from assetflow.operations.lookup import find_decision, find_event, find_uri

# The updates, or the runs, that a tree begins with.
Root = tuple[Sequence[AssetEvent], Sequence[TracedRun]]


def trace_of(reader: Reader, what: str, now: datetime) -> Trace:
    """Return the tree of causes of what a user names.

    Parameters:
        what: an event by its id or number, a run by its id or that of its decision, or an asset by its name or URI, for
            its newest update; of an id, the first eight characters are enough.

    Raises:
        UnknownEvent, UnknownAsset: nothing is called that, or the asset was never updated.
        InvalidAsset: the text is not a name, and cannot be a URI.
    """
    root = _root(reader, what)
    return trace(reader.tracing.follow(*root, now), *root)


def newest_traces(reader: Reader, limit: int, now: datetime) -> list[Trace]:
    """Return the newest trees, the newest first: those of updates and runs that nothing led to.

    The runs that the backfills of a flow begin with are one tree.
    """
    first, alone = reader.tracing.first_updates(limit), reader.tracing.alone(limit)
    roots: list[Root] = [root for group in first for root in _roots_of(group)]
    others = [run for _, runs in roots for run in runs]
    causes = reader.tracing.follow([event for group in first for event in group], [*alone, *others], now)
    led = {each.run.id for each in causes.runs if each.by}
    groups: dict[object, list[TracedRun]] = {}
    for run in alone:
        if run.id not in led:
            groups.setdefault(run.flow if run.kind == "backfill" else run.id, []).append(run)
    found = [trace(causes, *root) for root in (*roots, *(((), runs) for runs in groups.values()))]
    return sorted(found, key=lambda each: each.at, reverse=True)[:limit]


def _root(reader: Reader, what: str) -> Root:
    with suppress(ValueError):
        return _with_id(reader, UUID(what))
    if what.isascii() and what.isdigit():
        return reader.tracing.recorded_with(find_event(reader, int(what))), ()
    start = IdStart.of(what)
    if start is not None:
        events, decisions = reader.events.beginning(start, 2), reader.decisions.beginning(start, 2)
        if events or decisions:
            return _with_id(reader, find_event(reader, start) if events else find_decision(reader, start).id)
    uri = find_uri(reader, what)
    newest = reader.events.newest([uri]).get(uri)
    if newest is None:
        raise UnknownEvent(f"{what} was never updated", fix="Name an asset that was, an event or a run")
    return reader.tracing.recorded_with(newest.event), ()


def _with_id(reader: Reader, number: UUID) -> Root:
    if events := reader.tracing.recorded_with(number):
        return events, ()
    run = reader.tracing.run_with(number)
    if run is None:
        raise UnknownEvent(
            f"no event, decision or run has the id {number}",
            fix="A run that assetflow did not start is known once it has updated an asset: "
            "`assetflow events ls` lists the events",
        )
    return (), [run]


def _roots_of(group: Sequence[AssetEvent]) -> Iterator[Root]:
    """Yield the run that made some updates, else each asset that was updated."""
    if group[0].source_flow_run is not None:
        yield (), [other_run(group)]
    else:
        for uri in dict.fromkeys(event.uri for event in group):
            yield [event for event in group if event.uri == uri], ()
