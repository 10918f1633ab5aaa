"""Consumers as they are listed: what they run on, and how far they are, in a constant number of statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import case, func, select

from assetflow.core.conditions import Token
from assetflow.core.evaluation import facts_of
from assetflow.core.explanation.words import iso
from assetflow.ledger.among import among
from assetflow.ledger.catalog import Reads
from assetflow.ledger.queries import DECISIONS, decision_from_row
from assetflow.ledger.records import ConsumerRecord, DecisionRecord
from assetflow.ledger.tables import ALIAS_LINK, ASSET_NAME, DECISION, NO_KEY, PENDING


@dataclass(frozen=True)
class ConsumerOverview:
    """One consumer.

    Attributes:
        updated: how many of the assets that it waits for have been updated.
        pending: how many partition keys of a partitioned consumer have something queued.
        queued: how many events are queued.
        last: its latest decision.
    """

    record: ConsumerRecord
    updated: int
    pending: int
    queued: int
    last: DecisionRecord | None

    @property
    def name(self) -> str:
        return self.record.consumer.name

    @property
    def condition(self) -> str:
        return self.record.consumer.schedule.describe()

    @property
    def state(self) -> str:
        schedule = self.record.consumer.schedule
        if schedule.is_partitioned:
            return f"{self.pending} keys pending"
        return f"{self.updated} of {len(schedule.tokens)}"

    @property
    def paused(self) -> str:
        consumer = self.record.consumer
        return ", ".join(word for word, is_so in (("paused", consumer.paused), ("held", consumer.held)) if is_so)

    def as_json(self) -> dict[str, object]:
        consumer = self.record.consumer
        return {
            "id": consumer.id,
            "name": consumer.name,
            "deployment_id": str(consumer.deployment_id),
            "automation_id": str(self.record.automation_id) if self.record.automation_id else None,
            "schedule": self.condition,
            "assets": len(consumer.schedule.tokens),
            "updated": self.updated,
            "queued": self.queued,
            "pending_keys": self.pending if consumer.schedule.is_partitioned else None,
            "paused": consumer.paused,
            "held": consumer.held,
            "last_decision": _last_as_json(self.last),
        }


def overviews(reads: Reads, records: Sequence[ConsumerRecord]) -> list[ConsumerOverview]:
    """What a list says about these consumers."""
    numbers = {"numbers": [record.consumer.id for record in records]}
    queues: defaultdict[int, _Queue] = defaultdict(_Queue)
    with reads() as connection:
        for consumer, uri, keys, events in connection.execute(_PENDING, numbers):
            queues[consumer].add(uri, keys, int(events))
        uris = {"uris": {uri for queue in queues.values() for uri in queue.uris}}
        tokens: defaultdict[str, set[Token]] = defaultdict(set)
        for uri, name in connection.execute(_NAMES, uris):
            tokens[uri].add(Token("name", name))
        for uri, alias in connection.execute(_LINKS, uris):
            tokens[uri].add(Token("alias", alias))
        last = {each.consumer: each for each in map(decision_from_row, connection.execute(_LAST, numbers))}
    known = {uri: frozenset((Token("uri", uri), *tokens[uri])) for uri in uris["uris"]}
    return [_overview(record, queues[record.consumer.id], last.get(record.consumer.id), known) for record in records]


@dataclass
class _Queue:
    """What is queued for a consumer: of a plain one the assets, of a partitioned one how many keys."""

    uris: set[str] = field(default_factory=set[str])
    keys: int = 0
    events: int = 0

    def add(self, uri: str | None, keys: int, events: int) -> None:
        self.events += events
        if uri is None:
            self.keys = keys
        else:
            self.uris.add(uri)


def _overview(
    record: ConsumerRecord, queue: _Queue, last: DecisionRecord | None, tokens: Mapping[str, frozenset[Token]]
) -> ConsumerOverview:
    schedule = record.consumer.schedule
    facts = facts_of(schedule, None, dict.fromkeys(queue.uris, (None,)), lambda uri: tokens[uri])
    return ConsumerOverview(record, len(facts & schedule.tokens), queue.keys, queue.events, last)


# A row for each asset of a plain queue, and one for all pending partitions.
_PLAIN_URI = case((PENDING.c.target_key == NO_KEY, PENDING.c.uri))
_PENDING = (
    select(PENDING.c.consumer, _PLAIN_URI, func.count(PENDING.c.target_key.distinct()), func.sum(PENDING.c.count))
    .where(among(PENDING.c.consumer, "numbers"))
    .group_by(PENDING.c.consumer, _PLAIN_URI)
)
_NAMES = select(ASSET_NAME.c.uri, ASSET_NAME.c.name).where(among(ASSET_NAME.c.uri, "uris"))
_LINKS = select(ALIAS_LINK.c.uri, ALIAS_LINK.c.alias).where(among(ALIAS_LINK.c.uri, "uris"))
_LATER = DECISION.alias("later")
_LAST = DECISIONS.where(
    among(DECISION.c.consumer, "numbers"),
    DECISION.c.number
    == select(func.max(_LATER.c.number)).where(_LATER.c.consumer == DECISION.c.consumer).scalar_subquery(),
)


def _last_as_json(last: DecisionRecord | None) -> dict[str, object] | None:
    if last is None:
        return None
    run = None if last.flow_run_id is None else str(last.flow_run_id)
    return {"id": str(last.id), "made": iso(last.made), "status": last.status, "flow_run_id": run}
