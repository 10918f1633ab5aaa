"""The partitions on an asset's page: a map if the keys are times, else a list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from functools import partial
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from assetflow.api.backend import TheBackend
from assetflow.api.params import NamedAsset
from assetflow.core.partitions.ranges import series_of_keys
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import AssetRecord
from assetflow.operations.lookup import find_uri
from assetflow.web.calendar import KeyState, KnownKeys, calendar_of
from assetflow.web.pages import ThePages, url

router = APIRouter()

KEYS = 200
_TOLD: tuple[KeyState, ...] = ("running", "failed", "stale")
SAMPLE = 300


@router.get("/asset/partitions")
def show_partitions(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    asset: NamedAsset,
    key: Annotated[str, Query(max_length=250)] = "",
    at: datetime | None = None,
    after: Annotated[str, Query(max_length=250)] = "",
) -> Response:
    """Show the partitions as a part of the asset's page; the part is empty if the asset has none.

    Parameters:
        key: the key whose events the page shows; the map marks it, and is around it.
        at: the time that the map is around; by default the time of `key`, or of the newest key.
        after: list the keys after this one, if the keys are not times.
    """
    reader, now = backend.ledger.reader, backend.now()
    uri = find_uri(reader, asset)
    keys_of = partial(reader.partitions.keys, uri)
    # Guess the format from the first and the last keys only: there may be very many.
    first, last = keys_of(limit=SAMPLE), keys_of(newest_first=True, limit=SAMPLE)
    series = series_of_keys([*first, *last])
    listed = keys_of(after=after, limit=KEYS + 1) if series is None else []
    found = reader.assets.get(uri=uri)
    producers = {} if found is None else reader.assets.users_of([found.record])[uri].producers
    known, listed_states = None, dict[str, KeyState]()
    if found is not None:
        states = _states_of(reader, found.record, set(producers.values()))
        if series is None:
            listed_states |= states(listed[:KEYS], ())
        else:
            counts = partial(reader.partitions.counts_from, uri)
            known = KnownKeys(first[0], last[0], keys_of, states, counts)
    around = _wall(at) or (None if series is None else series.time_of(key))
    page = pages.show(
        request,
        "partitions.html",
        fragment="partitions",
        uri=uri,
        total=reader.partitions.count(uri),
        calendar=None if series is None or known is None else calendar_of(series, known, now, around),
        key=key,
        has_maker=bool(producers),
        name=uri if found is None else found.name,
        keys=listed[:KEYS],
        states=listed_states,
        states_in_words=[(state.capitalize(), found) for state in _TOLD if (found := _keys_in(listed_states, state))],
        here=url("/asset/partitions", asset=uri, key=key, at=at.isoformat() if at else None, after=after),
        more=url("/asset/partitions", asset=uri, after=listed[KEYS - 1]) if len(listed) > KEYS else "",
        first=url("/asset/partitions", asset=uri) if after else "",
    )
    if at is not None:
        page.headers["hx-replace-url"] = _kept(request, uri, at)
    return page


def _keys_in(states: Mapping[str, KeyState], state: KeyState) -> list[str]:
    return [key for key, each in states.items() if each == state]


def _states_of(
    reader: Reader, asset: AssetRecord, deployments: set[UUID]
) -> Callable[[Collection[str], Collection[str]], Mapping[str, KeyState]]:
    """Return the function that returns the states of the keys of an asset.

    Parameters:
        deployments: the flows that make it.
    """
    compares = reader.freshness.compares()
    needed = reader.freshness.keys_needed(asset.uri) if compares else set[str]()

    def states(keys: Collection[str], absent: Collection[str]) -> Mapping[str, KeyState]:
        expected = needed.intersection(absent) | reader.partition_states.awaited(asset, absent)
        runs = reader.partition_states.runs(asset.uri, deployments, keys) if keys else {}
        updated = set(keys) - set(absent)
        stale = reader.freshness.stale_keys(asset.uri, updated) if updated and compares else set[str]()
        found: dict[str, KeyState] = dict.fromkeys(expected, "missing")
        found |= dict.fromkeys(stale, "stale")
        return found | runs

    return states


def _kept(request: Request, uri: str, at: datetime) -> str:
    """Return the address of the asset's page with the position of its map."""
    shown = dict(parse_qsl(urlsplit(request.headers.get("hx-current-url", "")).query))
    return url("/asset", asset=uri, key=shown.get("key"), before=shown.get("before"), at=at.isoformat())


def _wall(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=None)
