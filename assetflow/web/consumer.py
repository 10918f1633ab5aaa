"""The list of consumers, and the page of each: why it runs or does not, its queue, and the forms of an operator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from assetflow.api.requests import LARGEST, Backend, Deployment, Flow, Now, Text, TheBackend, TheConsumer, TheReader
from assetflow.core.explain import next_time
from assetflow.core.graph.lineage import loops_through
from assetflow.core.values.addresses import redacted
from assetflow.core.values.conditions import AssetAll
from assetflow.core.values.consumers import Consumer
from assetflow.errors import AssetflowError, InvalidCall, PrefectUnreachable, UnknownConsumer, UnknownEvent
from assetflow.ledger.read.explanations import READ_FIRST, consumer_explanation, partition_explanation, past_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter, ConsumerOrder, ConsumerRecord
from assetflow.operations import decisions, runs_by_hand
from assetflow.operations.lookup import Selection, consumer_at, list_in_order, switch
from assetflow.operations.runs_by_hand import RunWanted, start_run
from assetflow.operations.what_if import Preview, if_all_resumed, if_resumed, if_run
from assetflow.web.live import look_again, states_address
from assetflow.web.pages import (
    SOMEBODY,
    Form,
    NumberOrNone,
    PagePlaces,
    Pages,
    TheForm,
    ThePages,
    in_words,
    url,
    wants_fragment,
)
from assetflow.web.plots import RUNS, run_bars
from assetflow.web.previews import MOST, show_preview

router = APIRouter()

QUEUED = 50
DECISIONS = 15
PARTITIONS = 20
MISSED = 5
# So many names are compared that have a text in them.
MAKERS = 20
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
    return _listed(request, pages, backend, asked, selected=names or ())


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
    return _listed(request, pages, backend, asked, ask=paused, selected=names or ())


@router.get("/consumers/switch/preview")
def preview_switch(
    request: Request,
    pages: ThePages,
    reader: TheReader,
    now: Now,
    names: Annotated[str, Query(max_length=20_000)] = "",
) -> Response:
    """Show what a resume of several consumers would lead to, for the dialog that asks for it."""

    def preview() -> Preview:
        records = [consumer_at(reader, *name.strip().partition("/")[::2]) for name in names.split("\n")[:ROWS] if name]
        return if_all_resumed(reader, records, now)

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
        return await run_in_threadpool(_listed, request, pages, backend, asked, refused=refused)
    return RedirectResponse(asked.address(asked.offset, switched=len(names)), 303)


def _listed(
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
    times = {each.name: next_time(each.record.consumer, now) for each in listed}
    return pages.show(
        request,
        "consumers.html",
        fragment="list",
        status=409 if refused else 200,
        found=listed,
        bars={of: run_bars(runs) for of, runs in reader.ended_runs.last_of(deployments, RUNS).items()},
        has_state=any(each.paused for each in listed),
        times=times,
        has_times=any(times.values()),
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
def show_condition(request: Request, pages: ThePages, backend: TheBackend, record: TheConsumer) -> Response:
    """Show the condition of a consumer in the list, as a tree with the facts beside each asset."""
    told = consumer_explanation(backend.ledger.reader, record, backend.now(), partitions=1, events=READ_FIRST)
    return pages.show(request, "condition.html", fragment="tree", told=told)


def explained(backend: Backend, record: ConsumerRecord, key: str) -> dict[str, object]:
    """Return what a consumer, or one of its partitions, waits for, and its queue."""
    reader, now, consumer = backend.ledger.reader, backend.now(), record.consumer
    loops = loops_through(reader.lineage.edges_of, consumer.name)
    explained = consumer_explanation(reader, record, now, loops=loops, partitions=PARTITIONS, events=READ_FIRST)
    part = partition_explanation(reader, record, key) if key else None
    has_queue = part is not None or not consumer.schedule.is_partitioned
    queued = reader.queues.events(consumer.id, key or None, limit=QUEUED + 1) if has_queue else []
    return {
        "explained": explained,
        "keeps": consumer.schedule.keeping is not None,
        "planned": explained.plan if part is None else None,
        "part": part,
        "rows": explained.condition if part is None else part.condition,
        "queue": [redacted(event) for event in queued[:QUEUED]],
        "queued": explained.queued if part is None else part.queued,
        "failing": explained.failing if part is None else part.failing,
    }


def resumed(backend: Backend, record: ConsumerRecord) -> Preview | None:
    """Return what a resume would lead to; `None` for a consumer that is not paused, and where a resume is refused."""
    with suppress(AssetflowError):
        return if_resumed(backend.ledger.reader, record, backend.now()) if record.consumer.paused else None
    return None


def earlier(reader: Reader, record: ConsumerRecord, key: str, at: str) -> dict[str, object]:
    """Return why it ran, or did not, at an earlier time, and the deadlines that it missed."""
    moment = _moment(at)
    missed = reader.deadlines.missed(consumer=record.consumer.id, limit=MISSED)
    return {
        "at": at,
        "past": None if moment is None else past_explanation(reader, record, moment, key or None),
        "missed": missed,
        "missed_names": reader.assets.names({uri for each in missed for uri in each.missing}),
    }


def decided(reader: Reader, record: ConsumerRecord, key: str, before: int | None) -> dict[str, object]:
    """Return a page of its decisions, or of those for a key."""
    number = record.consumer.id
    found = reader.decisions.find(consumer=number, target_key=key or None, before=before, limit=DECISIONS + 1)
    shown = found[:DECISIONS]
    consumed = reader.decisions.consumed_assets([each.number for each in shown])
    return {
        "decisions": shown,
        "again": look_again(shown),
        "states": states_address(shown),
        "consumed": consumed,
        "run_names": {each.number: each.run_name(consumed.get(each.number, ())) for each in shown},
        "older": place(record, key=key, before=shown[-1].number) if len(found) > DECISIONS else "",
        "newest": place(record, key=key) if before is not None else "",
    }


def _moment(text: str) -> datetime | None:
    """Return the time that a field names, taken as UTC if it has no zone, or `None` if it names none."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def verb(consumer: Consumer) -> str:
    """Return the verb that ends the sentence "Runs when orders AND customers …"."""
    schedule = consumer.schedule
    if not schedule.tokens:
        return ""
    return "were updated" if len(schedule.tokens) > 1 and isinstance(schedule.condition, AssetAll) else "was updated"


def place(record: ConsumerRecord, **query: object) -> str:
    return url("/consumers", *record.consumer.name.split("/", 1), **query)


Key = Annotated[str, Query(max_length=250)]


@dataclass(frozen=True)
class Notice:
    """The result of an operator's last action, for the page to show; `refused` is the reason if it failed."""

    started: UUID | None = None
    asked: str = ""
    removed: int | None = None
    retried: int | None = None
    refused: str = ""


@router.get("/consumers/{flow}/{deployment}")
def show_consumer(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    flow: Flow,
    deployment: Deployment,
    key: Key = "",
    before: NumberOrNone = None,
    started: UUID | None = None,
    asked: Annotated[str, Query(max_length=10)] = "",
    removed: NumberOrNone = None,
    retried: NumberOrNone = None,
    at: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """Show a consumer or, with a key, one of its partitions.

    Parameters:
        at: explain why it ran, or did not, at this time, UTC, too.
        started: the run that an operator has just started here.
        removed: the number of events that an operator has just removed here.
        retried: the number of runs that a retry by an operator has just asked for here.
        asked: `pause` or `resume`, if an operator has just asked Prefect for it.
    """
    try:
        record = consumer_at(backend.ledger.reader, flow, deployment)
    except UnknownConsumer:
        # A maker without a schedule has no page of its own.
        name = f"{flow}/{deployment}"
        if name not in backend.ledger.reader.lineage.other_flows(name, limit=MAKERS):
            raise
        return RedirectResponse(url("/runs", flow=name), 303)
    # Let the page reload until the evaluator has the change from Prefect; then drop `asked` from the address.
    waits = asked in ("pause", "resume") and (asked == "pause") != record.consumer.paused
    notice = Notice(started, asked if waits else "", removed, retried)
    answered = bool(asked) and not waits
    plain = place(record, key=key, before=before, **vars(notice))
    if answered and not wants_fragment(request):
        return RedirectResponse(plain, 303)
    page = _page(request, pages, backend, record, key=key, before=before, notice=notice, at=at)
    if answered:
        page.headers["hx-replace-url"] = plain
    return page


@router.post("/consumers/{flow}/{deployment}/switch")
async def switch_consumer(
    request: Request, pages: ThePages, backend: TheBackend, form: TheForm, record: TheConsumer
) -> Response:
    """Pause or resume the consumer, as the switch of its automation in Prefect does."""
    paused = form.text("paused") == "yes"
    try:
        await switch(backend.prefect, record, paused=paused)
    except AssetflowError as error:
        status = 503 if isinstance(error, PrefectUnreachable) else 409
        notice = Notice(refused=f"Nothing was changed. {in_words(error)}")
        return await run_in_threadpool(_page, request, pages, backend, record, status=status, notice=notice)
    return RedirectResponse(place(record, asked="pause" if paused else "resume"), 303)


@router.post("/consumers/{flow}/{deployment}/retry")
async def retry_consumer(
    request: Request, pages: ThePages, backend: TheBackend, form: TheForm, record: TheConsumer
) -> Response:
    """Let an Eager or Lazy consumer forget what it tried and was waived, for a key or for all. Contract 8.7."""
    key = form.text("key") or None
    try:
        done = await runs_by_hand.retry(backend, record, key)
    except AssetflowError as error:
        notice = Notice(refused=f"Nothing was changed. {in_words(error)}")
        return await run_in_threadpool(_page, request, pages, backend, record, status=409, notice=notice)
    return RedirectResponse(place(record, key=key, retried=str(len(done.decisions))), 303)


@router.get("/consumers/{flow}/{deployment}/run/preview")
def preview_run(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    record: TheConsumer,
    partition_key: str = "",
) -> Response:
    """Show what a run of the consumer would lead to, for the dialog that asks for it."""
    return show_preview(
        request,
        pages,
        lambda: if_run(backend.ledger.reader, record.consumer.name, [partition_key or None], backend.now()),
        "When it has completed",
        "No consumer waits for what it makes.",
    )


@router.get("/consumers/{flow}/{deployment}/run")
def ask_for_run(request: Request, pages: ThePages, backend: TheBackend, record: TheConsumer) -> Response:
    """Show the consumer with the form that starts a run."""
    return _page(request, pages, backend, record, form="run-now")


@router.post("/consumers/{flow}/{deployment}/run")
async def run_now(
    request: Request, pages: ThePages, backend: TheBackend, form: TheForm, record: TheConsumer
) -> Response:
    """Start a run that consumes nothing."""
    try:
        wanted = RunWanted(partition_key=form.text("partition_key") or None, once=form.key())
        run = await start_run(backend.prefect, record.consumer.deployment_id, wanted)
    except AssetflowError as error:
        refused = form.refused_by(error, ["partition_key"])
        return await run_in_threadpool(_page, request, pages, backend, record, status=422, run_form=refused)
    return RedirectResponse(place(record, started=run["id"]), 303)


@router.get("/consumers/{flow}/{deployment}/remove")
def ask_to_remove(
    request: Request,
    pages: ThePages,
    backend: TheBackend,
    record: TheConsumer,
    key: Key = "",
    event: UUID | None = None,
) -> Response:
    """Show the consumer with the form that removes one event, or all, from its queue."""
    return _page(request, pages, backend, record, key=key, remove=event, form="remove")


@router.post("/consumers/{flow}/{deployment}/remove")
def remove_queued(
    request: Request, pages: ThePages, backend: TheBackend, form: TheForm, record: TheConsumer
) -> Response:
    """Remove one queued event, or all of them, for a reason that the receipts keep. Contract 3.7."""
    key, why = form.text("key"), form.text("why").strip()
    event = UUID(form.text("event")) if form.text("event") else None
    which = Selection(record, event_id=event)
    try:
        count = decisions.remove_queued(backend, which, target_key=key or None, by=SOMEBODY, why=why)
    except (InvalidCall, UnknownEvent) as error:
        refused = form.refused(why=in_words(error))
        return _page(request, pages, backend, record, key=key, remove=event, status=422, remove_form=refused)
    return RedirectResponse(place(record, key=key, removed=count), 303)


def _page(
    request: Request,
    pages: Pages,
    backend: Backend,
    record: ConsumerRecord,
    *,
    status: int = 200,
    key: str = "",
    before: int | None = None,
    remove: UUID | None = None,
    form: str = "",
    notice: Notice = Notice(),
    at: str = "",
    run_form: Form | None = None,
    remove_form: Form | None = None,
) -> Response:
    key = key if record.consumer.schedule.is_partitioned else ""
    return pages.show(
        request,
        "consumer.html",
        fragment="live_part",
        status=status,
        record=record,
        consumer=record.consumer,
        key=key,
        place=place(record),
        here=place(record, key=key, before=before, **vars(replace(notice, refused=""))),
        verb=verb(record.consumer),
        note=backend.ledger.reader.notes().get(record.consumer.name),
        remove=remove,
        open=form,
        run_form=run_form or Form(),
        remove_form=remove_form or Form(),
        if_resumed=resumed(backend, record),
        most=MOST,
        **explained(backend, record, key),
        **earlier(backend.ledger.reader, record, key, at),
        **decided(backend.ledger.reader, record, key, before),
        **vars(notice),
    )
