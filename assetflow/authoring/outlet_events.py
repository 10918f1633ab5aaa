"""`outlet_events`: the mapping in which a task sets facts about its outlets. Contract 2.3 to 2.5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import overload

from assetflow.authoring.metadata import to_outlet
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import ConditionLike
from assetflow.core.values.outcome import Keys, TaskOutcome
from assetflow.errors import InvalidEvent


class AssetOutletEvents:
    """The facts that one attempt states about one asset."""

    def __init__(self, outcome: TaskOutcome, target: Asset | AssetRef) -> None:
        self._outcome = outcome
        self._target = target
        outcome.check_outlet(target)

    @property
    def extra(self) -> dict[str, object]:
        """The extra of the event, a JSON object: assign one to replace it, or change it in place. Contract 2.3."""
        return self._outcome.extra_of(self._target)

    @extra.setter
    def extra(self, value: Mapping[str, object]) -> None:
        self._outcome.assign(self._target, value)

    @property
    def data_version(self) -> str | None:
        """The version of the data, a text of 1 to 250 characters; `None` if the task has given none. Contract 8.2."""
        return self._outcome.version_of(self._target)

    @data_version.setter
    def data_version(self, value: str | None) -> None:
        self._outcome.set_version(self._target, value)

    def add_partitions(self, keys: Keys, *, data_version: str | None = None) -> None:
        """Make one event for each key, instead of one for the run's own key.

        Contract 2.5, 8.2.

        Parameters:
            keys: one partition key or several, each a text of at most 250 characters; or a mapping from each key to the
                version of its data.
            data_version: the version of the data of keys that come without one; by default that of the outlet.

        Raises:
            InvalidEvent: a key is not a text, is blank, or is too long; or a data version is not a text of 1 to 250
                characters, or it is blank.
        """
        self._outcome.add_partitions(self._target, keys, data_version=data_version)


class AliasOutletEvents:
    """The assets that one attempt adds to one alias."""

    def __init__(self, outcome: TaskOutcome, alias: AssetAlias) -> None:
        self._outcome = outcome
        self._alias = outcome.check_alias(alias)

    def add(
        self,
        asset: Asset | ConditionLike,
        extra: Mapping[str, object] | None = None,
        *,
        data_version: str | None = None,
    ) -> None:
        """Update an asset through the alias.

        Contract 2.4.

        Parameters:
            asset: any asset.
            extra: facts about the update, a JSON object.
            data_version: the version of the data (contract 8.2).

        Raises:
            RecordingFailed: `extra` holds what an update may not hold (contract 2.7).
            InvalidEvent: `asset` is not an asset, or `data_version` is not a version.
        """
        target = to_outlet(asset)
        if not isinstance(target, Asset):
            raise InvalidEvent(f"{asset!r} is not an asset", rule="2.4", fix='Add an Asset("...") to an alias')
        self._outcome.add(self._alias, target, extra, data_version=data_version)


class OutletEvents(Mapping[Outlet, AssetOutletEvents | AliasOutletEvents]):
    """The mapping from a task's outlets to the facts that the task states about them; the type of `outlet_events`.

    >>> from assetflow import Asset, OutletEvents, outlet_events, task
    >>> orders = Asset("s3://shop/orders")
    >>> @task(outlets=[orders])
    ... def load(outlet_events: OutletEvents = outlet_events):
    ...     outlet_events[orders].extra = {"rows": 3}
    ...     outlet_events[orders].add_partitions(["2026-11-20", "2026-11-21"])

    `outlet_events[asset].extra = {...}` sets facts, `outlet_events[asset].data_version = "..."` says which version the
    data has, `outlet_events[asset].add_partitions(keys)` names partitions, and
    `outlet_events[alias].add(asset, extra={...})` updates an asset through an alias. Iterating gives the outlets.

    Contract 2.3, 2.4, 2.5, 8.2.
    """

    def __init__(self, outcome: TaskOutcome) -> None:
        self._of_attempt = outcome

    @property
    def _outcome(self) -> TaskOutcome:
        return self._of_attempt

    @overload
    def __getitem__(self, key: AssetAlias) -> AliasOutletEvents: ...
    @overload
    def __getitem__(self, key: Asset | AssetRef | ConditionLike) -> AssetOutletEvents: ...
    def __getitem__(self, key: Outlet | ConditionLike) -> AssetOutletEvents | AliasOutletEvents:
        """Return the object with which the task states facts about an outlet.

        Raises:
            OutletError: it is not an outlet of the task. The error is a `KeyError` too, so that `get` and `in` work.
        """
        target = to_outlet(key)
        if isinstance(target, AssetAlias):
            return AliasOutletEvents(self._outcome, target)
        return AssetOutletEvents(self._outcome, target)

    def __iter__(self) -> Iterator[Outlet]:
        return iter(self._outcome.outlets)

    def __len__(self) -> int:
        return len(self._outcome.outlets)
