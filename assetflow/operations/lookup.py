"""Find consumers, assets, events and decisions by what a user types; list and switch consumers and watchers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from heapq import nlargest
from uuid import UUID

from assetflow.core.graph.lineage import Node
from assetflow.core.values.assets import Asset
from assetflow.core.values.words import SHOWN, IdStart, some
from assetflow.errors import Conflict, UnknownAsset, UnknownConsumer, UnknownEvent, UnknownWatcher
from assetflow.ledger.read.assets import AssetUsers, ListedAsset
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter, ConsumerOrder, ConsumerRecord, DecisionRecord, EventFilter
from assetflow.operations.installation import Installation, OpenPrefect

_COMPARED = 100
_NO_NUMBER = 2**63


@dataclass(frozen=True)
class Selection:
    """The consumer, the asset and the event that a user names. `None` matches everything.

    Attributes:
        consumer: only this consumer.
        uri: only the asset with this URI.
        event_id: only this event.
    """

    consumer: ConsumerRecord | None = None
    uri: str | None = None
    event_id: UUID | None = None

    @property
    def number(self) -> int | None:
        """The consumer's id."""
        return None if self.consumer is None else self.consumer.consumer.id


def select(
    reader: Reader, consumer: str | None = None, asset: str | None = None, event: UUID | int | IdStart | None = None
) -> Selection:
    """Find the consumer, the asset and the event that a user names.

    Raises:
        UnknownConsumer, UnknownAsset, UnknownEvent: one of them is not in the ledger.
        InvalidAsset: the asset is not a name, and cannot be a URI.
    """
    event_id = None if event is None else find_event(reader, event)
    if event_id is not None and reader.events.get(event_id) is None:
        raise UnknownEvent(f"no event has the id {event_id}", fix="`assetflow events ls` lists the events")
    return Selection(
        None if consumer is None else find_consumer(reader, consumer),
        None if asset is None else find_uri(reader, asset),
        event_id,
    )


def find_consumer(reader: Reader, name: str) -> ConsumerRecord:
    """Return the consumer that a user names.

    Parameters:
        name: `flow/deployment`, `flow.deployment`, the id of the consumer or of its deployment, or the name of a flow
            that has one consumer.

    Raises:
        UnknownConsumer: no consumer matches, or the flow has several; the error names them, or similar ones.
    """
    number = reader.consumers.number_of(name)
    if number is None and name.isascii() and name.isdigit() and len(name) < 19:
        number = int(name)
    found = None if number is None else reader.consumers.get(number)
    return found or _of_flow(reader, name)


def number_of(reader: Reader, name: str | None) -> int | None:
    """Return the number of the consumer that a user names, or `None` if the user names none."""
    return None if name is None else find_consumer(reader, name).consumer.id


def find_node(reader: Reader, text: str) -> Node:
    """Return the node of the graph that a user names: by its id, an asset by URI or name, or a flow.

    Parameters:
        text: of a flow, `flow/deployment`, or its name if it has one deployment.

    Raises:
        UnknownAsset: the ledger has nothing of that name; the error names similar assets and flows.
    """
    node = Node.from_json(text)
    if node is not None:
        return node
    named = reader.consumers.named(text)
    if named is not None:
        return Node("flow", named.consumer.name)
    flows = [*reader.consumers.names(), *reader.lineage.other_flows(text, limit=_COMPARED)]
    meant = [each for each in flows if text in (each, each.partition("/")[0])]
    if len(meant) == 1 and text not in reader.assets.uris_called([text]):
        return Node("flow", meant[0])
    return Node("asset", find_uri(reader, text, flows))


def find_uri(reader: Reader, text: str, flows: Sequence[str] = ()) -> str:
    """Return the URI of the asset that a user names.

    Parameters:
        text: its name, its URI, or `asset:` and the URI, for an asset whose URI is the name of another one.
        flows: the names of flows that the user may have meant.

    Raises:
        UnknownAsset: the ledger has no such asset; the error names similar ones.
        InvalidAsset: the text is not a name, and cannot be a URI.
    """
    node = Node.from_json(text)
    named = {} if node is not None and node.kind == "asset" else reader.assets.uris_called([text])
    if text in named:
        return named[text]
    uri = node.value if node is not None and node.kind == "asset" else Asset(text).uri
    if uri in reader.assets.numbers([uri]):
        return uri
    close = near_assets(reader, text, flows)
    fix = f"Similar names: {some(close)}" if close else "`assetflow assets ls` lists the assets"
    raise UnknownAsset(f"no asset is called {text!r}", fix=fix)


@dataclass(frozen=True)
class FoundAsset:
    """An asset, with the flows that make, read and run on it."""

    listed: ListedAsset
    users: AssetUsers

    @property
    def uri(self) -> str:
        return self.listed.record.uri


def find_asset(reader: Reader, text: str) -> FoundAsset:
    """Return the asset that a user names.

    Raises:
        UnknownAsset, InvalidAsset: as `find_uri`.
    """
    uri = find_uri(reader, text)
    listed = reader.assets.get(uri=uri)
    assert listed is not None, "nothing deletes an asset, and only an asset has a name"
    return FoundAsset(listed, reader.assets.users_of([listed.record])[uri])


def asset_called(reader: Reader, text: str) -> Asset:
    """Return the asset with this name, else the one with this URI, whether the ledger knows it or not. Contract 1.2.

    Raises:
        InvalidAsset: the text is not a name, and cannot be a URI.
    """
    uri = reader.assets.uris_called([text]).get(text)
    return Asset(text) if uri is None else Asset.known(uri, reader.assets.names([uri])[uri])


def find_event(reader: Reader, event: UUID | int | IdStart) -> UUID:
    """Return the id of the event that a user names by its id, its first characters, or its number in the ledger.

    Raises:
        UnknownEvent: no event has this number, or not exactly one id begins so. A whole id is not looked up.
    """
    if isinstance(event, UUID):
        return event
    if isinstance(event, int):
        found = reader.events.find(EventFilter(from_sequence=event, to_sequence=event)) if _can_be(event) else []
        if found:
            return found[0].id
    return _only_one("event", event, reader.events.beginning)


def find_decision(reader: Reader, decision: UUID | int | IdStart) -> DecisionRecord:
    """Return the decision that a user names by its number in the ledger, by its id, or by the id of its flow run.

    Parameters:
        decision: of an id, the first characters are enough.

    Raises:
        UnknownEvent: no decision matches, or several do.
    """
    if isinstance(decision, UUID):
        return reader.decisions.of_run(decision) or decision_with(reader, decision)
    if isinstance(decision, int):
        newest = reader.decisions.find(before=decision + 1, limit=1) if _can_be(decision) else []
        if newest and newest[0].number == decision:
            return newest[0]
    return decision_with(reader, _only_one("decision", decision, reader.decisions.beginning))


def find_run(reader: Reader, run: UUID | IdStart) -> UUID:
    """Return the id of the flow run that a user names by it or by its first characters.

    Raises:
        UnknownEvent: not exactly one id begins so. A whole id is not looked up.
    """
    return run if isinstance(run, UUID) else _only_one("run", run, reader.ended_runs.beginning)


def decision_with(reader: Reader, decision: UUID) -> DecisionRecord:
    """Return the decision with this id.

    Raises:
        UnknownEvent: no decision has it; `where` is `decision`.
    """
    record = reader.decisions.get(decision)
    if record is None:
        raise UnknownEvent(
            f"there is no decision {decision}", where="decision", fix="`assetflow decisions ls` lists the decisions"
        )
    return record


def near_assets(reader: Reader, text: str, flows: Sequence[str] = ()) -> list[str]:
    """Return the names and URIs, and those of some flows, that are most similar to a text, at most three."""
    names = [*reader.assets.known_names(), *flows]
    if len(names) > _COMPARED:
        # Comparing is slow, so compare only the candidates that share most with the text.
        parts = {text[at : at + 2] for at in range(len(text) - 1)}
        names = nlargest(_COMPARED, names, key=lambda name: sum(part in name for part in parts) / (len(name) + 10))
    return get_close_matches(text, names, n=3, cutoff=0.5)


def _can_be(number: int) -> bool:
    return 0 < number < _NO_NUMBER - 1


def _only_one(what: str, named: int | IdStart, beginning: Callable[[IdStart, int], Sequence[UUID]]) -> UUID:
    """Return the one id that begins as a user typed.

    Parameters:
        named: the beginning; a number that is too short for one is only reported.
        beginning: returns so many of the ids that begin so.

    Raises:
        UnknownEvent: there is none, or there are several.
    """
    start = IdStart.of(str(named))
    found = beginning(start, SHOWN) if start is not None else list[UUID]()
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownEvent(
            f"the ids of several {what}s begin with {named}", fix=f"Name one: {some(list(map(str, found)))}"
        )
    kind = "number" if isinstance(named, int) else "id that begins with"
    raise UnknownEvent(f"no {what} has the {kind} {named}", fix=f"`assetflow {what}s ls` lists the newest")


def _of_flow(reader: Reader, name: str) -> ConsumerRecord:
    names = reader.consumers.names()
    meant = [each for each in names if each.partition("/")[0] == name]
    if len(meant) == 1 and (record := reader.consumers.named(meant[0])) is not None:
        return record
    if meant:
        raise UnknownConsumer(
            f"the flow {name!r} has several consumers: {some(meant)}", fix="Name one of them as flow/deployment"
        )
    for each in reader.refused_deployments():
        if name in (each.name, each.name.partition("/")[0], str(each.deployment_id)):
            raise UnknownConsumer(
                f"{each.name} is refused: {each.error}", where=each.where, fix=each.fix, rule=each.rule
            )
    raise UnknownConsumer(f"no consumer is called {name!r}", fix=_suggestion(name, names))


def _suggestion(name: str, names: Sequence[str]) -> str:
    flows = {each.partition("/")[0]: each for each in names}
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    close += [flows[flow] for flow in get_close_matches(name, list(flows), n=3, cutoff=0.5) if flows[flow] not in close]
    if close:
        return f"Similar names: {some(close[:3])}"
    return (
        f"The consumers are: {some(names)}"
        if names
        else "No consumer is known: deploy a scheduled flow, and start the evaluator"
    )


def list_by_id(
    reader: Reader, wanted: ConsumerFilter, now: datetime, *, after: int = 0, limit: int | None = None
) -> list[ConsumerOverview]:
    """Return the consumers with an id above `after`, ordered by id; with the reason if a new declaration is refused."""
    refused = {each.deployment_id: each for each in reader.refused_deployments()}
    listed = reader.consumers.overviews(reader.consumers.page(wanted, after=after, limit=limit))
    listed = with_plans(reader, listed, now)
    return [replace(each, refused=refused.get(each.record.consumer.deployment_id)) for each in listed]


def list_in_order(
    reader: Reader, wanted: ConsumerFilter, order: ConsumerOrder, now: datetime, *, offset: int, limit: int
) -> tuple[list[ConsumerOverview], int]:
    """Return a page of consumers, and the number of all consumers that match."""
    records, total = reader.consumers.listed(wanted, order, limit=limit, offset=offset)
    return with_plans(reader, reader.consumers.overviews(records), now), total


def with_plans(reader: Reader, listed: Sequence[ConsumerOverview], now: datetime) -> list[ConsumerOverview]:
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
    found = find_asset(at.ledger.reader, asset)
    uri, used = found.uri, _uses(found.users)
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


def _uses(users: AssetUsers) -> str:
    """Return who works with an asset in words, as in `it is made by a/b, it starts c/d`; "" if nobody does."""
    ways = (("it is made by", users.producers), ("it is read by", users.readers), ("it starts", users.scheduled))
    return ", ".join(f"{way} {some(sorted(names))}" for way, names in ways if names)
