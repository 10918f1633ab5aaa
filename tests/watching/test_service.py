"""The process that watches stays, and watches on, when the ledger's database is away for a while."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from assetflow.ledger import Ledger
from assetflow.ledger.lease import LEASE_SECONDS
from assetflow.watchers import FileTrigger
from assetflow.watching.sources import watch as serve
from tests.environment.postgres import closed, new_database
from tests.environment.waiting import until_async
from tests.watching.outside import updates, watch

pytestmark = [pytest.mark.long, pytest.mark.postgres]


async def test_a_database_that_is_away_for_longer_than_the_lease_does_not_end_it(tmp_path: Path) -> None:
    ready, stop = asyncio.Event(), asyncio.Event()
    with new_database() as url:
        with Ledger.open(url) as ledger:
            watch(ledger, FileTrigger(f"{tmp_path}/*.json", every=timedelta(seconds=1), start="existing"))
        serving = asyncio.create_task(serve(place=url, stop=stop, ready=ready.set))
        try:
            await ready.wait()
            with closed(url):
                (tmp_path / "a.json").write_text("{}")
                await asyncio.wait({serving}, timeout=LEASE_SECONDS + 2)
            assert not serving.done()
            with Ledger.open(url) as ledger:
                await until_async(lambda: len(updates(ledger)) == 1)
        finally:
            stop.set()
            await serving
