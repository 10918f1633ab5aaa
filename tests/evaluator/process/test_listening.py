"""What another process commits to the ledger wakes all parts of the evaluator that follow it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from assetflow.evaluator.health import Health
from assetflow.evaluator.process.evaluator import Evaluator


class Part:
    def __init__(self) -> None:
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1


class Ledger:
    @asynccontextmanager
    async def commits(self) -> AsyncGenerator[AsyncIterator[None]]:
        async def three() -> AsyncIterator[None]:
            for _ in range(3):
                yield

        yield three()


async def test_each_commit_wakes_launcher_clock_and_listeners() -> None:
    parts: dict[str, Any] = {name: Part() for name in ("launcher", "clock", "_listeners")}
    evaluator = SimpleNamespace(_ledger=Ledger(), health=Health(), **parts)
    await Evaluator._listen_to_ledger(cast(Evaluator, evaluator))
    assert {name: part.woken for name, part in parts.items()} == dict.fromkeys(parts, 3)
