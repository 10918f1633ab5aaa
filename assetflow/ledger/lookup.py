"""What a person calls consumers, assets and events, and which one is meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from heapq import nlargest
from uuid import UUID

from assetflow.core.assets import Asset
from assetflow.errors import UnknownAsset, UnknownConsumer, UnknownEvent
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import ConsumerRecord, EventQuery

_COMPARED = 100
_NO_NUMBER = 2**63


def find_consumer(reader: Reader, name: str) -> ConsumerRecord:
    """The consumer that is meant by `flow/deployment`, `flow.deployment`, the id of the consumer or of the deployment,
    or by a flow's name.

    Raises:
        UnknownConsumer: there is none, or the flow has several deployments; the error names what comes close.
    """
    number = reader.catalog.consumer_number(name)
    if number is None and name.isascii() and name.isdigit() and len(name) < 19:
        number = int(name)
    found = None if number is None else reader.consumer_numbered(number)
    return found or _of_flow(reader, name)


def find_uri(reader: Reader, text: str) -> str:
    """The URI of the asset that is meant by its URI, or else by a name, or else by a name that deployed flows declare.

    Raises:
        UnknownAsset: there is none in the ledger; the error names what comes close.
        InvalidAsset: it is no URI.
    """
    called = reader.catalog.uri_called(text)
    if called is not None:
        return called
    uri = Asset(text).uri
    if uri in reader.catalog.numbers([uri]):
        return uri
    close = near_assets(reader, text)
    fix = f"Did you mean {_listed(close)}?" if close else "`assetflow assets ls` lists the assets"
    raise UnknownAsset(f"no asset is called {text!r}", fix=fix)


def find_event(reader: Reader, event: UUID | int) -> UUID:
    """The id of the event that is meant by it, or by its number in the ledger.

    Raises:
        UnknownEvent: there is none with this number; an id is not looked for.
    """
    if isinstance(event, UUID):
        return event
    found = reader.events(EventQuery(from_sequence=event, to_sequence=event)) if 0 < event < _NO_NUMBER else []
    if not found:
        raise UnknownEvent(f"no event has the number {event}", fix="`assetflow events ls` lists the newest")
    return found[0].id


def near_assets(reader: Reader, text: str) -> list[str]:
    """The names and URIs that come closest to a text, at most three."""
    names = reader.catalog.known_names()
    if len(names) > _COMPARED:
        # Comparing is slow, so of many only those are compared that share most with the text.
        parts = {text[at : at + 2] for at in range(len(text) - 1)}
        names = nlargest(_COMPARED, names, key=lambda name: sum(part in name for part in parts) / (len(name) + 10))
    return get_close_matches(text, names, n=3, cutoff=0.5)


def _of_flow(reader: Reader, name: str) -> ConsumerRecord:
    names = reader.catalog.consumer_names()
    meant = [each for each in names if each.partition("/")[0] == name]
    if len(meant) == 1 and (record := reader.consumer(meant[0])) is not None:
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
    return f"There are {_listed(names)}" if names else "None is known yet: deploy a scheduled flow, start the evaluator"


def _listed(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
