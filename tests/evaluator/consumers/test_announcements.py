"""Changed states and missed deadlines are told to Prefect once each, until its log has them. Contract 8.13, 9.8."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.freshness.asset_freshness import StateChange
from assetflow.core.freshness.records import PolicyChange
from assetflow.core.values.announcements import MissedDeadlineRecord
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.consumers.announcements import POSTED_AGAIN
from assetflow.evaluator.consumers.announcements import Teller as RealTeller
from assetflow.evaluator.health import Health
from assetflow.prefect_io.own_events import deadline_missed, freshness_changed
from tests.evaluator.fakes import Clock, FakeLogs
from tests.evaluator.ledgers import START, LedgerHere

CHANGE = PolicyChange("s3://lake/board", "fail", START, None, FreshnessPolicy(timedelta(hours=1)))


class Outbox:
    """The ledger's outbox, in memory."""

    def __init__(self) -> None:
        self.changes: dict[int, Any] = {1: StateChange(1, CHANGE)}

    def to_tell(self, limit: int) -> Sequence[Any]:
        return list(self.changes.values())[:limit]

    def posted(self, numbers: Collection[int], now: datetime) -> None:
        self.changes |= {each: replace(self.changes[each], posted=now) for each in numbers}

    def stored(self, numbers: Collection[int], now: datetime) -> None:  # noqa: ARG002
        for each in numbers:
            del self.changes[each]


class Log(FakeLogs):
    """Prefect's event log, which stores what was posted when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.known: set[UUID] = set()
        self.is_away = False

    async def publish(self, events: Sequence[Mapping[str, Any]]) -> None:
        if self.is_away:
            raise PrefectUnreachable("away")
        await super().publish(events)

    async def stored(self, ids: Sequence[UUID], since: datetime, until: datetime) -> set[UUID]:
        assert START <= since <= until
        return self.known & {*ids}

    def store(self) -> None:
        self.known.update(self.posted)

    @property
    def posted(self) -> list[UUID]:
        return [UUID(each["id"]) for each in self.published]


class Teller:
    def __init__(self, ledger: LedgerHere) -> None:
        self.clock, self.log = Clock(), Log()
        self.ledger, self.outbox = ledger, Outbox()
        self.as_events: Any = freshness_changed

    async def look(self) -> int:
        """Look once, as a new process would."""
        outside = (self.log, Health(), self.clock)
        return await RealTeller("telling", self.ledger, self.outbox, self.as_events, *outside).look()


@pytest.fixture
def teller(ledger: LedgerHere) -> Teller:
    return Teller(ledger)


async def test_8_13_an_event_is_posted_once_and_marked_when_the_log_has_it(teller: Teller) -> None:
    number = teller.outbox.changes[1].id
    assert await teller.look() == 1
    assert await teller.look() == 1
    assert teller.log.posted == [number]
    teller.log.store()
    assert await teller.look() == 0
    assert teller.outbox.changes == {}
    assert await teller.look() == 0
    assert teller.log.posted == [number]


async def test_8_13_an_event_that_the_log_does_not_get_is_posted_again(teller: Teller) -> None:
    await teller.look()
    teller.clock.pass_(seconds=POSTED_AGAIN.total_seconds() + 1)
    assert await teller.look() == 1
    assert teller.log.posted == [teller.outbox.changes[1].id] * 2


async def test_8_13_nothing_is_lost_while_prefect_is_away(teller: Teller, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "assetflow.evaluator")
    teller.log.is_away = True
    with pytest.raises(PrefectUnreachable):
        await teller.look()
    teller.log.is_away = False
    teller.clock.pass_(seconds=POSTED_AGAIN.total_seconds() + 1)
    assert await teller.look() == 1
    assert len(teller.log.posted) == 1
    assert caplog.messages == [teller.outbox.changes[1].describe()]


async def test_a_missed_deadline_is_posted_until_the_log_of_prefect_has_it_and_logged_once(
    teller: Teller, caplog: pytest.LogCaptureFixture
) -> None:
    missed = MissedDeadlineRecord(
        *(1, "eu", START, START, "alert", 0, ()),
        number=1,
        consumer_name="report/daily",
        deployment_id=UUID(int=1),
        automation_id=None,
    )
    teller.outbox.changes, teller.as_events = {1: missed}, deadline_missed
    await teller.look()
    # Prefect has lost it.
    teller.clock.pass_(seconds=POSTED_AGAIN.total_seconds() + 1)
    await teller.look()
    assert [event["payload"]["partition_key"] for event in teller.log.published] == ["eu"] * 2
    teller.log.store()
    assert await teller.look() == 0
    assert caplog.text.count("report/daily missed the deadline of") == 1
