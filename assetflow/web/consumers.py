"""The list of consumers: how many of their assets are updated, their condition, their last run and the next time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import LARGEST, Backend, Deployment, Flow, Text, TheBackend
from assetflow.core.explain import next_time
from assetflow.errors import AssetflowError, PrefectUnreachable
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.explanations import READ_FIRST, consumer_explanation
from assetflow.ledger.records import ConsumerFilter, ConsumerOrder
from assetflow.operations.lookup import consumer_at, list_in_order, switch
from assetflow.operations.what_if import Preview, if_all_resumed
from assetflow.web.forms import Form, TheForm, in_words
from assetflow.web.pages import PagePlaces, Pages, ThePages, url
from assetflow.web.plots import RUNS, run_bars
from assetflow.web.prefect_runs import look_again, states_address
from assetflow.web.previews import show_preview

router = APIRouter()

ROWS = 50
Show = Literal["", "active", "inactive", "paused", "held", "waiting", "failed"]
_FILTERS: dict[Show, ConsumerFilter] = {
    "": ConsumerFilter(),
    "active": ConsumerFilter(active=True),
    "inactive": ConsumerFilter(active=False),
    "paused": ConsumerFilter(paused=True),
    "held": ConsumerFilter(held=True),
    "waiting": ConsumerFilter(waiting=True),
    "failed": ConsumerFilter(failed=True),
}


@dataclass(frozen=True)
class ListedConsumer:
    """A consumer in the list, with its next time-based run."""

    of: ConsumerOverview
    next_time: datetime | None


@dataclass(frozen=True)
class ConsumerFilters:
    """Which consumers the list shows.

    Attributes:
        offset: how many come before the page.
        switched: how many consumers an operator has just asked Prefect to pause or resume.
    """

    search: Text = ""
    show: Show = ""
    sort: ConsumerOrder = "name"
    offset: Annotated[int, Query(ge=0, le=LARGEST)] = 0
    switched: Annotated[int, Query(ge=0, le=LARGEST)] = 0

    def address(self, offset: int = 0, path: str = "/consumers", **more: object) -> str:
        sort = "" if self.sort == "name" else self.sort
        return url(path, search=self.search, show=self.show, sort=sort, offset=offset or None, **more)

    def sorted_by(self, order: ConsumerOrder) -> str:
        """Return the address of the same list in another order."""
        return replace(self, sort=order).address()


TheList = Annotated[ConsumerFilters, Depends()]
Names = Annotated[list[str] | None, Query(max_length=ROWS)]


@router.get("/consumers")
def list_consumers(
    request: Request, pages: ThePages, backend: TheBackend, asked: TheList, names: Names = None
) -> Response:
    """Show a page of consumers; those with these names are selected."""
    return _page(request, pages, backend, asked, selected=names or ())


@router.get("/consumers/switch")
def ask_to_switch(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    asked: TheList,
    names: Names = None,
    paused: Literal["yes", "no"] = "yes",
) -> Response:
    """Show the list with the form that pauses or resumes the consumers that are selected, or all of the page."""
    return _page(request, pages, backend, asked, ask=paused, selected=names or ())


@router.get("/consumers/switch/preview")
def preview_switch(
    request: Request, pages: ThePages, backend: TheBackend, names: Annotated[str, Query(max_length=20_000)] = ""
) -> Response:
    """Show what a resume of several consumers would lead to, for the dialog that asks for it."""
    reader = backend.ledger.reader

    def preview() -> Preview:
        records = [consumer_at(reader, *name.strip().partition("/")[::2]) for name in names.split("\n")[:ROWS] if name]
        return if_all_resumed(reader, records, backend.now())

    return show_preview(request, pages, preview, "If you resume them now", "Nothing is queued: no run would start.")


@router.post("/consumers/switch")
async def switch_consumers(
    request: Request, pages: ThePages, backend: TheBackend, asked: TheList, form: TheForm
) -> Response:
    """Pause or resume consumers, as the switches of their automations in Prefect do."""
    paused, refused = form.text("paused") == "yes", dict[str, str]()
    names = form.text("names").split("\n")
    for name in names:
        try:
            record = await run_in_threadpool(consumer_at, backend.ledger.reader, *name.partition("/")[::2])
            await switch(backend.prefect, record, paused=paused)
        except PrefectUnreachable as error:
            # The others would wait as long, for the same answer.
            refused[name] = in_words(error)
            break
        except AssetflowError as error:
            refused[name] = in_words(error)
    if refused:
        return await run_in_threadpool(_page, request, pages, backend, asked, refused=refused)
    return RedirectResponse(asked.address(asked.offset, switched=len(names)), 303)


def _page(
    request: Request,
    pages: Pages,
    backend: Backend,
    asked: ConsumerFilters,
    *,
    ask: str = "",
    selected: Collection[str] = (),
    refused: Mapping[str, str] | None = None,
) -> Response:
    """Show a page of consumers.

    Parameters:
        ask: "yes" or "no" for the form that pauses, or resumes, those that are not yet.
        selected: the names of the consumers that are ticked; none for all.
        refused: consumers that could not be switched, with the reasons.
    """
    reader, now = backend.ledger.reader, backend.now()
    wanted = replace(_FILTERS[asked.show], search=asked.search.strip())
    listed, total = list_in_order(reader, wanted, asked.sort, now, limit=ROWS, offset=asked.offset)
    deployments = [each.record.consumer.deployment_id for each in listed]
    rows = [ListedConsumer(each, next_time(each.record.consumer, now)) for each in listed]
    return pages.show(
        request,
        "consumers.html",
        fragment="list",
        status=409 if refused else 200,
        found=rows,
        bars={of: run_bars(runs) for of, runs in reader.ended_runs.last_of(deployments, RUNS).items()},
        has_state=any(each.paused for each in listed),
        has_times=any(each.next_time for each in rows),
        to_pause=[each.name for each in listed if not each.record.consumer.paused],
        to_resume=[each.name for each in listed if each.record.consumer.paused],
        ask=ask,
        selected=selected,
        kept={name: value for name, value in asdict(asked).items() if value and name != "switched"},
        form=Form(),
        refused=refused or {},
        switched=asked.switched,
        switch_address=asked.address(asked.offset, "/consumers/switch"),
        again="every 2s" if asked.switched else look_again(each.last for each in listed),
        states=states_address(each.last for each in listed),
        search=asked.search,
        show=asked.show,
        sort=asked.sort,
        by=asked.sorted_by,
        here=asked.address(asked.offset, switched=asked.switched or None),
        below=asked.address(asked.offset),
        places=PagePlaces.of(asked.address, asked.offset, ROWS, total),
    )


@router.get("/consumers/{flow}/{deployment}/condition")
def show_condition(
    request: Request, pages: ThePages, backend: TheBackend, flow: Flow, deployment: Deployment
) -> Response:
    """Show the condition of a consumer in the list, as a tree with the facts beside each asset."""
    reader = backend.ledger.reader
    record = consumer_at(reader, flow, deployment)
    told = consumer_explanation(reader, record, backend.now(), partitions=1, events=READ_FIRST)
    return pages.show(request, "condition.html", fragment="tree", told=told)
