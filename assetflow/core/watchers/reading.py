"""What of a message becomes an update: the options that triggers of queues and webhooks share. Contract 10.2, 10.5."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal, Protocol

from assetflow.core.watchers.paths import check_path
from assetflow.errors import InvalidWatcher

Format = Literal["json", "bytes"]
_PATHS = ("extra", "partition_key", "asset", "alias")
_SCALARS = (str, int, float, bool, type(None))


class Reading(Protocol):
    """A trigger whose messages are read by dotted paths; see `MessageQueueTrigger`."""

    @property
    def extra(self) -> str | None: ...
    @property
    def partition_key(self) -> str | None: ...
    @property
    def asset(self) -> str | None: ...
    @property
    def alias(self) -> str | None: ...
    @property
    def filter(self) -> Mapping[str, object]: ...
    @property
    def format(self) -> Format: ...
    @property
    def within(self) -> timedelta | None: ...


def check_reading(trigger: Reading) -> None:
    """Refuse paths, filters and formats that cannot work.

    Raises:
        InvalidWatcher
    """
    for name in _PATHS:
        if (path := getattr(trigger, name)) is not None:
            check_path(path, name)
    for path, value in trigger.filter.items():
        check_path(path, "filter")
        if not isinstance(value, _SCALARS):
            raise InvalidWatcher(
                f"filter compares {path!r} with a {type(value).__name__}",
                fix="Compare with a text, a number, True, False or None",
                rule="10.5",
            )
    if trigger.format not in ("json", "bytes"):
        raise InvalidWatcher(f"format is {trigger.format!r}", fix='Write "json" or "bytes"', rule="10.2")
    paths = [name for name in (*_PATHS, "filter") if getattr(trigger, name)]
    if trigger.format == "bytes" and paths:
        raise InvalidWatcher(
            f"{paths[0]} is a path, and messages of the format bytes have none", fix='Write format="json"'
        )
