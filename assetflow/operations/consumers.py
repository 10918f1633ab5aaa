"""List consumers, find one by its address, pause and resume one; and pause and resume watchers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches

from assetflow.core.values.words import some
from assetflow.errors import Conflict, UnknownConsumer, UnknownWatcher
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter, ConsumerOrder, ConsumerRecord
from assetflow.operations.installation import Installation, OpenPrefect
from assetflow.operations.lookup import find_consumer, find_uri


def list_by_id(
    reader: Reader, wanted: ConsumerFilter, now: datetime, *, after: int = 0, limit: int | None = None
) -> list[ConsumerOverview]:
    """Return the consumers with an id above `after`, ordered by id; with the reason if a new declaration is refused."""
    refused = {each.deployment_id: each for each in reader.refused_deployments()}
    listed = reader.consumers.overviews(reader.consumers.page(wanted, after=after, limit=limit))
    listed = _with_plans(reader, listed, now)
    return [replace(each, refused=refused.get(each.record.consumer.deployment_id)) for each in listed]


def list_in_order(
    reader: Reader, wanted: ConsumerFilter, order: ConsumerOrder, now: datetime, *, offset: int, limit: int
) -> tuple[list[ConsumerOverview], int]:
    """Return a page of consumers, and the number of all consumers that match."""
    records, total = reader.consumers.listed(wanted, order, limit=limit, offset=offset)
    return _with_plans(reader, reader.consumers.overviews(records), now), total


def _with_plans(reader: Reader, listed: Sequence[ConsumerOverview], now: datetime) -> list[ConsumerOverview]:
    """Return the same consumers, each Eager or Lazy one with what it would run now."""
    kept = [each.record.consumer.id for each in listed if each.record.consumer.schedule.keeping is not None]
    plans = {each.consumer: each for each in (reader.freshness.plans(now, kept) if kept else [])}
    return [replace(each, plan=plans.get(each.name)) for each in listed]


def consumer_at(reader: Reader, flow: str, deployment: str) -> ConsumerRecord:
    """Return the consumer with exactly this name.

    Raises:
        UnknownConsumer: no consumer has it; the error names similar ones.
    """
    name = f"{flow}/{deployment}"
    # The search only serves the error, which names similar consumers.
    return reader.consumers.named(name) or find_consumer(reader, name)


async def switch(prefect: OpenPrefect, record: ConsumerRecord, *, paused: bool) -> None:
    """Pause or resume a consumer with the switch of its automation. The evaluator learns of it from Prefect.

    Raises:
        UnknownConsumer: the consumer has no automation.
        PrefectUnreachable, PrefectRefused: the switch has not changed.
    """
    from assetflow.prefect_io.automations import Automations

    async with prefect() as api:
        automations = Automations(api)
        automation = await automations.of_deployment(record.consumer.deployment_id)
        if automation is None:
            raise UnknownConsumer(
                f"no automation shows the schedule of {record.consumer.name}",
                fix="The evaluator creates it within seconds; check with `assetflow status` that one is running",
            )
        await automations.switch(automation.id, enabled=not paused)


def switch_watcher(at: Installation, name: str, *, paused: bool) -> None:
    """Pause or resume a watcher.

    Raises:
        UnknownWatcher: no deployed asset has a watcher of this name; the error names similar ones.
    """
    names = [each.name for each in at.ledger.reader.watchers.all()]
    if name not in names:
        close = get_close_matches(name, names, n=3, cutoff=0.5)
        fix = f"Similar names: {', '.join(close)}" if close else "`assetflow watchers ls` lists them"
        raise UnknownWatcher(f"there is no watcher {name!r}", fix=fix)
    at.ledger.writer.watchers.switch(name, paused=paused, now=at.now())


def hide(at: Installation, asset: str, *, by: str) -> str:
    """Hide an asset from lists, graph and search until its next update or declaration. Return its URI.

    Raises:
        UnknownAsset: the ledger has no such asset.
        Conflict: a flow makes it, reads it or runs on it.
    """
    uri = find_uri(at.ledger.reader, asset)
    used = _uses(at.ledger.reader, uri)
    if used:
        raise Conflict(
            f"the asset {uri} cannot be hidden: {used}",
            where="asset",
            fix="Hide it when no deployed flow names it any more",
        )
    at.ledger.writer.assets.hide(uri, by=by, now=at.now())
    return uri


def unhide(at: Installation, asset: str) -> str:
    """Show an asset again, and return its URI. One that is not hidden stays as it is.

    Raises:
        UnknownAsset: the ledger has no such asset.
    """
    uri = find_uri(at.ledger.reader, asset)
    at.ledger.writer.assets.unhide(uri)
    return uri


def _uses(reader: Reader, uri: str) -> str:
    """Return who works with an asset in words, as in `it is made by a/b, it starts c/d`; "" if nobody does."""
    listed = reader.assets.get(uri=uri)
    if listed is None:
        return ""
    users = reader.assets.users_of([listed.record])[uri]
    ways = (("it is made by", users.producers), ("it is read by", users.readers), ("it starts", users.scheduled))
    return ", ".join(f"{way} {some(sorted(names))}" for way, names in ways if names)
