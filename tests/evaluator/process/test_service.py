"""An evaluator starts, follows what others commit, and settles while Prefect is busy for a moment."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.health import Health
from assetflow.evaluator.process.evaluator import Evaluator, Options, open_evaluator
from assetflow.evaluator.process.service import ready_marker
from assetflow.prefect_io import rest
from assetflow.prefect_io.connection import AskAgain
from tests.environment.prefect_settings import prefect_at
from tests.environment.waiting import until_async


async def test_the_wait_for_prefect_has_a_limit(tmp_path: Path) -> None:
    with prefect_at("http://127.0.0.1:9/api"), pytest.raises(PrefectUnreachable, match=r"did not answer in 0\.5 s"):
        async with open_evaluator(Options(patience=0.5), place=tmp_path / "ledger.db"):
            pass


async def test_health_names_prefect_while_it_does_not_answer_at_the_start(tmp_path: Path) -> None:
    options = Options()

    async def begin() -> None:
        async with open_evaluator(options, place=tmp_path / "ledger.db"):
            pass

    with prefect_at("http://127.0.0.1:9/api"):
        beginning = asyncio.create_task(begin())
        await until_async(lambda: options.health.troubles)
        beginning.cancel()
        with suppress(asyncio.CancelledError):
            await beginning
    assert "Prefect does not answer" in options.health.troubles["Prefect"]


def test_the_marker_and_its_folder_are_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    before = os.umask(0)
    try:
        evaluator = SimpleNamespace(api_url="http://127.0.0.1:4200/api", ledger_id=uuid4())
        with ready_marker(home, cast(Evaluator, evaluator)) as marker:
            assert marker.stat().st_mode & 0o777 == 0o600
            assert json.loads(marker.read_text())["pid"] == os.getpid()
        assert home.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


class WokenPart:
    def __init__(self) -> None:
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1


class ThreeCommits:
    @asynccontextmanager
    async def commits(self) -> AsyncGenerator[AsyncIterator[None]]:
        async def three() -> AsyncIterator[None]:
            for _ in range(3):
                yield

        yield three()


async def test_each_commit_wakes_launcher_clock_and_listeners() -> None:
    parts: dict[str, Any] = {name: WokenPart() for name in ("launcher", "clock", "_listeners")}
    evaluator = SimpleNamespace(_ledger=ThreeCommits(), health=Health(), **parts)
    await Evaluator._listen_to_ledger(cast(Evaluator, evaluator))
    assert {name: part.woken for name, part in parts.items()} == dict.fromkeys(parts, 3)


STEPS = ["registry.sync", "timers.settled", "catch_up.sweep", "clock.look"]


class BusyPart:
    """A part of the evaluator that notes its calls; the first calls of each step fail because Prefect is busy."""

    def __init__(self, name: str, tried: list[str], failures: int) -> None:
        self._name = name
        self._tried = tried
        self._failures = failures

    def __getattr__(self, step: str) -> Any:
        name = f"{self._name}.{step}"

        async def take(*_: object) -> None:
            self._tried.append(name)
            if self._tried.count(name) <= self._failures:
                raise PrefectUnreachable("Prefect answers 503")

        return take


def evaluator_of(tried: list[str], failures: int) -> Any:
    async def idle() -> bool:
        return True

    parts = {name: BusyPart(name, tried, failures) for name in ("registry", "timers", "catch_up", "clock")}
    return SimpleNamespace(_options=Options(), _is_idle=idle, **parts)


async def test_each_step_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "WHEN_BUSY", AskAgain(times=2, first_pause=0.0))
    tried: list[str] = []
    await Evaluator.settled(evaluator_of(tried, 2))
    assert tried == [step for step in STEPS for _ in range(3)]


async def test_settled_fails_if_prefect_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "WHEN_BUSY", AskAgain(times=2, first_pause=0.0))
    with pytest.raises(PrefectUnreachable):
        await Evaluator.settled(evaluator_of([], 3))
