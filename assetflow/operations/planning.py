"""Let a consumer try again: an Eager or Lazy one what it tried or waived, another one its failed runs.

Contract 4.7, 8.7.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from uuid import UUID

from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.shapes import called, shape
from assetflow.core.values.consumers import Consumer, DecisionMade
from assetflow.core.values.words import at as told
from assetflow.errors import Conflict, InvalidCall
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_consumer
from assetflow.prefect_io.flow_runs import retry_runs


@shape
class Retried:
    """The result of a retry."""

    consumer: str
    """`flow/deployment`."""
    partition_key: str | None = field(metadata=called("target_key"))
    """The target key; null for all targets."""
    decisions: Sequence[DecisionMade] = ()
    """What runs at once; the rest waits for what holds it back (`assetflow plan`)."""
    flow_runs: Sequence[UUID] = ()
    """The failed runs that run again in Prefect, each with the updates that it was given."""


async def retry(
    at: Installation, record: ConsumerRecord, key: str | None = None, *, all_failed: bool = False
) -> Retried:
    """Let a consumer try again.

    An Eager or Lazy consumer forgets what it tried and waived, so that the pass that follows asks for what is out of
    date. Of another one, the last failed run runs again in Prefect.

    Parameters:
        key: only this target key; `None` for all.
        all_failed: all failed runs instead of the last one.

    Raises:
        InvalidCall: the consumer has no such key; `where` is `key`. Or it is Eager or Lazy, and has no failed runs to
            choose from; `where` is `all_failed`.
        Conflict: ledger and Prefect know no failed run of it.
        LedgerForeign: another ledger decides.
        PrefectUnreachable, PrefectRefused
    """
    at.check_decides("nothing would run", "Retry on the machine of that ledger")
    if record.consumer.schedule.keeping is None:
        return await _retry_runs(at, record, key, None if all_failed else 1)
    if all_failed:
        raise InvalidCall(
            f"{record.consumer.name} compares what it reads and makes, and tries all its targets again",
            where="all_failed",
            rule="8.7",
            fix="Leave it out",
        )
    return await asyncio.to_thread(_try_again, at, record.consumer, key)


async def _retry_runs(at: Installation, record: ConsumerRecord, key: str | None, limit: int | None) -> Retried:
    name = record.consumer.name
    failed = await asyncio.to_thread(at.ledger.reader.decisions.failed_runs, record.consumer.id, key, limit)
    if failed:
        async with at.prefect() as api:
            # Oldest first, as they were decided on.
            retried = await retry_runs(api, failed[::-1])
        if retried:
            return Retried(name, key, flow_runs=retried)
    of = name if key is None else f"{name}, key {key},"
    raise Conflict(
        f"{of} has no failed run to run again: none has failed, it goes on already, or Prefect has deleted it",
        rule="4.7",
        fix="`assetflow runs ls` lists its runs; `prefect deployment run` starts one that consumes nothing",
    )


def _try_again(at: Installation, consumer: Consumer, key: str | None) -> Retried:
    made = at.ledger.writer.freshness.retry(consumer.id, key, at.now())
    at.on_recorded()
    decisions = [DecisionMade.of(consumer.name, each) for each in made if each.consumer == consumer.id]
    return Retried(consumer.name, key, decisions)


def planned(
    reader: Reader, now: datetime, *, consumer: str | None = None, key: str | None = None, at: datetime | None = None
) -> list[PlannedConsumer]:
    """Return what Eager and Lazy consumers would run, by name, and what holds them back.

    Parameters:
        consumer: only this one: flow/deployment, its id, or a flow with one consumer.
        key: only this target key.
        at: as of this later time, UTC; now by default.

    Raises:
        UnknownConsumer: no consumer is called so.
        InvalidCall: the time is over, or no such consumer has the key.
    """
    if at is not None and at < now:
        raise InvalidCall(
            f"{told(at)} is over: a plan says what would run from now on",
            rule="8.16",
            fix="Name a later time, or none for now. `assetflow decisions ls` lists what did run",
        )
    number = None if consumer is None else find_consumer(reader, consumer).consumer.id
    found = reader.freshness.plan(at or now, number, key)
    if key is not None and not found:
        of = "no Eager consumer" if consumer is None else f"{consumer} is not an Eager consumer that"
        raise InvalidCall(
            f"{of} has key {key!r}",
            rule="8.3",
            fix="`assetflow assets status URI --key KEY` tells of the key of an asset",
        )
    return found
