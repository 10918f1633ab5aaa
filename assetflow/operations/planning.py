"""Plan what Eager and Lazy consumers would run: now or later, all of them or one, all keys or one. Contract 8.16."""

from __future__ import annotations

from datetime import datetime

from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.values.words import at as told
from assetflow.errors import InvalidCall
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import find_consumer


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
