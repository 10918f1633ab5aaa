"""What the page of a consumer says: what it waits for, its queue, its decisions, and what was at an earlier time."""

from __future__ import annotations

from datetime import UTC, datetime

from assetflow.api.backend import Backend
from assetflow.core.graph.lineage import loops_through
from assetflow.core.values.conditions import AssetAll
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.redaction import redacted
from assetflow.ledger.read.explanations import READ_FIRST, consumer_explanation, partition_explanation
from assetflow.ledger.read.past_explanations import past_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.web.pages import url
from assetflow.web.prefect_runs import look_again, states_address

QUEUED = 50
DECISIONS = 15
PARTITIONS = 20
MISSED = 5


def explained(backend: Backend, record: ConsumerRecord, key: str) -> dict[str, object]:
    """Return what a consumer, or one of its partitions, waits for, and its queue."""
    reader, now, consumer = backend.ledger.reader, backend.now(), record.consumer
    loops = loops_through(reader.lineage.edges_of, consumer.name)
    explained = consumer_explanation(reader, record, now, loops=loops, partitions=PARTITIONS, events=READ_FIRST)
    keeps = consumer.schedule.keeping is not None
    planned = reader.freshness.plan(now, consumer.id) if keeps else []
    part = partition_explanation(reader, record, key) if key else None
    has_queue = part is not None or not consumer.schedule.is_partitioned
    queued = reader.queues.events(consumer.id, key or None, limit=QUEUED + 1) if has_queue else []
    return {
        "explained": explained,
        "keeps": keeps,
        "planned": planned[0] if planned else None,
        "part": part,
        "rows": explained.condition if part is None else part.condition,
        "queue": [redacted(event) for event in queued[:QUEUED]],
        "queued": explained.queued if part is None else part.queued,
    }


def earlier(reader: Reader, record: ConsumerRecord, key: str, at: str) -> dict[str, object]:
    """Return why it ran, or did not, at an earlier time, and the deadlines that it missed."""
    moment = _moment(at)
    return {
        "at": at,
        "past": None if moment is None else past_explanation(reader, record, moment, key or None),
        "missed": reader.deadlines.missed(consumer=record.consumer.id, limit=MISSED),
    }


def decided(reader: Reader, record: ConsumerRecord, key: str, before: int | None) -> dict[str, object]:
    """Return a page of its decisions."""
    found = reader.decisions.find(consumer=record.consumer.id, before=before, limit=DECISIONS + 1)
    shown = found[:DECISIONS]
    consumed = reader.decisions.consumed_assets([each.number for each in shown])
    return {
        "decisions": shown,
        "again": look_again(shown),
        "states": states_address(shown),
        "consumed": consumed,
        "run_names": {each.number: each.run_name(consumed.get(each.number, ())) for each in shown},
        "older": place(record, key=key, before=shown[-1].number) if len(found) > DECISIONS else "",
        "newest": place(record, key=key) if before is not None else "",
    }


def _moment(text: str) -> datetime | None:
    """Return the time that a field names, taken as UTC if it has no zone, or `None` if it names none."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def verb(consumer: Consumer) -> str:
    """Return the verb that ends the sentence "Runs when orders AND customers …"."""
    schedule = consumer.schedule
    if not schedule.tokens:
        return ""
    return "were updated" if len(schedule.tokens) > 1 and isinstance(schedule.condition, AssetAll) else "was updated"


def place(record: ConsumerRecord, **query: object) -> str:
    return url("/consumers", *record.consumer.name.split("/", 1), **query)
