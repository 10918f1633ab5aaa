"""`triggering_asset_events` and the partition key: why this run runs (7.1, 5.3).

Both come with the flow run: in its context, or as a value that a caller passes, which wins. Flows below it and its
tasks, in threads and on remote workers too, find them through Prefect's own context of the flow run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast
from uuid import UUID

from assetflow.authoring.metadata import to_outlet
from assetflow.core.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.codec.events import Json, event_from_json
from assetflow.core.codec.run_context import RunContext, run_context_from_json
from assetflow.core.conditions import Token
from assetflow.core.events import AssetEvent
from assetflow.errors import InvalidEvent
from assetflow.prefect_io.internals import flow_run_contexts
from assetflow.prefect_io.names import EVENTS_PARAMETER, KEY_PARAMETER
from assetflow.prefect_io.task_api import TaskApi


class TriggeringAssetEvents(Mapping[Asset | AssetAlias, list[AssetEvent]]):
    """The events that a run consumed: a mapping from asset and alias to events, oldest first; empty for other runs.

    Its keys are the assets, then the aliases, that have events. Looking up any other gives an empty list. An asset is
    found by itself, a reference or the text of its URI.
    """

    def __init__(self, events: Iterable[AssetEvent] = (), *, artifact: UUID | None = None) -> None:
        self._loaded: tuple[AssetEvent, ...] | None = tuple(events) if artifact is None else None
        self._artifact = artifact

    @classmethod
    def of(cls, value: object) -> TriggeringAssetEvents:
        """What a caller passed: events, or a mapping from asset or alias to events.

        Raises:
            InvalidEvent: it is something else.
        """
        if isinstance(value, TriggeringAssetEvents):
            return value
        if isinstance(value, Mapping):
            return cls(_flattened(cast("Mapping[object, object]", value)))
        return cls(_events_in(value))

    @classmethod
    def of_run(cls, context: RunContext | None) -> TriggeringAssetEvents:
        """The events in a run's context; those in an artifact are fetched when they are asked for."""
        if context is None:
            return cls()
        return cls(context.events or (), artifact=context.artifact if context.events is None else None)

    def all(self) -> list[AssetEvent]:
        """All events, oldest first."""
        if self._loaded is None:
            self._loaded = _fetched(self._artifact)
        return list(self._loaded)

    def __getitem__(self, key: Asset | AssetAlias | AssetRef | str) -> list[AssetEvent]:
        target = Asset(key) if isinstance(key, str) else to_outlet(key)
        return [event for event in self.all() if matches(event, target.token)]

    def __contains__(self, key: object) -> bool:
        return bool(self[cast("Asset", key)]) if isinstance(key, Outlet | str) else False

    def __iter__(self) -> Iterator[Asset | AssetAlias]:
        assets: dict[Asset, None] = dict.fromkeys(event.asset for event in self.all())
        aliases = {AssetAlias(alias): None for event in self.all() for alias in event.aliases}
        return iter([*assets, *aliases])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return f"TriggeringAssetEvents({list(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.all(),))


def triggering_asset_events() -> TriggeringAssetEvents:
    """The events that the flow run around this code consumed; empty outside of one, and for runs that none started."""
    for context in flow_run_contexts():
        passed = (context.parameters or {}).get(EVENTS_PARAMETER)
        if passed is not None:
            return TriggeringAssetEvents.of(passed)
        found = run_context_from_json(context.flow_run.context if context.flow_run else None)
        if found is not None:
            return TriggeringAssetEvents.of_run(found)
    return TriggeringAssetEvents()


def partition_key() -> str | None:
    """The partition key of the flow run around this code; none if it has none."""
    for context in flow_run_contexts():
        passed = (context.parameters or {}).get(KEY_PARAMETER)
        if passed not in (None, "") and getattr(context.flow, "has_partition_key", False):
            return cast(str, passed)
        found = run_context_from_json(context.flow_run.context if context.flow_run else None)
        if found is not None:
            return found.partition_key
    return None


def matches(event: AssetEvent, token: Token) -> bool:
    """Whether an event is of this asset, of the asset with this name, or came through this alias."""
    if token.kind == "alias":
        return token.value in event.aliases
    return token.value == (event.uri if token.kind == "uri" else event.asset.name)


def _flattened(mapping: Mapping[object, object]) -> list[AssetEvent]:
    """The events of a mapping, each once; those under an alias carry it."""
    found: dict[UUID, AssetEvent] = {}
    for key, events in mapping.items():
        for event in _events_in(events):
            event = found.get(event.id, event)
            if isinstance(key, AssetAlias):
                event = replace(event, aliases=tuple(sorted({*event.aliases, key.name})))
            found[event.id] = event
    return list(found.values())


def _events_in(value: object) -> list[AssetEvent]:
    events = list(cast("Iterable[object]", value)) if isinstance(value, Iterable) else [value]
    for event in events:
        if not isinstance(event, AssetEvent):
            raise InvalidEvent(
                f"{EVENTS_PARAMETER} holds {event!r}, which is no event",
                rule="7.1",
                fix="Pass events, or a mapping from assets to lists of events",
            )
    return cast("list[AssetEvent]", events)


def _fetched(artifact: UUID | None) -> tuple[AssetEvent, ...]:
    """The events that were too large for the run's context."""
    with TaskApi.connect() as api:
        stored = cast(Json, api.get(f"/artifacts/{artifact}"))
    data = stored.get("data")
    events = cast("Sequence[Json]", json.loads(data) if isinstance(data, str) else data)
    return tuple(event_from_json(event, where=f"artifact {artifact}") for event in events)
