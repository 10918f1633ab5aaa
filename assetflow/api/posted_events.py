"""Make events from requests, checked against chapters 1 and 2 of the contract and the size limits."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar
from uuid import UUID, uuid4, uuid5

from assetflow.core.json_data import fit_text
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.core.values.posted_events import event_by_hand
from assetflow.errors import AssetflowWarning

T = TypeVar("T")

_NAMESPACE = UUID("c1a4f9f2-3c53-5b5e-8d3f-0d3b8e6f7a11")
_warning = threading.Lock()


def event_id(text: str | None) -> UUID:
    """Return the event id for `text`: the UUID it spells, else a UUID derived from it; a random one for `None`.

    The same text always gives the same id, so that a client can send a request again.
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
    data_version: str | None = None,
) -> AssetEvent:
    """Return the event for an update that a client posted.

    Parameters:
        text: the idempotency key: a UUID, or any text.
        by: who reports the update.
        data_version: the version of the data (contract 8.2).

    Raises:
        InvalidEvent, InvalidAsset, TooLarge: a field breaks a rule; `where` names the field.
    """
    return event_by_hand(
        asset,
        id=event_id(text),
        occurred=occurred or now,
        origin=Origin("api", by=fit_text(by)),
        extra=extra,
        partition_key=partition_key,
        aliases=aliases,
        data_version=data_version,
    )


def with_warnings(make: Callable[[], T]) -> tuple[T, list[str]]:
    """Call `make`, and return its result with the warnings it gave, such as a password in a URI."""
    with _warning, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssetflowWarning)
        made = make()
    return made, [str(each.message) for each in caught if issubclass(each.category, AssetflowWarning)]
