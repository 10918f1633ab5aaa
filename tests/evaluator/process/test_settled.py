"""`settled` retries its steps while Prefect is busy for a moment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.process.evaluator import Evaluator, Options
from assetflow.prefect_io import rest
from assetflow.prefect_io.answers import AskAgain

STEPS = ["registry.sync", "timers.settled", "catch_up.sweep", "clock.look"]


class Part:
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


def evaluator(tried: list[str], failures: int) -> Any:
    async def idle() -> bool:
        return True

    parts = {name: Part(name, tried, failures) for name in ("registry", "timers", "catch_up", "clock")}
    return SimpleNamespace(_options=Options(), _is_idle=idle, **parts)


async def test_each_step_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "WHEN_BUSY", AskAgain(times=2, first_pause=0.0))
    tried: list[str] = []
    await Evaluator.settled(evaluator(tried, 2))
    assert tried == [step for step in STEPS for _ in range(3)]


async def test_settled_fails_if_prefect_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "WHEN_BUSY", AskAgain(times=2, first_pause=0.0))
    with pytest.raises(PrefectUnreachable):
        await Evaluator.settled(evaluator([], 3))
