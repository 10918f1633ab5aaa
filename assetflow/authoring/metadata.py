"""`Metadata` and `Skip`: a task yields facts about an update, or says that there is no update."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import cast

from assetflow.core.values.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.values.conditions import ConditionLike
from assetflow.core.values.outcome import TaskOutcome
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

    asset: Asset | AssetRef | ConditionLike
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
OutletValue = Outlet | ConditionLike
OutletValues = OutletValue | Sequence[OutletValue] | Set[OutletValue]


def to_outlet(value: object) -> Outlet:
    """Return the asset, reference or alias that a value stands for, such as the one outlet of an `@asset`.

    Raises:
        InvalidFlow: the value is not an asset, a reference, an alias or an `@asset`.
    """
    found = value.as_condition() if isinstance(value, ConditionLike) and not isinstance(value, type) else value
    if isinstance(found, Asset | AssetRef | AssetAlias):
        return found
    message, fix = not_a(
        value, "an asset, a reference or an alias", 'Write Asset("s3://bucket/orders") or AssetAlias("name")'
    )
    raise InvalidFlow(message, fix=fix)


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
