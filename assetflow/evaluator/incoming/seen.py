"""Remember which events and recordings came lately, so that reading Prefect's logs again is cheap."""

from __future__ import annotations

from collections import OrderedDict
from typing import cast
from uuid import UUID

from assetflow.core.values.events import AssetEvent
from assetflow.prefect_io.names import MATERIALIZATION_SUCCEEDED, RECORDING_LABEL
from assetflow.prefect_io.recordings import read_metadata
from assetflow.prefect_io.rest import Json

MOST = 50_000

_NO_CONTENT = frozenset[int]()


class Seen:
    """The latest ids, each with the hashes of the contents that came under it.

    Equal contents may have different hashes, such as objects whose keys stand in another order. Then the ledger
    compares them, and the hash is added.

    An event counts as seen while it waits in the inbox: it leaves the inbox for the ledger only.
    """

    def __init__(self) -> None:
        # An id has no hash if its content does not matter.
        self._contents: OrderedDict[UUID, frozenset[int]] = OrderedDict()

    def __contains__(self, number: UUID) -> bool:
        return number in self._contents

    def has(self, event: AssetEvent) -> bool:
        """Return True if an event with this id and this content was seen."""
        return event.id in self._contents and self._has(event.id, _content_of(event))

    def has_other_content(self, number: UUID, event: Json) -> bool:
        """Return True if an event from outside assetflow has an id that was seen with other contents only."""
        try:
            is_part = RECORDING_LABEL in event["resource"]
            return not is_part and not self._has(number, _content_from_outside(event))
        except Exception:
            # The event is damaged, and its id was seen.
            return False

    def add(self, number: UUID, content: int | None = None) -> None:
        """Remember an id, and forget the oldest ids."""
        known = self._contents.get(number, _NO_CONTENT)
        self._contents[number] = known if content is None else known | {content}
        while len(self._contents) > MOST:
            self._contents.popitem(last=False)

    def add_event(self, event: AssetEvent) -> None:
        """Remember an event with its content."""
        self.add(event.id, _content_of(event))

    def _has(self, number: UUID, content: int | None) -> bool:
        contents = self._contents.get(number)
        return contents is not None and (not contents or content in contents)


def _content_of(event: AssetEvent) -> int | None:
    """Return the hash of an event's content; `None` if its id follows from its content, as for updates by tasks."""
    if event.origin.kind == "task":
        return None
    uri, key, extra, version = event.content
    return hash((uri, key, repr(extra), version))


def _content_from_outside(event: Json) -> int:
    """Return the hash of an event as Prefect sends it; to check the event first would take too long."""
    payload = cast(Json, event["payload"] or {})
    uri = event["resource"]["prefect.resource.id"]
    if event["event"] == MATERIALIZATION_SUCCEEDED:
        payload = read_metadata(payload, "")
    return hash((uri, payload.get("partition_key"), repr(payload.get("extra") or {}), payload.get("data_version")))
