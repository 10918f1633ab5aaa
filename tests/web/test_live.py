"""What open pages are told: changes as they are committed, and what does not work."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from assetflow.api.requests import Backend
from assetflow.ledger import Ledger
from assetflow.ledger.lease import SILENT, STOPPED, Holder
from assetflow.web import live as live_module
from assetflow.web.live import LedgerChange, Live
from tests.cli.shop import NOON, ORDERS, deploy, update
from tests.web.conftest import MakeSite

SOON = 10


@asynccontextmanager
async def listening(live: Live) -> AsyncGenerator[asyncio.Queue[LedgerChange | None]]:
    """What a page hears, from the first look on."""
    heard = asyncio.Queue[LedgerChange | None]()

    async def listen() -> None:
        async for change in live.changes():
            heard.put_nowait(change)

    task = asyncio.create_task(listen())
    try:
        yield heard
    finally:
        live.stop()
        async with asyncio.timeout(SOON):
            await task


@pytest.fixture
def live(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Live:
    monkeypatch.setattr(live_module, "SECONDS", 0.01)
    return Live(Backend(ledger, now=lambda: NOON))


async def looked(live: Live) -> None:
    """Until the first look has been taken: what is there by then is no news."""
    async with asyncio.timeout(SOON):
        while live.seen is None:  # noqa: ASYNC110 (a test waits)
            await asyncio.sleep(0.001)


async def test_what_came_between_a_page_and_its_stream_is_told(live: Live, ledger: Ledger) -> None:
    before = ledger.reader.feed.end()
    update(ledger, ORDERS, 1)
    first, second = live.changes(before), live.changes(before)
    async with asyncio.timeout(SOON):
        told = await anext(first)
        again = await anext(second)
    for each in (first, second):
        await each.aclose()
    assert told is not None
    assert again is not None
    assert "events" in told.kinds
    assert told.uris == {ORDERS.uri}
    assert "events" in again.kinds
    assert again.uris is None


async def test_events_and_decisions_are_told_with_whose_they_are(live: Live, ledger: Ledger) -> None:
    deploy(ledger, "audit/all", ORDERS)
    async with listening(live) as heard:
        await looked(live)
        await asyncio.to_thread(update, ledger, ORDERS, 1)
        found = LedgerChange(frozenset())
        async with asyncio.timeout(SOON):
            while not {"events", "decisions"} <= found.kinds:
                change = await heard.get()
                assert change is not None
                found = LedgerChange(
                    found.kinds | change.kinds,
                    (found.uris or frozenset()) | (change.uris or frozenset()),
                    (found.consumers or frozenset()) | (change.consumers or frozenset()),
                )
    assert found.uris == {ORDERS.uri}
    assert found.consumers == {"audit/all"}


def test_a_page_says_why_nobody_evaluates_and_since_when(make_site: MakeSite, ledger: Ledger) -> None:
    site = make_site(now=lambda: datetime.now(UTC))
    assert f"{STOPPED.reason}. Updates and decisions wait" in site.page("/assets").text
    here, elsewhere = Holder.this_process(uuid4()), Holder(uuid4(), "elsewhere", 1)
    ledger.writer.lease.acquire(here, seconds=3600)
    assert "evaluator" not in site.page("/assets").text
    ledger.writer.lease.acquire(here, datetime.now(UTC) - timedelta(minutes=7))
    assert SILENT.reason in site.page("/assets").text
    ledger.writer.lease.release(here)
    ledger.writer.lease.acquire(elsewhere, datetime.now(UTC) - timedelta(minutes=7))
    assert STOPPED.reason in site.page("/assets").text
    assert "Last sign of life: 7 min ago" in site.page("/assets").text


def test_a_page_says_that_prefect_is_away_and_leads_to_what_waits(make_site: MakeSite, ledger: Ledger) -> None:
    ledger.writer.lease.acquire(Holder.this_process(uuid4()), seconds=3600)
    for flow in ("ran", "waits"):
        deploy(ledger, f"{flow}/nightly", ORDERS)
    launched, _ = update(ledger, ORDERS, 1)
    ledger.writer.decisions.launched(launched.id, uuid4(), NOON)
    site = make_site(troubles=lambda: {"launching": "Prefect does not answer", "times": "something else"})
    page = site.page("/assets")
    assert "Prefect cannot be reached. Runs wait until it answers. Prefect does not answer" in page.text
    assert "Trouble with times. something else" in page.text
    assert "/activity?show=waiting" in page.links
    waiting = site.page("/activity?show=waiting").text
    assert ("waits/nightly runs" in waiting, "ran/nightly runs" in waiting) == (True, False)
