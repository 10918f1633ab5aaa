"""What tells Prefect of changed states: once each, until Prefect's log has it. Contract 8.13."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from assetflow.core.freshness.asset_freshness import StateChange
from assetflow.core.freshness.records import PolicyChange
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.consumers.announcements import POSTED_AGAIN, TOLD_AT_ONCE
from assetflow.evaluator.consumers.announcements import Teller as RealTeller
from assetflow.evaluator.health import Health
from assetflow.prefect_io.logs import EventLog
from assetflow.prefect_io.own_events import freshness_changed
from tests.evaluator.fakes import Clock
from tests.evaluator.ledgers import START, LedgerHere

CHANGE = PolicyChange("s3://lake/board", "fail", START, None, FreshnessPolicy(timedelta(hours=1)))


class Outbox:
    """The ledger's outbox, in memory."""

    def __init__(self) -> None:
        self.changes = {1: StateChange(1, CHANGE)}

    def to_tell(self, limit: int) -> Sequence[StateChange]:
        return list(self.changes.values())[:limit]

    def posted(self, numbers: Collection[int], now: datetime) -> None:
        self.changes |= {each: replace(self.changes[each], posted=now) for each in numbers}

    def stored(self, numbers: Collection[int], now: datetime) -> None:  # noqa: ARG002
        for each in numbers:
            del self.changes[each]


class Log:
    """Prefect's log, which stores what was posted when the test says so."""

    def __init__(self) -> None:
        self.posted: list[UUID] = []
        self.known: set[UUID] = set()
        self.is_away = False

    async def publish(self, events: Sequence[Mapping[str, Any]]) -> None:
        if self.is_away:
            raise PrefectUnreachable("away")
        self.posted += [UUID(each["id"]) for each in events]

    async def stored(self, ids: Sequence[UUID], since: datetime, until: datetime) -> Collection[UUID]:
        assert START <= since <= until
        return self.known & {*ids}


class Teller:
    def __init__(self, ledger: LedgerHere) -> None:
        self.clock, self.log = Clock(), Log()
        self.ledger, self.outbox = ledger, Outbox()

    async def look(self) -> int:
        """Look once, as a new process would."""
        outside = (cast(EventLog, self.log), Health(), self.clock)
        return await RealTeller("telling", self.ledger, self.outbox, freshness_changed, *outside).look()


@pytest.fixture
def teller(ledger: LedgerHere) -> Teller:
    return Teller(ledger)


async def test_8_13_an_event_is_posted_once_and_marked_when_the_log_has_it(teller: Teller) -> None:
    number = teller.outbox.changes[1].id
    assert await teller.look() == 1
    assert await teller.look() == 1
    assert teller.log.posted == [number]
    teller.log.known.add(number)
    assert await teller.look() == 0
    assert teller.outbox.changes == {}
    assert await teller.look() == 0
    assert teller.log.posted == [number]


async def test_8_13_an_event_that_the_log_does_not_get_is_posted_again(teller: Teller) -> None:
    await teller.look()
    teller.clock.pass_(seconds=POSTED_AGAIN.total_seconds() + 1)
    assert await teller.look() == 1
    assert teller.log.posted == [teller.outbox.changes[1].id] * 2


async def test_8_13_the_next_changes_are_told_of_as_soon_as_the_log_has_the_first_ones(teller: Teller) -> None:
    moments = {number: START + timedelta(microseconds=number) for number in range(TOLD_AT_ONCE + 1)}
    teller.outbox.changes = {each: StateChange(each, replace(CHANGE, at=at)) for each, at in moments.items()}
    assert await teller.look() == TOLD_AT_ONCE
    teller.log.known.update(teller.log.posted)
    assert await teller.look() > 0
    assert await teller.look() == 1
    assert len(teller.log.posted) == TOLD_AT_ONCE + 1


async def test_8_13_nothing_is_lost_while_prefect_is_away(teller: Teller) -> None:
    teller.log.is_away = True
    with pytest.raises(PrefectUnreachable):
        await teller.look()
    teller.log.is_away = False
    teller.clock.pass_(seconds=POSTED_AGAIN.total_seconds() + 1)
    assert await teller.look() == 1
    assert len(teller.log.posted) == 1
