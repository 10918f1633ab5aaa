"""The clock posts the events of missed deadlines until Prefect's log has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from assetflow.evaluator.consumers.clock import POSTED_AGAIN, Clock
from assetflow.evaluator.health import Health
from assetflow.ledger.records import MissedDeadlineRecord
from assetflow.ledger.write.consumers import TimePassed
from tests.evaluator.fakes import Clock as Now
from tests.evaluator.fakes import FakeLogs
from tests.evaluator.ledgers import START, LedgerHere


class Deadlines:
    """The deadlines of a ledger that were missed and are not announced yet."""

    def __init__(self, *numbers: int) -> None:
        self.waiting = [
            MissedDeadlineRecord(
                *(1, f"{number}", START, START, "alert", 0, ()),
                number=number,
                consumer_name="report/daily",
                deployment_id=UUID(int=1),
                automation_id=None,
            )
            for number in numbers
        ]

    def run(self, until: datetime, now: datetime) -> TimePassed:  # noqa: ARG002
        return TimePassed([], None)

    def to_announce(self, limit: int) -> Sequence[MissedDeadlineRecord]:
        return self.waiting[:limit]

    def announced(self, numbers: Sequence[int], now: datetime) -> None:  # noqa: ARG002
        self.waiting = [each for each in self.waiting if each.number not in numbers]


class Log(FakeLogs):
    """Prefect's event log, which stores what was published when a test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: set[UUID] = set()

    async def stored(self, ids: Sequence[UUID], since: datetime, until: datetime) -> set[UUID]:  # noqa: ARG002
        return self.kept & set(ids)

    def store(self) -> None:
        self.kept |= {UUID(event["id"]) for event in self.published}


def keys(events: Collection[Mapping[str, Any]]) -> list[str]:
    return [event["payload"]["partition_key"] for event in events]


class Running:
    def __init__(self, ledger: LedgerHere, *numbers: int) -> None:
        self.ledger = ledger
        self.deadlines = Deadlines(*numbers)
        self.ledger.writer.clock = cast(Any, self.deadlines)
        self.log = Log()
        self.now = Now()
        self.clock = self.new_clock()

    def new_clock(self) -> Clock:
        return Clock(
            self.ledger,
            self.log,
            self.now,
            lambda: None,
            Health(),
            self.now,
            lambda: None,
            lambda: None,
            timedelta(),
        )


async def test_a_missed_deadline_is_posted_until_the_log_of_prefect_has_it(
    ledger: LedgerHere, caplog: pytest.LogCaptureFixture
) -> None:
    running = Running(ledger, 1, 2)
    for _ in range(2):
        await running.clock.look()
    assert keys(running.log.published) == ["1", "2"]
    assert len(running.deadlines.waiting) == 2
    # Prefect has lost them.
    running.now.now += POSTED_AGAIN + timedelta(seconds=1)
    await running.clock.look()
    assert keys(running.log.published) == ["1", "2"] * 2
    running.log.store()
    await running.clock.look()
    assert running.deadlines.waiting == []
    assert caplog.text.count("missed the deadline") == 2


async def test_the_next_evaluator_does_not_post_what_the_log_has(ledger: LedgerHere) -> None:
    running = Running(ledger, 1)
    await running.clock.look()
    running.log.store()
    await running.new_clock().look()
    assert len(running.log.published) == 1
    assert running.deadlines.waiting == []
