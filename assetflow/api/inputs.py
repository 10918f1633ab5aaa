"""Events from outside: checked by chapters 1 and 2 of the contract, with limits and an id of their own."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar
from uuid import UUID, uuid4, uuid5

from assetflow.core.assets import Asset, AssetAlias
from assetflow.core.events import AssetEvent, Origin, check_extra
from assetflow.core.limits import check_limits
from assetflow.core.partitions import check_key
from assetflow.errors import AssetflowError, AssetflowWarning

T = TypeVar("T")

_NAMESPACE = UUID("c1a4f9f2-3c53-5b5e-8d3f-0d3b8e6f7a11")
_warning = threading.Lock()


def event_id(text: str | None) -> UUID:
    """The id of an event: the UUID that a text is, or one that stands for the text; a new one for none.

    The same text always gives the same id, so that a request may be sent again.
    """
    if text is None:
        return uuid4()
    try:
        return UUID(text)
    except ValueError:
        return uuid5(_NAMESPACE, text)


def make_event(
    asset: Asset,
    now: datetime,
    *,
    extra: Mapping[str, object] | None = None,
    partition_key: str | None = None,
    aliases: tuple[str, ...] = (),
    text: str | None = None,
    occurred: datetime | None = None,
    by: str = "",
) -> AssetEvent:
    """An event that the API was told of.

    Parameters:
        text: the idempotency key: a UUID, or any text.
        by: who says so.

    Raises:
        InvalidEvent, InvalidAsset, InvalidPartition, TooLarge: `where` is the field.
    """
    check_limits(_in("extra", lambda: extra or {}))
    return AssetEvent(
        id=event_id(text),
        asset=asset,
        occurred=occurred or now,
        origin=Origin("api", by=by),
        extra=_in("extra", lambda: check_extra(extra, where="extra")),
        partition_key=None if partition_key is None else _in("partition_key", lambda: check_key(partition_key)),
        aliases=_in("aliases", lambda: tuple(sorted({AssetAlias(alias).name for alias in aliases}))),
    )


def with_warnings(make: Callable[[], T]) -> tuple[T, list[str]]:
    """What is made, and what there is to say about it: a password in a URI, a parameter that looks like a secret."""
    with _warning, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssetflowWarning)
        made = make()
    return made, [str(each.message) for each in caught if issubclass(each.category, AssetflowWarning)]


def _in(field: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except AssetflowError as error:
        if error.where == field:
            raise
        raise type(error)(error.message, where=field, fix=error.fix, rule=error.rule) from error
