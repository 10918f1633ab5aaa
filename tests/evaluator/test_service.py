"""What an evaluator says before it is one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.evaluator import Options
from assetflow.evaluator.service import open_evaluator

SOON = 20


async def test_a_prefect_that_is_away_is_not_waited_for_longer_than_told(tmp_path: Path) -> None:
    with (
        temporary_settings(updates={PREFECT_API_URL: "http://127.0.0.1:9/api"}),
        pytest.raises(PrefectUnreachable, match=r"did not answer in 0\.5 s"),
    ):
        async with open_evaluator(Options(patience=0.5), place=tmp_path / "ledger.db"):
            pass


async def test_a_prefect_that_is_away_at_the_start_is_told(tmp_path: Path) -> None:
    options = Options()

    async def begin() -> None:
        async with open_evaluator(options, place=tmp_path / "ledger.db"):
            pass

    with temporary_settings(updates={PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        beginning = asyncio.create_task(begin())
        async with asyncio.timeout(SOON):
            while not options.health.troubles:  # noqa: ASYNC110 (a test waits)
                await asyncio.sleep(0.01)
        beginning.cancel()
        with suppress(asyncio.CancelledError):
            await beginning
    assert "Prefect does not answer" in options.health.troubles["Prefect"]
