"""Hide secrets: values under keys that look secret, and passwords in addresses. All outputs use these functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from assetflow.core.values.assets import Asset
    from assetflow.core.values.events import AssetEvent


# Parts of a key in lower case and without separators, as in `db_password`, `clientSecret`, `X-Api-Key`.
_SECRET = re.compile(
    r"passw|passphrase|secret|token|apikey|accesskey|privatekey|accountkey|signingkey|encryptionkey|credential|"
    r"authorization|cookie|xamz|connectionstring"
)
_SHORT = frozenset({"auth", "pwd", "sig", "signature", "pin", "bearer", "jwt", "sas"})
_SEPARATORS = re.compile(r"[^a-z0-9]+")


def looks_secret(key: str) -> bool:
    """Return True if the value under this key is probably a secret."""
    plain = _SEPARATORS.sub("", key.lower())
    return plain in _SHORT or _SECRET.search(plain) is not None


REDACTED = "[redacted]"

_ADDRESS = re.compile(r"\b([a-z][a-z0-9+.-]*)://([^/?#\s\"<>]*)@", re.IGNORECASE)
_WEB = frozenset({"http", "https", "ws", "wss"})


def redact(data: object) -> object:
    """Return a copy of JSON data with `[redacted]` in place of each value under a key that looks secret.

    A list or object under such a key is replaced as a whole. `None` stays, and so do numbers under a key that counts
    tokens (`tokens`, `token_count`). The data may be nested to any depth.
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


def without_passwords(text: str) -> str:
    """Return the text without the user and password of each address in it.

    In `abfss://container@account.dfs.core.windows.net/`, the part before the `@` is not a user and stays.
    """
    return _ADDRESS.sub(_without_user, text)


def redacted(event: AssetEvent) -> AssetEvent:
    """Return an event without secrets in its extra, in its asset's extra and in its run's parameters."""
    run = event.origin.flow_run
    origin = event.origin
    if run is not None and run.parameters:
        origin = replace(origin, flow_run=replace(run, parameters=redacted_mapping(run.parameters)))
    return replace(event, asset=_described(event.asset), extra=redacted_mapping(event.extra), origin=origin)


def redacted_mapping(data: Mapping[str, object]) -> dict[str, object]:
    """Do what `redact` does, for an object."""
    return cast("dict[str, object]", redact(data))


def _described(asset: Asset) -> Asset:
    if not asset.extra:
        return asset
    return type(asset).known(asset.uri, asset.name, asset.group, redacted_mapping(asset.extra))


def _without_user(found: re.Match[str]) -> str:
    scheme, user = found.groups()
    return f"{scheme}://" if ":" in user or scheme.lower() in _WEB else found[0]


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
