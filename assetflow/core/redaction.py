"""Values that look like secrets are not shown: one rule for the command line, the API and the pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from assetflow.core.assets import Asset
from assetflow.core.events import AssetEvent

REDACTED = "[redacted]"

# Parts of a key, compared in lower case and without separators: `db_password`, `clientSecret`, `X-Api-Key`.
_SECRET = re.compile(
    r"passw|passphrase|secret|token|apikey|accesskey|privatekey|accountkey|signingkey|encryptionkey|credential|"
    r"authorization|cookie|xamz|connectionstring"
)
_SHORT = frozenset({"auth", "pwd", "sig", "signature", "pin", "bearer", "jwt", "sas"})
_SEPARATORS = re.compile(r"[^a-z0-9]+")


def looks_secret(key: str) -> bool:
    """Whether what stands under this key is probably a secret."""
    plain = _SEPARATORS.sub("", key.lower())
    return plain in _SHORT or _SECRET.search(plain) is not None


def redact(data: object) -> object:
    """A copy of JSON data with `[redacted]` for each value under a key that looks like one of a secret.

    Nothing (none) stays, as do numbers under a key that counts tokens (`tokens`, `token_count`); what is below a
    redacted key is gone as a whole. The depth of the data is no limit.
    """
    holder: list[object] = [data]
    waiting: list[tuple[dict[str, object] | list[object], str | int, object]] = [(holder, 0, data)]
    while waiting:
        into, place, value = waiting.pop()
        if isinstance(value, Mapping):
            made: dict[str, object] = {}
            _put(into, place, made)
            for key, inner in cast("Mapping[object, object]", value).items():
                name = str(key)
                made[name] = REDACTED if _hidden(name, inner) else inner
                if made[name] is not REDACTED and isinstance(inner, Mapping | list | tuple):
                    waiting.append((made, name, cast(object, inner)))
        elif isinstance(value, list | tuple):
            items = list(cast("list[object]", value))
            _put(into, place, items)
            waiting += [(items, at, each) for at, each in enumerate(items) if isinstance(each, Mapping | list | tuple)]
    return holder[0]


def redacted(event: AssetEvent) -> AssetEvent:
    """An event as it may be shown: its extra, its asset's extra and its run's parameters without secrets."""
    run = event.origin.flow_run
    origin = event.origin
    if run is not None and run.parameters:
        origin = replace(origin, flow_run=replace(run, parameters=redacted_mapping(run.parameters)))
    return replace(event, asset=_described(event.asset), extra=redacted_mapping(event.extra), origin=origin)


def redacted_mapping(data: Mapping[str, object]) -> dict[str, object]:
    """`redact` for an object."""
    return cast("dict[str, object]", redact(data))


def _described(asset: Asset) -> Asset:
    if not asset.extra:
        return asset
    # Not by its constructor: a recorded URI is not normalised again.
    shown = Asset.__new__(Asset)
    shown.uri, shown.name, shown.group, shown.extra = asset.uri, asset.name, asset.group, redacted_mapping(asset.extra)
    return shown


def _hidden(key: str, value: object) -> bool:
    if value is None or not looks_secret(key):
        return False
    counts = isinstance(value, int | float) and key.lower().endswith(("tokens", "count", "_total"))
    return not counts


def _put(into: dict[str, object] | list[object], place: str | int, value: object) -> None:
    if isinstance(into, list):
        into[cast(int, place)] = value
    else:
        into[cast(str, place)] = value
