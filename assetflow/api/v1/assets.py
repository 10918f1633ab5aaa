"""Assets, the graph around them, their freshness, watchers and backfills. Contract 8.9 to 8.18."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query

from assetflow.api.own_shapes import AssetHidden, BackfillIn, NameOut, ObservationIn, ObservedOut, Switched
from assetflow.api.problems import answers
from assetflow.api.requests import (
    CountedPage,
    EtagRoute,
    Json,
    Moment,
    Now,
    Number,
    Page,
    PathAsset,
    Text,
    TheAsset,
    TheBackend,
    ThePage,
    TheReader,
)
from assetflow.core.explain import shown_event
from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.explain.status import AssetExplanation, Status
from assetflow.core.freshness.asset_freshness import FreshnessChange, FreshnessNow
from assetflow.core.freshness.records import StepState
from assetflow.core.graph.lineage import DATA, SCHEDULING, EdgeKind
from assetflow.core.json_data import fit_text
from assetflow.core.partitions.ranges import read_periods
from assetflow.core.values.assets import check_data_version
from assetflow.core.values.events import CheckHistory, Origin, key_by_hand
from assetflow.errors import InvalidCall, UnknownAsset, places
from assetflow.ledger.read.assets import AssetFilter, ShownAsset
from assetflow.ledger.read.backfills import BackfillPreview, BackfillProgress, BackfillTargetRecord, ShownBackfill
from assetflow.ledger.read.explanations import asset_explanation
from assetflow.ledger.read.freshness import AssetVersion
from assetflow.ledger.read.partitions import PartitionRecord
from assetflow.ledger.records import WatcherRecord
from assetflow.operations import backfill
from assetflow.operations.backfill import BackfillWanted, find_backfill, plan
from assetflow.operations.graph import Graph, Lineage, Wanted, graph_of, lineage_of
from assetflow.operations.lookup import asset_called, find_node, find_uri, hide, switch_watcher, unhide
from assetflow.operations.needs import planned
from assetflow.operations.recording import observe

router = APIRouter(tags=["assets"], route_class=EtagRoute)

Levels = Annotated[int, Query(ge=0, le=50, description="How many levels; a level is one flow.")]

MOST_NODES = 500
Focus = Annotated[
    Text,
    Query(
        min_length=1,
        description="An asset by URI or name, a flow, or any node by its id.",
        examples=["s3://shop/orders"],
    ),
]


@router.get("/assets", responses=answers())
def list_assets(
    reader: TheReader,
    page: ThePage,
    search: Annotated[Text, Query(description="A part of the URI, of a name or of the group.")] = "",
    group: Annotated[Text | None, Query(description="Of this group.")] = None,
    hidden: Annotated[bool, Query(description="Only those that are hidden, instead of all others.")] = False,
) -> CountedPage[ShownAsset]:
    """List assets by URI, without those that are hidden."""
    query = AssetFilter(search=search, group=group, hidden=hidden)
    found, total = reader.assets.page(query, [("uri", False)], limit=page.limit, offset=page.number or 0)
    users = reader.assets.users_of([each.record for each in found])
    shown = page.counted([each.shown(users[each.record.uri]) for each in found], total)
    return CountedPage(shown.items, shown.next, total)


@router.get("/asset", responses=answers(404))
def get_asset(found: TheAsset) -> ShownAsset:
    """Return one asset, by its URI or name. For an unknown one, the error names similar assets."""
    return found.listed.shown(found.users)


@router.post("/assets/{asset:path}/hide", response_model=AssetHidden, responses=answers(404, 409, 415))
def hide_asset(
    asset: PathAsset,
    backend: TheBackend,
    by: Annotated[Text, Query(description="Who hides it.")] = "api",
) -> Json:
    """Hide an asset that no flow declares or runs on from lists, graph and search, until its next update.

    It is also shown while a flow declares it. Its events stay.
    """
    with places(asset="path.asset"):
        return Json({"uri": hide(backend, asset, by=by), "hidden": True})


@router.post("/assets/{asset:path}/unhide", response_model=AssetHidden, responses=answers(404, 415))
def unhide_asset(asset: PathAsset, backend: TheBackend) -> Json:
    """Show an asset again."""
    return Json({"uri": unhide(backend, asset), "hidden": False})


@router.get("/lineage", responses=answers(404))
def get_lineage(
    reader: TheReader,
    focus: Focus,
    depth: Annotated[int, Query(ge=0, le=100, description="The largest number of edges from the focus.")] = 2,
    scheduling: Annotated[bool, Query(description="Include edges that start flows.")] = True,
    data: Annotated[bool, Query(description="Include what flows produce, and what they only read.")] = True,
    limit: Annotated[int, Query(ge=1, le=MOST_NODES, description="The largest number of nodes, nearest first.")] = 200,
) -> Lineage:
    """Return the graph around an asset: the flows that it starts, that make it and that read it, and their assets.

    What starts flows goes on through what they produce: without `data`, only the edges of what is read are left out.
    To continue from a node of the answer, give its id as `focus`.
    """
    kinds: set[EdgeKind] = {*(SCHEDULING if scheduling else ()), *(DATA if data else ())}
    return lineage_of(reader, find_node(reader, focus), depth, kinds=kinds, most=limit)


@router.get("/names/{name:path}", response_model=NameOut, responses=answers(404))
def get_owner(name: Text, reader: TheReader) -> Json:
    """Return the URI that a name belongs to."""
    uri = reader.assets.owner_of(name)
    if uri is None:
        raise UnknownAsset(
            f"no asset is named {name!r}", where="path.name", fix="GET /api/v1/asset names similar assets"
        )
    return Json({"name": name, "uri": uri})


@router.get("/assets/{asset:path}/partitions", responses=answers(404))
def list_partitions(
    asset: PathAsset,
    reader: TheReader,
    page: ThePage,
) -> Page[PartitionRecord]:
    """List the partitions of an asset by key: how often each was updated, and when last."""
    found = reader.partitions.page(find_uri(reader, asset), after=page.text or "", limit=page.limit)
    return page.after(found, lambda each: each.key)


@router.get("/assets/{asset:path}/checks", responses=answers(404))
def get_checks(
    asset: PathAsset,
    reader: TheReader,
    partition_key: Annotated[Text | None, Query(description="Only in this partition.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="The largest number of updates that are looked at.")] = 100,
) -> CheckHistory:
    """Return what the checks of an asset found in its last updates, and in data that was held back, newest first."""
    uri = find_uri(reader, asset)
    return CheckHistory(uri, reader.checks.history(uri, partition_key, limit=limit))


@router.get("/freshness", responses=answers())
def list_freshness(reader: TheReader, now: Now, page: ThePage) -> Page[FreshnessNow]:
    """List the assets that have a freshness policy, with state, data time and lag (8.13)."""
    return page.within([each.shown(now) for each in reader.policies.all()])


@router.get("/freshness/changes", responses=answers(404))
def list_freshness_changes(
    reader: TheReader,
    page: ThePage,
    asset: Annotated[Text | None, Query(description="Of this asset: its URI, or its name.")] = None,
) -> Page[FreshnessChange]:
    """List the changes of states, newest first: each is one event in Prefect (8.13)."""
    uri = None if asset is None else find_uri(reader, asset)
    found = reader.policies.changes(uri=uri, before=page.number, limit=page.limit)
    return page.after([each.shown() for each in found], lambda each: each.number)


@router.post("/assets/{asset:path}/observations", response_model=ObservedOut, responses=answers(413, 415))
def observe_asset(asset: Text, body: ObservationIn, backend: TheBackend) -> Json:
    """Record which versions of a source were seen. An item whose version is not the newest one gets an update.

    Only an asset that no deployed flow makes can be observed.
    """
    source = asset_called(backend.ledger.reader, asset)
    versions = {
        None if each.partition_key is None else key_by_hand(each.partition_key): check_data_version(
            each.data_version, where="data_version"
        )
        for each in body.items
    }
    recorded = observe(backend, source, versions, origin=Origin("api", by=fit_text(body.by)))
    return Json(
        {
            "uri": source.uri,
            "events": [shown_event(event) for event in recorded.events],
            "decisions": recorded.decisions,
            "warnings": list(recorded.warnings),
        }
    )


@router.get("/graph", responses=answers(404))
def get_graph(
    reader: TheReader,
    focus: Annotated[
        Text, Query(description="A node by its id, an asset by URI or name, or a flow; empty for the whole graph.")
    ] = "",
    up: Levels = 1,
    down: Levels = 3,
    fold: Annotated[bool | None, Query(description="Fold groups; by default only those of a large whole.")] = None,
    opened: Annotated[list[Text], Query(description="The ids of boxes that are not folded.")] = [],  # noqa: B006
) -> Graph:
    """Return the graph with a place for each node: the way up and down from one, or the whole.

    There is one edge for two nodes, with the kinds of all relations between them. The ends of a hub are folded into one
    node, and so are groups; name their ids in `opened` to see what is in them.
    """
    start = find_node(reader, focus) if focus else None
    return graph_of(reader, Wanted(start, up, down, fold, tuple(opened)))


Name = Annotated[Text, Path(max_length=250, description="The watcher.")]


@router.get("/watchers", responses=answers())
def list_watchers(reader: TheReader, page: ThePage) -> Page[WatcherRecord]:
    """List what updates assets from outside: queues, files, tables and queries, with their states and counts (10.1)."""
    return page.within(reader.watchers.all())


@router.post("/watchers/{watcher}/pause", responses=answers(404, 415))
def pause_watcher(watcher: Name, backend: TheBackend) -> Switched:
    """Pause a watcher: what is outside stays there until it is resumed."""
    return _switch(backend, watcher, paused=True)


@router.post("/watchers/{watcher}/resume", responses=answers(404, 415))
def resume_watcher(watcher: Name, backend: TheBackend) -> Switched:
    """Resume a paused watcher."""
    return _switch(backend, watcher, paused=False)


def _switch(backend: TheBackend, watcher: str, *, paused: bool) -> Switched:
    switch_watcher(backend, watcher, paused=paused)
    return Switched(watcher, paused)


freshness_router = APIRouter(tags=["freshness"], route_class=EtagRoute)

PartitionKey = Annotated[Text | None, Query(min_length=1, max_length=250, description="Of this partition alone.")]
TargetKey = Annotated[Text | None, Query(min_length=1, max_length=250, description="Of this target alone.")]


@freshness_router.get("/statuses", responses=answers())
def list_statuses(reader: TheReader, now: Now, page: ThePage) -> Page[Status]:
    """List the status of all assets that Eager and Lazy consumers need, by URI (8.9)."""
    return page.within(reader.freshness.statuses(None, now))


@freshness_router.get("/assets/{asset:path}/status", responses=answers(404))
def get_status(asset: PathAsset, reader: TheReader, now: Now, partition_key: PartitionKey = None) -> Status:
    """Return whether an asset, or one of its partitions, is up to date, and if not, what has changed (8.9)."""
    return reader.freshness.status(find_uri(reader, asset), partition_key, now)


@freshness_router.get("/assets/{asset:path}/explanation", responses=answers(404))
def explain_asset(
    asset: PathAsset, reader: TheReader, now: Now, partition_key: PartitionKey = None
) -> AssetExplanation:
    """Return the status, the versions that were read beside those of now, and where the data time comes from (8.12)."""
    return asset_explanation(reader, find_uri(reader, asset), partition_key, now)


@freshness_router.get("/assets/{asset:path}/versions", responses=answers(404))
def list_versions(
    asset: PathAsset,
    reader: TheReader,
    page: ThePage,
    partition_key: PartitionKey = None,
) -> Page[AssetVersion]:
    """List the versions of an asset that Eager or Lazy consumers need, newest first, with their runs (8.2)."""
    found = reader.freshness.versions(find_uri(reader, asset), partition_key, before=page.number, limit=page.limit)
    return page.after(found, lambda each: each.sequence)


@freshness_router.get("/plan", responses=answers(404))
def list_plan(
    reader: TheReader,
    now: Now,
    page: ThePage,
    consumer: Annotated[Text | None, Query(description="Only of this one: `flow/deployment`, or an id.")] = None,
    target_key: TargetKey = None,
    at: Annotated[
        Moment | None, Query(description="As of this later time, if nothing happens until then; now.")
    ] = None,
) -> Page[PlannedConsumer]:
    """Return what each Eager or Lazy consumer would run now, what holds it back, and its next look (8.16)."""
    with places(consumer="query.consumer", key="query.target_key", at="query.at"):
        return page.within(planned(reader, now, consumer=consumer, key=target_key, at=at))


backfill_router = APIRouter(tags=["backfills"], route_class=EtagRoute)

_PLACES = {"asset": "body.asset", "keys": "body.target_keys"}


@backfill_router.get("/backfills", responses=answers())
def list_backfills(
    reader: TheReader,
    page: ThePage,
) -> Page[ShownBackfill]:
    """List the backfills of assets, newest first."""
    found = reader.backfills.all(before=page.number, limit=page.limit)
    return page.after([each.shown() for each in found], lambda each: each.number)


@backfill_router.post("/backfills", responses=answers(404, 413, 415), status_code=200)
def begin_backfill(
    wanted: BackfillIn,
    backend: TheBackend,
    preview: Annotated[bool, Query(description="Begin nothing: answer with the waves.")] = False,
) -> ShownBackfill | BackfillPreview:
    """Begin a backfill of an asset and, with `down`, of what lies below it. The evaluator carries it out (8.18)."""
    reader = backend.ledger.reader
    with places(**_PLACES):
        between = _range_of(wanted)
        given = BackfillWanted(find_uri(reader, wanted.asset), wanted.down, wanted.target_keys, between)
        planned = plan(reader, given)
    if preview:
        return planned.shown(given.uri, down=given.down)
    options = {"by": wanted.by, "why": wanted.why}
    return backfill.begin(backend, given, planned, concurrency=wanted.concurrency, **options).shown()


@backfill_router.get("/backfills/{number}", responses=answers(404))
def show_backfill(number: Number, reader: TheReader) -> BackfillProgress:
    """Return how far a backfill has come, wave by wave."""
    record = find_backfill(reader, number)
    return BackfillProgress(**vars(record.shown()), waves=reader.backfills.progress(number))


@backfill_router.get("/backfills/{number}/targets", responses=answers(404))
def list_backfill_targets(
    number: Number,
    reader: TheReader,
    page: ThePage,
    state: StepState | None = None,
) -> Page[BackfillTargetRecord]:
    """List the targets of a backfill with their runs, by consumer and key."""
    find_backfill(reader, number)
    after = -1 if page.number is None else page.number
    found = reader.backfills.targets(number, state=state, after=after, limit=page.limit)
    return page.after(found, lambda each: each.place)


@backfill_router.post("/backfills/{number}/stop", responses=answers(404, 409, 415))
def stop_backfill(number: Number, backend: TheBackend) -> ShownBackfill:
    """Stop a backfill: its runs go on, and no further one starts."""
    return backfill.stop(backend, number).shown()


@backfill_router.post("/backfills/{number}/resume", responses=answers(404, 409, 415))
def resume_backfill(number: Number, backend: TheBackend) -> ShownBackfill:
    """Resume a backfill that was stopped or failed: what failed runs again, with what that took off."""
    return backfill.resume(backend, number).shown()


def _range_of(wanted: BackfillIn) -> tuple[datetime, datetime] | None:
    if wanted.from_ is None and wanted.to is None:
        return None
    if wanted.from_ is None or wanted.to is None:
        raise InvalidCall(
            "a range needs from and to", fix="Give both, such as 2026-11-01 and 2026-11-20: both included"
        )
    return read_periods(wanted.from_, wanted.to)
