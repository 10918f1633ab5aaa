"""What a task says while it runs: facts about an update, or that there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from assetflow.core.assets import Asset, AssetAlias, AssetRef, Outlet
from assetflow.core.conditions import ConditionLike
from assetflow.core.outcome import TaskOutcome
from assetflow.errors import InvalidEvent, InvalidFlow


@dataclass(frozen=True)
class Metadata:
    """Facts about an update, yielded by a task: `yield Metadata(orders, {"row_count": 3})` (2.3, 2.4).

    Parameters:
        asset: an outlet of the task; with an alias any asset.
        extra: a JSON object. What several yields say about an asset is merged key by key, the last value wins.
        alias: the alias outlet, or its name, through which the asset is updated.
    """

    asset: Asset | AssetRef
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    alias: AssetAlias | str | None = None

    def tell(self, outcome: TaskOutcome) -> None:
        """Add the facts to what the task said so far.

        Raises:
            OutletError: the asset, or the alias, is no outlet of the task.
            InvalidEvent: the extra is no JSON object, or the alias is given for something that is no asset.
        """
        target = to_outlet(self.asset)
        if self.alias is None:
            if isinstance(target, AssetAlias):
                raise InvalidEvent(
                    f"Metadata is about an asset, not about {target!r}",
                    rule="2.4",
                    fix=f"Write Metadata(asset, extra, alias={target.name!r})",
                )
            outcome.say(target, self.extra)
            return
        if not isinstance(target, Asset):
            raise InvalidEvent(f"{target!r} is no asset", rule="2.4", fix='Write Metadata(Asset("..."), alias="...")')
        outcome.add(self.alias, target, self.extra)


class Skip(Exception):
    """`raise Skip("no new files")` ends a task as Completed, named Skipped, and without an event (2.1)."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def to_outlet(value: object) -> Outlet:
    """The asset, reference or alias that a value stands for, such as the one outlet of an `@asset`.

    Raises:
        InvalidFlow: it stands for none.
    """
    found = value.as_condition() if isinstance(value, ConditionLike) else value
    if isinstance(found, Asset | AssetRef | AssetAlias):
        return found
    raise InvalidFlow(
        f"{value!r} is neither an asset nor an alias", fix='Write Asset("s3://bucket/orders") or AssetAlias("name")'
    )


def to_outlets(values: object, parameter: str) -> tuple[Outlet, ...]:
    """The members of `inlets=` or `outlets=`: one, or a list of them.

    Raises:
        InvalidFlow: something else is among them; the error names the parameter.
    """
    many = isinstance(values, list | tuple | set | frozenset)
    members = tuple(cast("Iterable[object]", values)) if many else (values,)
    try:
        return tuple(to_outlet(member) for member in members)
    except InvalidFlow as error:
        raise InvalidFlow(error.message, where=f"{parameter}=", fix=error.fix) from error
