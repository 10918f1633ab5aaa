"""Whether assets are up to date, what Eager and Lazy flows would run, and versions of assets (contract 8.9, 8.16)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, and_, bindparam, exists, func, or_, select

from assetflow.core.explain.facts import names_in
from assetflow.core.explain.plan import PlannedConsumer, explain_plan
from assetflow.core.explain.status import (
    AssetExplanation,
    DataStep,
    RunRead,
    Status,
    StatusExplainer,
    data_path,
    explain_asset,
    run_reads,
    stale_keys_of,
    states_of,
)
from assetflow.core.freshness.asset_freshness import AssetFreshness, StateChange, Unjudged
from assetflow.core.freshness.reads import all_keys, missing_items
from assetflow.core.freshness.records import Run
from assetflow.core.shapes import shape
from assetflow.core.wire.events import origin_from_json
from assetflow.ledger.lease import evaluators
from assetflow.ledger.read import Topic, given, newest_first
from assetflow.ledger.read.assets import names_of_assets
from assetflow.ledger.read.partitions import StateTopic
from assetflow.ledger.read.queues import LAST
from assetflow.ledger.sql.freshness_tables import DATA_FLOW, ITEM_VERSION, KEPT_RUN, POLICY, POLICY_CHANGE
from assetflow.ledger.sql.rows import ITEM_UPDATES, KEPT_RUNS, POLICY_CHANGES, POLICY_RECORDS
from assetflow.ledger.sql.tables import CONSUMER, CURSOR, DECISION, EVENT

# What the evaluator cannot do now.
HELD_UP = "held up"
# An evaluator reads Prefect's logs every few seconds, and stores every ten seconds up to when.
_PATIENCE = timedelta(seconds=30)
MOST_READERS = 20
MOST_MISSED = 500

_V = ITEM_VERSION.c
_COMPARES = select(exists(select(DATA_FLOW.c.consumer)))
# A flow that was deployed before anything was compared has no record.
_COMPARES_FLOW = select(
    exists()
    .where(CONSUMER.c.deployment_id == bindparam("deployment"), CONSUMER.c.removed_at.is_(None))
    .where(exists(select(DATA_FLOW.c.consumer)))
)
_RUNS = select(*KEPT_RUNS.columns).where(KEPT_RUN.c.id == bindparam("run"))
_OTHER_RUNS = (
    select(KEPT_RUN.c.id)
    .where(KEPT_RUN.c.ended.is_(None), KEPT_RUN.c.kind.in_(["manual", "time"]))
    .order_by(KEPT_RUN.c.id)
)
_KNOWS_RUN = select(
    or_(exists().where(KEPT_RUN.c.id == bindparam("run")), exists().where(DECISION.c.flow_run_id == bindparam("run")))
)
_HAS_NO_START = and_(KEPT_RUN.c.ended.is_(None), KEPT_RUN.c.began == KEPT_RUN.c.asked)
_LACKS_START = select(
    or_(
        exists(
            select(KEPT_RUN.c.id)
            .join(DECISION, DECISION.c.id == KEPT_RUN.c.id)
            .where(DECISION.c.flow_run_id == bindparam("run"), _HAS_NO_START)
        ),
        exists().where(KEPT_RUN.c.id == bindparam("run"), _HAS_NO_START),
    )
)
_VERSIONS = (
    select(*ITEM_UPDATES.columns, EVENT.c.origin, CONSUMER.c.name)
    .outerjoin(EVENT, EVENT.c.id == _V.event)
    .outerjoin(CONSUMER, CONSUMER.c.id == _V.consumer)
    .where(_V.uri == bindparam("uri"), _V.sequence <= bindparam("last"))
    .order_by(_V.sequence.desc(), _V.confirms.desc())
)


@shape
class AssetVersion:
    """An update of an asset with its version, or the confirmation that it was up to date."""

    event_id: UUID
    """The id of the event; of a confirmation, an id of its own."""
    sequence: int
    """Its place in the ledger."""
    partition_key: str | None
    data_version: str
    code_version: str | None
    recorded: datetime
    confirms: bool
    """Its task skipped: the version stayed, and is up to date."""
    producer: str | None
    """Who made it; null for an update from outside."""
    flow_run_id: UUID | None
    flow_run_name: str | None
    read: Mapping[str, int]
    """Each input, with the sequence up to which it was read."""


class FreshnessReader(StateTopic):
    """Reads what chapter 8 knows, by the judging of the evaluator."""

    def compares(self, deployment_id: UUID | None = None) -> bool:
        """Return True if the flow of a deployment is compared with what it reads and makes; by default, if any is."""
        if deployment_id is None:
            return bool(self._scalar(_COMPARES))
        return bool(self._scalar(_COMPARES_FLOW, {"deployment": deployment_id}))

    def knows_run(self, flow_run_id: UUID) -> bool:
        """Return True if a flow run is that of a decision, or is or was one of a flow that is compared."""
        return bool(self._scalar(_KNOWS_RUN, {"run": flow_run_id}))

    def lacks_start(self, flow_run_id: UUID) -> bool:
        """Return True if an open run of a compared flow has no stored start (8.6)."""
        return bool(self._scalar(_LACKS_START, {"run": flow_run_id}))

    def other_runs(self, limit: int, after: UUID | None = None) -> Sequence[UUID]:
        """Return the open flow runs in the ledger that no decision asked for (8.6), by id.

        Parameters:
            after: only runs whose ids come after this one; `None` for all.
        """
        query = _OTHER_RUNS if after is None else _OTHER_RUNS.where(KEPT_RUN.c.id > after)
        return self._scalars(query.limit(limit))

    def status(self, uri: str, key: str | None, now: datetime) -> Status:
        """Return the status of an asset, or of one of its partitions.

        Parameters:
            now: the time from which "12 min ago" counts, UTC.
        """
        with self._states.open() as state:
            return StatusExplainer(state.freshness, names_in(state), now, self._unjudged()).of(uri, key)

    def statuses(self, uris: Collection[str] | None, now: datetime) -> list[Status]:
        """Return the status of these assets, in order; of all that Eager and Lazy flows need, by URI, for `None`."""
        with self._states.open(assets=uris) as state:
            explainer = StatusExplainer(state.freshness, names_in(state), now, self._unjudged())
            return [explainer.of(uri) for uri in (sorted(state.freshness.graph.compared()) if uris is None else uris)]

    def _unjudged(self) -> Unjudged | None:
        with self._connect() as connection:
            return read_unjudged(connection)

    def states(self, uris: Collection[str]) -> dict[str, str]:
        """Return `fresh`, `outdated`, `stale` or `missing` for each of these assets that is compared."""
        with self._states.open(assets=uris) as state:
            return states_of(state.freshness, uris)

    def stale_keys(self, uri: str, keys: Collection[str]) -> set[str]:
        """Return those of the keys of an asset that are stale."""
        with self._states.open() as state:
            return stale_keys_of(state.freshness, uri, keys)

    def explained(self, uri: str, key: str | None, now: datetime) -> AssetExplanation:
        """Return the status of an item, what was read for it beside what is there now, and its data path."""
        with self._states.open() as state:
            return explain_asset(state.freshness, names_in(state), uri, key, now, self._unjudged())

    def plan(self, now: datetime, consumer: int | None = None, key: str | None = None) -> list[PlannedConsumer]:
        """Return what would be done with the Eager and Lazy consumers, by name, and what holds them back.

        Parameters:
            now: the instant for which it is asked, UTC.
            consumer: only this one.
            key: only this target key, of the consumers that have it.
        """
        with self._states.open() as state:
            return explain_plan(state.freshness, names_in(state), now, None if consumer is None else [consumer], key)

    def plans(self, now: datetime, consumers: Collection[int]) -> list[PlannedConsumer]:
        """Return what would be done with some Eager consumers, by name; other consumers are left out."""
        with self._states.open() as state:
            return explain_plan(state.freshness, names_in(state), now, consumers)

    def data_path(self, uri: str) -> list[DataStep]:
        """Return the path from an asset to the source that its data time follows from (8.12)."""
        with self._states.open() as state:
            return data_path(state.freshness, names_in(state), uri)

    def readers(self, uri: str, now: datetime) -> list[PlannedConsumer]:
        """Return what would be done with the Eager and Lazy consumers that read an asset, by name, at most 20."""
        with self._states.open() as state:
            readers = (node.id for node in state.freshness.graph.readers(uri) if node.keeping is not None)
            return explain_plan(state.freshness, names_in(state), now, list(islice(readers, MOST_READERS)))

    def inputs_of(self, consumer: int) -> list[str]:
        """Return the URIs that the flow of a consumer reads, at most 20."""
        with self._states.open() as state:
            node = state.freshness.graph.find(consumer)
            return [] if node is None else sorted(node.inputs)[:MOST_READERS]

    def reads_of(self, decision: UUID) -> list[RunRead]:
        """Return what the run of a decision read; nothing of a run that is not kept, or whose flow is gone."""
        run = self._run(decision)
        if run is None:
            return []
        before = None if run.predecessor is None else self._run(run.predecessor)
        with self._states.open() as state:
            node = state.freshness.graph.find(run.target.consumer)
            return [] if node is None else run_reads(state.freshness, names_in(state), node, run, before)

    def _run(self, number: UUID) -> Run | None:
        return next(iter(map(KEPT_RUNS.read, self._rows(_RUNS, {"run": number}))), None)

    def keys_needed(self, uri: str) -> set[str]:
        """Return the keys that Eager flows make of an asset, and those of it that they wait for."""
        with self._states.open() as state:
            book = state.freshness
            maker = book.graph.maker(uri)
            is_kept = maker is not None and maker.keeping is not None and maker.is_partitioned
            found = set(all_keys(book, maker)) if maker is not None and is_kept else set[str | None]()
            for node in islice(book.graph.readers(uri), MOST_READERS):
                for target in islice(book.targets.with_verdict("missing_input", node.id, MOST_MISSED), MOST_MISSED):
                    found.update(item.key for item in missing_items(book, node, target.key, uri))
        return {key for key in found if key is not None}

    def versions(
        self, uri: str, key: str | None = None, *, before: int | None = None, limit: int = 20
    ) -> list[AssetVersion]:
        """Return the versions of an asset that Eager and Lazy flows need, newest first.

        Parameters:
            key: only of this partition.
            before: only those before this place in the ledger.
        """
        query = _VERSIONS if key is None else _VERSIONS.where(_V.partition_key == key)
        place = {"uri": uri, "last": LAST if before is None else before - 1}
        return [_version(row) for row in self._rows(query.limit(limit), place)]


def _version(row: Sequence[Any]) -> AssetVersion:
    *values, origin, consumer = row
    update = ITEM_UPDATES.read(values)
    run = None if origin is None else origin_from_json(origin).flow_run
    return AssetVersion(
        update.event,
        update.sequence,
        update.item.key,
        update.data_version,
        update.code_version,
        update.recorded,
        update.confirms,
        consumer,
        None if run is None else run.id,
        None if run is None else run.name or None,
        update.pins or {},
    )


_POLICIES = select(POLICY.c.uri, *POLICY_RECORDS.columns).order_by(POLICY.c.uri)
_LAST = DECISION.alias("last_decision")
_LAST_OF_MAKER = select(func.max(_LAST.c.number)).where(_LAST.c.consumer == POLICY_CHANGE.c.maker).scalar_subquery()
CHANGES = select(
    POLICY_CHANGE.c.number,
    *POLICY_CHANGES.columns,
    POLICY_CHANGE.c.posted,
    POLICY_CHANGE.c.stored,
    CONSUMER.c.name,
    CONSUMER.c.deployment_id,
    DECISION.c.flow_run_id,
).select_from(
    POLICY_CHANGE.outerjoin(CONSUMER, CONSUMER.c.id == POLICY_CHANGE.c.maker).outerjoin(
        DECISION, DECISION.c.number == _LAST_OF_MAKER
    )
)


class PolicyReader(Topic):
    """Reads how fresh assets are."""

    def all(self) -> list[AssetFreshness]:
        """Return all assets with a policy, by URI."""
        with self._connect() as connection:
            rows = connection.execute(_POLICIES).all()
            unjudged = read_unjudged(connection) if rows else None
            return [_freshness(row, unjudged) for row in rows]

    def of_asset(self, uri: str) -> AssetFreshness | None:
        """Return how fresh an asset is; `None` if it has no policy."""
        with self._connect() as connection:
            row = connection.execute(_POLICIES.where(POLICY.c.uri == uri)).one_or_none()
            return None if row is None else _freshness(row, read_unjudged(connection))

    def changes(self, *, uri: str | None = None, before: int | None = None, limit: int = 100) -> list[StateChange]:
        """Return changes of states, newest first. To page on, give the number of the last one as `before`."""
        query = CHANGES.where(*given((POLICY_CHANGE.c.uri, uri)))
        with self._connect() as connection:
            return changes_of(connection, newest_first(query, POLICY_CHANGE.c.number, before, limit))


def _freshness(row: Sequence[Any], unjudged: Unjudged | None) -> AssetFreshness:
    uri, record = row[0], POLICY_RECORDS.read(row[1:])
    return AssetFreshness.of(uri, record, record.chain[-1][0] if record.chain else None, unjudged)


def changes_of(connection: Connection, query: Select[Any]) -> list[StateChange]:
    """Return the changes of states that a query for `CHANGES` finds."""
    rows = connection.execute(query).all()
    read = [(row, POLICY_CHANGES.read(row[1:])) for row in rows]
    uris = {uri for _, each in read for uri in (each.uri, *(cause.uri for cause in each.causes))}
    names = names_of_assets(connection, uris)
    return [StateChange(row[0], each, *row[-3:], posted=row[-5], stored=row[-4], names=names) for row, each in read]


def read_unjudged(connection: Connection) -> Unjudged | None:
    """Return since when and why nothing is judged; `None` if an evaluator judges, or has never read Prefect's logs."""
    cursors = dict(connection.execute(select(CURSOR.c.name, CURSOR.c.value)).tuples().all())
    if cursors.get("events") is None:
        return None
    read, found = datetime.fromisoformat(cursors["events"]), evaluators(connection)
    if found.alive and found.now - read < _PATIENCE:
        return None
    reason = "Prefect does not answer" if cursors.get(HELD_UP) else "the evaluator is still reading Prefect's logs"
    return Unjudged(read, reason if found.alive else "no evaluator is running", found.now)
