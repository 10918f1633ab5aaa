"""Find consumers, assets, events and decisions by what a user types: a name, a number or an id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from heapq import nlargest
from uuid import UUID

from assetflow.core.assets import Asset
from assetflow.errors import UnknownAsset, UnknownConsumer, UnknownEvent
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, DecisionRecord, EventFilter
from assetflow.operations.decisions import decision_with

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
    reader: Reader, consumer: str | None = None, asset: str | None = None, event: UUID | None = None
) -> Selection:
    """Find the consumer, the asset and the event that a user names.

    Raises:
        UnknownConsumer, UnknownAsset, UnknownEvent: one of them is not in the ledger.
        InvalidAsset: the asset is not a name, and cannot be a URI.
    """
    if event is not None and reader.events.get(event) is None:
        raise UnknownEvent(f"no event has the id {event}", fix="`assetflow events ls` lists the events")
    return Selection(
        None if consumer is None else find_consumer(reader, consumer),
        None if asset is None else find_uri(reader, asset),
        event,
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


def find_uri(reader: Reader, text: str) -> str:
    """Return the URI of the asset that a user names by its URI, its name, or a name that deployed flows declare.

    Raises:
        UnknownAsset: the ledger has no such asset; the error names similar ones.
        InvalidAsset: the text is not a name, and cannot be a URI.
    """
    called = reader.assets.uri_called(text)
    if called is not None:
        return called
    uri = Asset(text).uri
    if uri in reader.assets.numbers([uri]):
        return uri
    close = near_assets(reader, text)
    fix = f"Did you mean {_listed(close)}?" if close else "`assetflow assets ls` lists the assets"
    raise UnknownAsset(f"no asset is called {text!r}", fix=fix)


def find_event(reader: Reader, event: UUID | int) -> UUID:
    """Return the id of the event that a user names by its id, or by its number in the ledger.

    Raises:
        UnknownEvent: no event has this number. An id is not looked up.
    """
    if isinstance(event, UUID):
        return event
    found = reader.events.find(EventFilter(from_sequence=event, to_sequence=event)) if 0 < event < _NO_NUMBER else []
    if not found:
        raise UnknownEvent(f"no event has the number {event}", fix="`assetflow events ls` lists the newest")
    return found[0].id


def find_decision(reader: Reader, decision: UUID | int) -> DecisionRecord:
    """Return the decision that a user names by its number in the ledger, by its id, or by the id of its flow run.

    Raises:
        UnknownEvent: no decision matches.
    """
    if isinstance(decision, UUID):
        return reader.decisions.of_run(decision) or decision_with(reader, decision)
    newest = reader.decisions.find(before=decision + 1, limit=1) if 0 < decision < _NO_NUMBER - 1 else []
    if not newest or newest[0].number != decision:
        raise UnknownEvent(f"no decision has the number {decision}", fix="`assetflow decisions ls` lists the newest")
    return newest[0]


def near_assets(reader: Reader, text: str) -> list[str]:
    """Return the names and URIs most similar to a text, at most three."""
    names = reader.assets.known_names()
    if len(names) > _COMPARED:
        # Comparing is slow, so compare only the candidates that share most with the text.
        parts = {text[at : at + 2] for at in range(len(text) - 1)}
        names = nlargest(_COMPARED, names, key=lambda name: sum(part in name for part in parts) / (len(name) + 10))
    return get_close_matches(text, names, n=3, cutoff=0.5)


def _of_flow(reader: Reader, name: str) -> ConsumerRecord:
    names = reader.consumers.names()
    meant = [each for each in names if each.partition("/")[0] == name]
    if len(meant) == 1 and (record := reader.consumers.named(meant[0])) is not None:
        return record
    if meant:
        raise UnknownConsumer(
            f"the flow {name!r} has several consumers: {_listed(meant)}", fix="Name one of them as flow/deployment"
        )
    raise UnknownConsumer(f"no consumer is called {name!r}", fix=_suggestion(name, names))


def _suggestion(name: str, names: Sequence[str]) -> str:
    flows = {each.partition("/")[0]: each for each in names}
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    close += [flows[flow] for flow in get_close_matches(name, list(flows), n=3, cutoff=0.5) if flows[flow] not in close]
    if close:
        return f"Did you mean {_listed(close[:3])}?"
    return (
        f"The consumers are: {_listed(names)}"
        if names
        else "No consumer is known: deploy a scheduled flow, and start the evaluator"
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
