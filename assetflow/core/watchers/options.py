"""Options that triggers of several kinds have: a place, the time between two looks, what a new watcher begins with."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any, Literal, cast

from assetflow.core.values.addresses import check_address, without_user
from assetflow.errors import InvalidWatcher

Start = Literal["known", "existing"]
_WILD_BUCKET = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://[^/]*[*?\[]")
_WHOLE_DAY = timedelta(days=1)


class AnyScheme(tuple[str, ...]):
    """All schemes: the library of the kind says which it can open, in the process that watches."""

    def __contains__(self, scheme: object) -> bool:
        return bool(scheme)


def check_location(path: object, *, example: str) -> None:
    """Refuse what is not an absolute path or a URL, has a password, or leaves its folder or bucket.

    Raises:
        InvalidWatcher
    """
    if not isinstance(path, str) or not ("://" in path or path.startswith("/")):
        raise InvalidWatcher(f"{path!r} is not an absolute path or a URL", fix=f"Write {example}")
    check_address(path if "://" in path else f"file://{path}", AnyScheme(), known="")
    check_stays(path)


def check_stays(path: str) -> None:
    """Refuse a path that leaves its folder or bucket. Variables in it may bring that about.

    Raises:
        InvalidWatcher
    """
    plain = without_user(path)
    if ".." in re.split(r"[/\\]", path):
        raise InvalidWatcher(f"{plain} leaves its folder or bucket", fix="Write the path without `..`")
    if "::" in path:
        raise InvalidWatcher(
            f"{plain.partition('::')[0]}::… chains several places", fix="Write one place: s3://bucket/in/*"
        )
    if _WILD_BUCKET.match(path):
        raise InvalidWatcher(f"{plain} names no single bucket", fix="Write the bucket: s3://bucket/in/*")


def check_every(every: object) -> None:
    """Refuse a time between two looks that is shorter than a second or longer than a day.

    Raises:
        InvalidWatcher
    """
    if not isinstance(every, timedelta) or not timedelta(seconds=1) <= every <= _WHOLE_DAY:
        raise InvalidWatcher(
            f"`every` must be a timedelta from 1 s to 1 day, not {every!r}", fix="Write timedelta(minutes=5)"
        )


def check_start(start: object) -> None:
    """Refuse what does not say how a new watcher begins. Contract 10.4.

    Raises:
        InvalidWatcher
    """
    if start not in ("known", "existing"):
        raise InvalidWatcher(f"start is {start!r}", fix='Write "known" or "existing"', rule="10.4")


def changed_fields(trigger: Any, **written: object) -> dict[str, object]:
    """Return the fields of a trigger that are not as by default; `written` has those that JSON writes differently."""
    found: dict[str, object] = {}
    for each in fields(trigger):
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        value = getattr(trigger, each.name)
        if value != default:
            found[each.name] = written.get(each.name, cast(object, value))
    return found
