"""Consumers as they are listed: what they run on, and how far they are, in a constant number of statements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from assetflow.core.conditions import Token
from assetflow.core.evaluation import facts_of
from assetflow.core.explanation.words import iso
from assetflow.ledger.among import among
from assetflow.ledger.catalog import Reads
from assetflow.ledger.queries import DECISIONS, decision_from_row
from assetflow.ledger.records import ConsumerRecord, DecisionRecord
from assetflow.ledger.rows import key_from_column
from assetflow.ledger.tables import ALIAS_LINK, ASSET_NAME, DECISION, PENDING

Queues = Mapping[str | None, Mapping[str, set[str | None]]]


@dataclass(frozen=True)
class ConsumerOverview:
    """One consumer.

    Attributes:
        updated: how many of the assets that it waits for have been updated.
        pending: how many partition keys have something queued.
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
    queues: defaultdict[int, defaultdict[str | None, dict[str, set[str | None]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    sizes: defaultdict[int, int] = defaultdict(int)
    with reads() as connection:
        for consumer, target_key, uri, source_key, count in connection.execute(_PENDING, numbers):
            queue = queues[consumer][key_from_column(target_key)]
            queue.setdefault(uri, set()).add(key_from_column(source_key))
            sizes[consumer] += count
        uris = {"uris": {uri for keys in queues.values() for queue in keys.values() for uri in queue}}
        tokens: defaultdict[str, set[Token]] = defaultdict(set)
        for uri, name in connection.execute(_NAMES, uris):
            tokens[uri].add(Token("name", name))
        for uri, alias in connection.execute(_LINKS, uris):
            tokens[uri].add(Token("alias", alias))
        last = {each.consumer: each for each in map(decision_from_row, connection.execute(_LAST, numbers))}
    known = {uri: frozenset((Token("uri", uri), *tokens[uri])) for uri in uris["uris"]}
    return [
        _overview(record, queues[record.consumer.id], sizes[record.consumer.id], last.get(record.consumer.id), known)
        for record in records
    ]


def _overview(
    record: ConsumerRecord,
    queues: Queues,
    queued: int,
    last: DecisionRecord | None,
    tokens: Mapping[str, frozenset[Token]],
) -> ConsumerOverview:
    schedule = record.consumer.schedule
    facts = facts_of(schedule, None, queues.get(None, {}), lambda uri: tokens[uri])
    return ConsumerOverview(record, len(facts & schedule.tokens), len(queues), queued, last)


_PENDING = select(PENDING.c.consumer, PENDING.c.target_key, PENDING.c.uri, PENDING.c.source_key, PENDING.c.count).where(
    among(PENDING.c.consumer, "numbers")
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
