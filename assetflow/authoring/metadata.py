"""`outlet_events`: the mapping in which a task sets facts about its outlets. Contract 2.3 to 2.5."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import cast, overload

from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import AssetLike, stands_for
from assetflow.core.values.outcome import Keys, TaskOutcome
from assetflow.errors import InvalidEvent, InvalidFlow, not_a


@dataclass(frozen=True)
class Metadata:
    """Facts about an update, yielded by the task that makes it.

    >>> from assetflow import Asset, Metadata, task
    >>> orders = Asset("s3://shop/orders")
    >>> @task(outlets=[orders])
    ... def load():
    ...     yield Metadata(orders, {"rows": 3})

    The facts become the `extra` of the event. Several yields for one asset are merged key by key; the last value wins.

    Contract 2.3, 2.4, 8.2.

    Parameters:
        asset: an outlet of the task; with `alias`, any asset.
        extra: the facts, a JSON object (contract 2.7).
        alias: the alias outlet, or its name, through which the asset is updated.
        data_version: the version of the data, a text of 1 to 250 characters. The same version again is not new data for
            Eager flows (contract 8.2).
    """

    asset: Asset | AssetRef | AssetLike
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    alias: AssetAlias | str | None = None
    data_version: str | None = field(default=None, kw_only=True)

    def tell(self, outcome: TaskOutcome) -> None:
        """Add the facts to the outcome of the running task.

        Raises:
            OutletError: the asset, or the alias, is not an outlet of the task.
            RecordingFailed: `extra` holds what an update may not hold (contract 2.7).
            InvalidEvent: with `alias`, `asset` is not an asset; without it, `asset` is an alias; or `data_version`
                is not one (contract 8.2).
        """
        target = to_outlet(self.asset)
        if self.alias is None:
            if isinstance(target, AssetAlias):
                raise InvalidEvent(
                    f"Metadata is about an asset, not about {target!r}",
                    rule="2.4",
                    fix=f"Write Metadata(asset, extra, alias={target.name!r})",
                )
            outcome.say(target, self.extra, data_version=self.data_version)
            return
        if not isinstance(target, Asset):
            raise InvalidEvent(
                f"{target!r} is not an asset", rule="2.4", fix='Write Metadata(Asset("..."), alias="...")'
            )
        outcome.add(self.alias, target, self.extra, data_version=self.data_version)


class Skip(Exception):
    """An exception that ends a task without an update: its state is Completed, named Skipped.

    >>> from assetflow import Asset, Skip, task
    >>> @task(outlets=[Asset("s3://shop/orders")])
    ... def load(files: list[str]):
    ...     if not files:
    ...         raise Skip("no new files")

    Contract 2.1.

    Parameters:
        reason: why there is nothing to update; the state of the task run shows it.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


# The values of `inlets=` and `outlets=`: assets, references, aliases, an `@asset`, and lists or sets of them.
OutletValue = Outlet | AssetLike
OutletValues = OutletValue | Sequence[OutletValue] | Set[OutletValue]


def to_outlet(value: object) -> Outlet:
    """Return the asset, reference or alias that a value stands for, such as the one outlet of an `@asset`.

    Raises:
        InvalidFlow: the value is not an asset, a reference, an alias or an `@asset`.
    """
    found = stands_for(value)
    if isinstance(found, Asset | AssetRef | AssetAlias):
        return found
    raise not_a(
        InvalidFlow,
        value,
        "an asset, a reference or an alias",
        'Write Asset("s3://bucket/orders") or AssetAlias("name")',
    )


def to_outlets(values: object, parameter: str) -> tuple[Outlet, ...]:
    """Return the members of `inlets=` or `outlets=`, which may be one value or a list or set.

    Raises:
        InvalidFlow: one of them is not an asset, a reference or an alias; the error names the parameter.
    """
    many = isinstance(values, list | tuple | set | frozenset)
    members = tuple(cast("Iterable[object]", values)) if many else (values,)
    try:
        return tuple(to_outlet(member) for member in members)
    except InvalidFlow as error:
        raise InvalidFlow(error.message, where=f"{parameter}=", fix=error.fix) from error


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
        asset: Asset | AssetLike,
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
    def __getitem__(self, key: Asset | AssetRef | AssetLike) -> AssetOutletEvents: ...
    def __getitem__(self, key: Outlet | AssetLike) -> AssetOutletEvents | AliasOutletEvents:
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
