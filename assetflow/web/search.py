"""Search over assets, consumers, runs, decisions, events and partition keys. The palette (Ctrl+K) shows the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from assetflow.api.requests import Text, TheReader
from assetflow.core.graph.lineage import Node
from assetflow.core.values.words import IdStart
from assetflow.ledger.read.assets import AssetFilter
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter
from assetflow.web.pages import ThePages, address, url

router = APIRouter()

MOST = 8
# The name that assetflow gives to a run: it ends with the first characters of its decision's id, and maybe a reason.
_RUN_NAME = re.compile(r"-([0-9a-f]{6})(?: ·.*)?$")


@dataclass(frozen=True)
class Hit:
    """A thing that was found: its kind, its name, the address of its page, and what tells it from others."""

    kind: str
    name: str
    page: str
    words: str = ""


@router.get("/search")
def search_everything(request: Request, pages: ThePages, reader: TheReader, q: Text = "") -> Response:
    """Show what is called so, or has an id that begins so."""
    wanted = q.strip()
    hits = list(_hits(reader, wanted)) if wanted else []
    return pages.show(request, "search.html", fragment="hits", asked=wanted, hits=hits)


def _hits(reader: Reader, wanted: str) -> Iterator[Hit]:
    """Yield what is found, the most likely first."""
    yield from _with_id(reader, wanted)
    yield from _with_run_name(reader, wanted)
    assets, _ = reader.assets.page(AssetFilter(search=wanted, hidden=False), (("name", False),), limit=MOST)
    for each in assets:
        uri = each.record.uri
        yield Hit("asset", each.name, address(uri), uri if uri != each.name else "")
    consumers, _ = reader.consumers.listed(ConsumerFilter(search=wanted), limit=MOST)
    for record in consumers:
        name = record.consumer.name
        yield Hit("flow", name, url("/consumers", *name.split("/", 1)), record.consumer.schedule.describe())
    for name in reader.lineage.other_flows(wanted, limit=MOST):
        yield Hit("flow", name, url("/graph", focus=Node("flow", name).as_json()), "makes or reads assets")
    yield from _with_key(reader, wanted)


def _with_run_name(reader: Reader, wanted: str) -> Iterator[Hit]:
    """Yield the runs with this name: of decisions, which end with the start of their id, and of the newest updates."""
    found = _RUN_NAME.search(wanted)
    records = reader.decisions.with_ids(reader.decisions.beginning(IdStart(found[1]), MOST)) if found else []
    consumed = reader.decisions.consumed_assets([each.number for each in records])
    for record in records:
        name = record.run_name(consumed.get(record.number, ()))
        if record.flow_run_id is not None and name.startswith(wanted):
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
