"""Search over assets, consumers, runs, decisions, events, keys and pages. The palette (Ctrl+K) shows the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from assetflow.api.requests import Text, TheReader
from assetflow.core.graph.lineage import Node
from assetflow.core.values.words import IdStart
from assetflow.ledger.read.assets import AssetFilter, ListedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter
from assetflow.operations.lookup import near_assets
from assetflow.web.pages import ThePages, address, url

router = APIRouter()

MOST = 8
# Of two words, the second is looked for in so many assets that have the first.
LOOKED_AT = 200
# The name that assetflow gives to a run: it ends with the first characters of its decision's id, and maybe a reason.
_RUN_NAME = re.compile(r"-([0-9a-f]{6})(?: ·.*)?$")


# As every run name shows it: the first characters of its decision's id.
_SHORT_ID = re.compile(r"[0-9a-f]{6,7}")
# What people look for by what they want to do.
_PLACES = (
    ("failed runs of today", "/runs?failed=true&day=today"),
    ("paused and held consumers", "/consumers?show=inactive"),
    ("pause or resume consumers", "/consumers"),
    ("waiting consumers", "/consumers?show=waiting"),
    ("assets that are too old", "/assets?show=old"),
    ("stale assets", "/assets?show=stale"),
    ("missing assets", "/assets?show=missing"),
    ("failing watchers", "/assets?show=watcher"),
    ("start a backfill", "/backfills/new"),
    ("what a deploy would change", "/diff"),
)


@dataclass(frozen=True)
class Hit:
    """A thing that was found: its kind, its name, the address of its page, and what tells it from others."""

    kind: str
    name: str
    page: str
    words: str = ""


@router.get("/search")
def search_everything(request: Request, pages: ThePages, reader: TheReader, q: Text = "") -> Response:
    """Show what is called so, or has an id that begins so; without a text, what was updated last."""
    wanted = " ".join(q.split())
    hits = list(_hits(reader, wanted)) or list(_similar(reader, wanted)) if wanted else list(_newest(reader))
    return pages.show(request, "search.html", fragment="hits", asked=wanted, hits=hits)


def _hits(reader: Reader, wanted: str) -> Iterator[Hit]:
    """Yield what is found, the most likely first."""
    yield from _with_id(reader, wanted)
    yield from _with_run_name(reader, wanted)
    yield from _with_words(reader, wanted.split(" "))
    assets, total = reader.assets.page(AssetFilter(search=wanted, hidden=False), (("name", False),), limit=MOST)
    yield from map(_asset, assets)
    for each in [each for each in assets if total == 1 or each.name == wanted]:
        yield Hit("page", f"what if {each.name} is updated", url("/asset/events", asset=each.record.uri))
    if total > MOST:
        yield Hit("page", f"all {total:,} assets", url("/assets", search=wanted), "that are called so")
    consumers, _ = reader.consumers.listed(ConsumerFilter(search=wanted), limit=MOST)
    for record in consumers:
        name = record.consumer.name
        yield Hit("flow", name, url("/consumers", *name.split("/", 1)), record.consumer.schedule.describe())
    for name in reader.lineage.other_flows(wanted, limit=MOST):
        yield Hit("flow", name, url("/graph", focus=Node("flow", name).as_json()), "makes or reads assets")
    yield from _with_key(reader, wanted)
    asked = wanted.lower()
    yield from (Hit("page", name, page) for name, page in _PLACES if any(map(name.__contains__, asked.split(" "))))


def _asset(each: ListedAsset) -> Hit:
    uri = each.record.uri
    return Hit("asset", each.name, address(uri), uri if uri != each.name else "")


def _newest(reader: Reader) -> Iterator[Hit]:
    """Yield the assets that were updated last."""
    assets, _ = reader.assets.page(AssetFilter(hidden=False), (("updated_at", True),), limit=MOST)
    yield from map(_asset, assets)


def _similar(reader: Reader, wanted: str) -> Iterator[Hit]:
    """Yield what has a similar name, if nothing has the one that was typed."""
    flows = reader.consumers.names()
    for name in near_assets(reader, wanted, flows):
        is_flow = name in flows
        page = url("/consumers", *name.split("/", 1)) if is_flow else url("/asset", asset=name)
        yield Hit("flow" if is_flow else "asset", name, page, "a similar name")


def _with_words(reader: Reader, words: Sequence[str]) -> Iterator[Hit]:
    """Yield the assets that have all of several words, or all but the last, which is one of their keys."""
    if len(words) < 2:
        return
    first, *others, last = words
    assets, _ = reader.assets.page(AssetFilter(search=first, hidden=False), (("name", False),), limit=LOOKED_AT)
    texts = {each.record.uri: f"{each.name} {each.record.uri}".lower() for each in assets}
    found = [each for each in assets if all(word.lower() in texts[each.record.uri] for word in others)]
    yield from [_asset(each) for each in found if last.lower() in texts[each.record.uri]][:MOST]
    uris = set(reader.partitions.having(last, limit=LOOKED_AT))
    for each in [each for each in found if each.record.uri in uris][:MOST]:
        yield Hit("partition", each.name, url("/asset", asset=each.record.uri, key=last), last)


def _with_run_name(reader: Reader, wanted: str) -> Iterator[Hit]:
    """Yield the runs with this name: of decisions, which end with the start of their id, and of the newest updates."""
    found, is_id = _RUN_NAME.search(wanted), _SHORT_ID.fullmatch(wanted)
    start = wanted if is_id else found[1] if found else ""
    records = reader.decisions.with_ids(reader.decisions.beginning(IdStart(start), MOST)) if start else []
    consumed = reader.decisions.consumed_assets([each.number for each in records])
    for record in records:
        name = record.run_name(consumed.get(record.number, ()))
        if record.flow_run_id is not None and (is_id or name.startswith(wanted)):
            yield Hit("run", name, url("/runs", record.flow_run_id), record.consumer_name)
    for run in reader.events.runs_called(wanted, limit=MOST) if "-" in wanted and not found else ():
        words = "/".join(part for part in (run.flow_name, run.deployment_name) if part)
        yield Hit("run", run.name, url("/runs", run.id), words)


def _with_key(reader: Reader, wanted: str) -> Iterator[Hit]:
    uris = reader.partitions.having(wanted, limit=MOST)
    found, _ = (
        reader.assets.page(AssetFilter(uris=uris, hidden=False), (("name", False),), limit=MOST) if uris else ([], 0)
    )
    for each in found:
        yield Hit("partition", each.name, url("/asset", asset=each.record.uri, key=wanted), wanted)


def _with_id(reader: Reader, wanted: str) -> Iterator[Hit]:
    # A whole id is found by its first characters too.
    start = IdStart.of(wanted.replace("-", "")[:31])
    if start is None:
        return
    for record in reader.decisions.with_ids(reader.decisions.beginning(start, MOST)):
        if record.flow_run_id is not None:
            yield Hit("run", record.consumer_name, url("/runs", record.flow_run_id), str(record.flow_run_id))
        else:
            yield Hit("decision", record.consumer_name, url("/decisions", record.id), str(record.id))
    for number in reader.events.beginning(start, MOST):
        event = reader.events.get(number)
        if event is not None:
            yield Hit("event", event.asset.name, url("/events", event.id), str(event.id))
