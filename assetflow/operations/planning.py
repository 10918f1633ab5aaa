"""What Eager and Lazy flows would run, which assets are late, and what is being done about it. Contract 8.13, 8.16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.values.words import ago
from assetflow.core.values.words import at as told
from assetflow.errors import InvalidCall
from assetflow.ledger.read.assets import AssetFilter
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.reader import Reader
from assetflow.operations.lookup import find_consumer

if TYPE_CHECKING:
    pass


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


@dataclass(frozen=True)
class LateAsset:
    """An asset that is late, or will be.

    Attributes:
        name: its readable name.
        doing: what is being done about it, as a sentence.
    """

    freshness: AssetFreshness
    name: str
    doing: str


def late_now(policies: Sequence[AssetFreshness]) -> list[AssetFreshness]:
    """Return the assets that are older than their policy allows, then those that get a warning."""
    return sorted((each for each in policies if each.is_late), key=lambda each: each.record.state)


def late_soon(
    reader: Reader, policies: Sequence[AssetFreshness], now: datetime
) -> list[tuple[datetime, AssetFreshness]]:
    """Return the assets that will be late at their next deadline if nothing changes, the next deadline first.

    A Lazy flow makes its asset before, when it is due.
    """
    candidates = [(deadline, each) for each in policies if (deadline := each.late_at(now)) is not None]
    lazy = reader.consumers.lazy() if candidates else set[str]()
    found = [
        (deadline, each)
        for deadline, each in candidates
        if each.maker not in lazy or each.record.due is None or each.record.due >= deadline
    ]
    return sorted(found, key=lambda item: (item[0], item[1].uri))


def with_doing(reader: Reader, found: Sequence[AssetFreshness], now: datetime) -> list[LateAsset]:
    """Return some of these assets, each with its name and what is being done about it."""
    if not found:
        return []
    uris = [each.uri for each in found]
    listed, _ = reader.assets.page(AssetFilter(uris=uris), limit=len(uris))
    names = {each.record.uri: each.name for each in listed}
    doing = _doing(reader, {each.maker for each in found if each.maker is not None}, now)
    return [LateAsset(each, names.get(each.uri, each.uri), _of_asset(reader, each, doing, now)) for each in found]


def _of_asset(reader: Reader, each: AssetFreshness, doing: Mapping[str, str], now: datetime) -> str:
    """Return what is being done about an asset; if its flow has nothing to do, which source its data is from."""
    told = doing.get(each.maker or "")
    if told is None:
        return "No flow makes it"
    if told:
        return f"{each.maker}: {told}"
    nothing = f"{each.maker} has nothing to do"
    *_, last = [None, *reader.freshness.data_path(each.uri)[1:]]
    return nothing if last is None or last.moment is None else f"{nothing}: {last.name} is from {ago(last.moment, now)}"


def _doing(reader: Reader, makers: set[str], now: datetime) -> Mapping[str, str]:
    """Return what each of these flows does now, or what holds it back, by its name; "" if it has nothing to do."""
    records = [record for name in sorted(makers) if (record := reader.consumers.named(name)) is not None]
    kept = [each.consumer.id for each in records if each.consumer.schedule.keeping is not None]
    plans = {each.consumer: each for each in (reader.freshness.plans(now, kept) if kept else [])}
    told = {each.name: _of_flow(each, plans.get(each.name)) for each in reader.consumers.overviews(records)}
    return {name: f"{words[:1].lower()}{words[1:].rstrip('.')}" for name, words in told.items()}


def _of_flow(maker: ConsumerOverview, planned: PlannedConsumer | None) -> str:
    if planned is None:
        return _of_event_schedule(maker)
    return "" if planned.is_up_to_date else planned.words


def _of_event_schedule(maker: ConsumerOverview) -> str:
    last = maker.last
    if last is not None and last.ended is None:
        if last.status == "undeliverable":
            return "Its run could not be started"
        return "A run goes on" if last.status == "launched" else "A run is asked for"
    if maker.paused:
        return f"Held back, because it is {maker.paused.replace(', ', ' and ')}"
    if maker.record.consumer.schedule.tokens:
        return f"It waits: {maker.state}"
    return "It runs at its next time"
