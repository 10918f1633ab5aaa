"""`outlet_events`: what a task says about its outlets by assigning (2.3 to 2.5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import overload

from assetflow.authoring.metadata import to_outlet
from assetflow.core.assets import Asset, AssetAlias, AssetRef
from assetflow.core.outcome import TaskOutcome
from assetflow.errors import InvalidEvent


class AssetOutletEvents:
    """What one attempt says about one asset."""

    def __init__(self, outcome: TaskOutcome, target: Asset | AssetRef) -> None:
        self._outcome = outcome
        self._target = target
        outcome.check_outlet(target)

    @property
    def extra(self) -> dict[str, object]:
        """The extra of the event, a JSON object: assign to replace it, or write into it."""
        return self._outcome.extra_of(self._target)

    @extra.setter
    def extra(self, value: Mapping[str, object]) -> None:
        self._outcome.assign(self._target, value)

    def add_partitions(self, keys: str | Iterable[str]) -> None:
        """Make one event for each key, instead of one for the run's own key.

        Raises:
            InvalidPartition, InvalidEvent: a key is no text, blank, or longer than 250 characters (2.5).
        """
        self._outcome.add_partitions(self._target, keys)


class AliasOutletEvents:
    """What one attempt adds to one alias."""

    def __init__(self, outcome: TaskOutcome, alias: AssetAlias) -> None:
        self._outcome = outcome
        self._alias = outcome.check_alias(alias)

    def add(self, asset: Asset, extra: Mapping[str, object] | None = None) -> None:
        """Update an asset through the alias.

        Raises:
            InvalidEvent: the extra is no JSON object, or what is added is no asset.
        """
        target = to_outlet(asset)
        if not isinstance(target, Asset):
            raise InvalidEvent(f"{asset!r} is no asset", rule="2.4", fix='Add an Asset("...") to an alias')
        self._outcome.add(self._alias, target, extra)


class OutletEvents:
    """`outlet_events[asset].extra = {...}`, `outlet_events[alias].add(asset, extra={...})`."""

    def __init__(self, outcome: TaskOutcome) -> None:
        self._outcome = outcome

    @overload
    def __getitem__(self, key: AssetAlias) -> AliasOutletEvents: ...
    @overload
    def __getitem__(self, key: Asset | AssetRef) -> AssetOutletEvents: ...
    def __getitem__(self, key: Asset | AssetRef | AssetAlias) -> AssetOutletEvents | AliasOutletEvents:
        """The events of an outlet.

        Raises:
            OutletError: it is no outlet of the task.
        """
        target = to_outlet(key)
        if isinstance(target, AssetAlias):
            return AliasOutletEvents(self._outcome, target)
        return AssetOutletEvents(self._outcome, target)
