"""Each time of a timetable has one run, created ahead, whatever happens to consumer, Prefect and evaluator."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.timers import Lead, tick_id
from assetflow.core.time.timetables import CronPartitionTimetable, CronTriggerTimetable, PartitionedAtRuntime, Tick
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Automation, Consumer
from assetflow.core.values.schedule_values import AssetOrTimeSchedule
from assetflow.errors import PrefectRefused, PrefectUnreachable
from assetflow.evaluator.consumers import timers as timers_module
from assetflow.evaluator.consumers.timers import Timers
from assetflow.evaluator.health import Health
from assetflow.ledger.records import TimerRecord
from assetflow.prefect_io.flow_runs import TimeRuns
from tests.evaluator.fakes import Clock
from tests.evaluator.ledgers import START, LedgerHere
from tests.ledger.making import declared

HOURLY = CronTriggerTimetable("0 * * * *")
LEAD = Lead(within=timedelta(hours=3), at_least=2, at_most=5)


class TimedLedger:
    """The consumers and their timers in a ledger, which outlives the evaluators of a test."""

    def __init__(self, here: LedgerHere) -> None:
        self.here = here

    def deploy(self, schedule: object) -> Consumer:
        return self.here.deploy(f"flow/{uuid4()}", schedule)

    def switch(self, consumer: Consumer, **switches: bool) -> None:
        self.here.writer.consumers.switch(consumer.id, **switches, now=self.here.now())

    def reschedule(self, consumer: Consumer, schedule: object) -> None:
        self.here.writer.consumers.change(consumer.id, declared(schedule), self.here.now())

    @property
    def timers(self) -> dict[int, TimerRecord]:
        return {each.consumer: each for each in self.here.reader.consumers.timers()}


class MemoryRuns(TimeRuns):
    """Prefect's flow runs by idempotency key; only upcoming ones are withdrawn."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.made: dict[UUID, tuple[UUID, Tick]] = {}
        self.order: list[Tick] = []
        self.calls = 0
        self.taken: set[datetime] = set()
        self.fails: list[Exception] = []
        self.broken: dict[UUID, Exception] = {}

    async def create(self, consumer: Consumer, tick: Tick, automation: Automation | None) -> UUID:  # noqa: ARG002
        self.calls += 1
        if self.fails:
            raise self.fails.pop(0)
        if consumer.deployment_id in self.broken:
            raise self.broken[consumer.deployment_id]
        number = tick_id(consumer.deployment_id, tick.time)
        if number not in self.made:
            self.made[number] = (consumer.deployment_id, tick)
            self.order.append(tick)
        return number

    async def withdraw(self, deployment_id: UUID, now: datetime) -> int:
        gone = [key for key, (deployment, tick) in self.made.items() if deployment == deployment_id and tick.time > now]
        for key in gone:
            del self.made[key]
        return len(gone)

    async def skip_missed(self, deployment_id: UUID, now: datetime) -> int:
        mine = {key: tick.time for key, (deployment, tick) in self.made.items() if deployment == deployment_id}
        latest = max((time for time in mine.values() if time <= now), default=now)
        gone = [key for key, time in mine.items() if time < latest and time not in self.taken]
        for key in gone:
            del self.made[key]
        return len(gone)

    def of(self, consumer: Consumer) -> list[str]:
        """Return the times of day of a consumer's runs."""
        times = [tick.time for deployment, tick in self.made.values() if deployment == consumer.deployment_id]
        return sorted(f"{time:%H:%M}" for time in times)


class Works:
    """The timers of an evaluator, on a ledger and a Prefect in memory."""

    def __init__(self, ledger: LedgerHere) -> None:
        self.clock = Clock()
        self.clock.now = START + timedelta(minutes=30)
        ledger.now = self.clock
        self.ledger = TimedLedger(ledger)
        self.runs = MemoryRuns(self.clock)
        self.health = Health()
        self.inherited: dict[UUID, str] = {}
        self.told: list[datetime] = []
        self.restart()

    def restart(self) -> None:
        """Start another evaluator on the same ledger."""
        self.timers = Timers(
            self.ledger.here,
            self.runs,
            lambda deployment: self.inherited.get(deployment, ""),
            self.health,
            self.clock,
            self._tell,
            LEAD,
        )

    def _tell(self, consumer: Consumer, tick: Tick, run: UUID) -> None:  # noqa: ARG002
        self.told.append(tick.time)

    async def look(self, **later: float) -> None:
        self.clock.pass_(**later)
        await self.timers.look()


@pytest.fixture
def works(ledger: LedgerHere) -> Works:
    return Works(ledger)


async def test_runs_are_created_ahead_and_topped_up(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    assert works.runs.of(consumer) == ["13:00", "14:00", "15:00"]
    await works.look()
    assert works.runs.calls == 3
    await works.look(hours=1)
    assert works.runs.of(consumer) == ["13:00", "14:00", "15:00", "16:00"]
    assert works.told == [tick.time for tick in works.runs.order]


async def test_rare_times_have_runs_too_and_frequent_ones_are_limited(works: Works) -> None:
    weekly = works.ledger.deploy(CronTriggerTimetable("0 0 * * 1"))
    often = works.ledger.deploy(CronTriggerTimetable("* * * * *"))
    await works.look(seconds=10)
    assert works.runs.of(weekly) == ["00:00"] * LEAD.at_least
    assert len(works.runs.of(often)) == LEAD.at_most


async def test_a_timetable_without_times_has_no_runs(works: Works) -> None:
    works.ledger.deploy(Asset("a"))
    works.ledger.deploy(PartitionedAtRuntime())
    await works.look()
    assert works.runs.made == works.ledger.timers == {}


async def test_a_time_equal_to_that_of_the_deploy_has_a_run(works: Works) -> None:
    works.clock.now = START
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    assert works.runs.of(consumer)[0] == "12:00"


@pytest.mark.rule("6.1")
async def test_runs_that_were_due_while_no_evaluator_ran_are_created_oldest_first(works: Works) -> None:
    first, second = works.ledger.deploy(HOURLY), works.ledger.deploy(CronTriggerTimetable("15 * * * *"))
    await works.look()
    works.restart()
    works.runs.order.clear()
    await works.look(hours=10)
    times = [tick.time for tick in works.runs.order]
    assert times == sorted(times)
    assert works.runs.of(first) == sorted(f"{hour % 24:02}:00" for hour in range(13, 26))
    assert works.runs.of(second) == sorted(f"{hour % 24:02}:15" for hour in range(13, 26))


@pytest.mark.rule("6.1")
async def test_only_the_latest_missed_time_runs_if_the_timetable_says_so(works: Works) -> None:
    consumer = works.ledger.deploy(replace(HOURLY, catchup="latest"))
    await works.look()
    works.runs.taken.add(START + timedelta(hours=1))
    works.restart()
    works.runs.order.clear()
    # Those of 14:00 and 15:00 were created in advance, and no worker took them.
    await works.look(hours=10)
    assert works.runs.of(consumer) == ["00:00", "01:00", "13:00", "22:00", "23:00"]
    assert [f"{tick.time:%H:%M}" for tick in works.runs.order] == ["22:00", "23:00", "00:00", "01:00"][:4]


async def test_a_late_run_is_skipped_when_its_next_time_comes(works: Works) -> None:
    consumer = works.ledger.deploy(replace(HOURLY, catchup="latest"))
    for expected in (["13:00"], ["13:00"], ["14:00"], ["15:00"]):
        await works.look()
        assert works.runs.of(consumer)[:1] == expected
        works.clock.pass_(hours=1)


async def test_after_a_hold_only_the_latest_missed_time_runs_if_the_timetable_says_so(works: Works) -> None:
    consumer = works.ledger.deploy(replace(HOURLY, catchup=False))
    await works.look()
    works.ledger.switch(consumer, held=True)
    await works.look()
    works.ledger.switch(consumer, held=False)
    await works.look(hours=5)
    assert works.runs.of(consumer)[:2] == ["17:00", "18:00"]


async def test_a_late_run_stays_while_no_later_time_has_one(works: Works) -> None:
    consumer = works.ledger.deploy(replace(HOURLY, catchup="latest"))
    await works.look()
    works.ledger.reschedule(consumer, CronTriggerTimetable("15 * * * *", catchup="latest"))
    await works.look(minutes=50)
    assert works.runs.of(consumer)[:2] == ["13:00", "14:15"]


async def test_a_long_backlog_is_created_in_portions(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timers_module, "CREATED_PER_LOOK", 10)
    works.ledger.deploy(HOURLY)
    await works.look()
    works.restart()
    works.runs.calls = 0
    await works.look(days=2)
    assert works.runs.calls == 10
    for _ in range(10):
        await works.look()
    assert len(works.runs.made) == 48 + 3


async def test_a_crash_after_a_run_was_created_leads_to_no_second_run(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    (record,) = works.ledger.timers.values()
    works.ledger.here.writer.consumers.keep_timers([replace(record, timer=record.timer.moved(works.clock.now))])
    works.restart()
    await works.look()
    assert works.runs.calls == 6
    assert works.runs.of(consumer) == ["13:00", "14:00", "15:00"]


async def test_the_runs_of_a_lost_ledger_are_replaced(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    works.ledger.here.writer.consumers.drop_timers([consumer.id])
    works.ledger.reschedule(consumer, CronTriggerTimetable("15 * * * *"))
    works.restart()
    await works.look()
    assert works.runs.of(consumer) == ["13:15", "14:15", "15:15"]


@pytest.mark.rule("6.1")
async def test_a_pause_deletes_upcoming_runs_and_its_times_are_skipped(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    works.ledger.switch(consumer, paused=True)
    await works.look(hours=1)
    assert works.runs.of(consumer) == ["13:00"]
    await works.look(hours=5)
    works.ledger.switch(consumer, paused=False)
    works.restart()
    await works.look()
    assert works.runs.of(consumer) == ["13:00", "19:00", "20:00", "21:00"]


async def test_a_hold_deletes_upcoming_runs_and_its_times_run_later(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    works.ledger.switch(consumer, held=True)
    await works.look(hours=1)
    assert works.runs.of(consumer) == ["13:00"]
    works.restart()
    await works.look(hours=2)
    works.ledger.switch(consumer, held=False)
    await works.look()
    assert works.runs.of(consumer) == ["13:00", "14:00", "15:00", "16:00", "17:00", "18:00"]


async def test_another_timetable_replaces_the_upcoming_runs(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    works.ledger.reschedule(consumer, CronTriggerTimetable("15 * * * *"))
    await works.look(hours=1)
    assert works.runs.of(consumer) == ["13:00", "14:15", "15:15", "16:15"]


@pytest.mark.rule("6.1")
async def test_a_changed_condition_keeps_the_upcoming_runs(works: Works) -> None:
    consumer = works.ledger.deploy(AssetOrTimeSchedule(timetable=HOURLY, assets=Asset("a")))
    await works.look()
    works.ledger.reschedule(consumer, AssetOrTimeSchedule(timetable=HOURLY, assets=Asset("b")))
    await works.look()
    assert works.runs.calls == 3


@pytest.mark.parametrize("restarts", [False, True])
async def test_removing_the_timetable_deletes_the_upcoming_runs(works: Works, restarts: bool) -> None:
    consumer = works.ledger.deploy(AssetOrTimeSchedule(timetable=HOURLY, assets=Asset("a")))
    other = works.ledger.deploy(HOURLY)
    await works.look()
    works.ledger.reschedule(consumer, Asset("a"))
    if restarts:
        works.restart()
    await works.look()
    assert works.runs.of(consumer) == []
    assert works.runs.of(other) == ["13:00", "14:00", "15:00"]
    assert list(works.ledger.timers) == [other.id]


async def test_removing_a_consumer_deletes_its_upcoming_runs(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    works.ledger.here.writer.consumers.remove(consumer.id, works.clock.now)
    await works.look()
    assert works.runs.made == works.ledger.timers == {}


async def test_runs_that_a_redeploy_would_create_differently_are_replaced(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    works.inherited[consumer.deployment_id] = "parameters of today"
    await works.look()
    works.inherited[consumer.deployment_id] = "parameters of tomorrow"
    await works.look(hours=1)
    assert works.runs.calls == 6
    assert works.runs.of(consumer) == ["13:00", "14:00", "15:00", "16:00"]


async def test_the_values_of_a_deployment_may_become_known_later(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    works.inherited[consumer.deployment_id] = "parameters"
    await works.look()
    assert works.runs.calls == 3


@pytest.mark.rule("5.7")
async def test_keys_are_those_of_the_ticks_not_of_now(works: Works) -> None:
    works.ledger.deploy(CronPartitionTimetable("0 * * * *", key_format="%Y-%m-%dT%H"))
    await works.look()
    works.restart()
    await works.look(hours=6)
    assert [tick.partition_key for tick in works.runs.order] == [
        f"{tick.time:%Y-%m-%dT%H}" for tick in works.runs.order
    ]
    assert len(works.runs.order) == 9


async def test_no_time_is_lost_while_prefect_is_down(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    works.runs.fails = [PrefectUnreachable("503")]
    await works.look()
    assert works.runs.of(consumer) == []
    await works.look(seconds=10)
    assert works.runs.of(consumer) == ["13:00", "14:00", "15:00"]


async def test_times_work_again_when_prefect_has_answered_and_not_before(works: Works) -> None:
    works.ledger.deploy(HOURLY)
    works.runs.fails = [PrefectUnreachable("down")] * 2
    works.health.down("times", PrefectUnreachable("down"))
    for seconds, troubles in ((0, 1), (0.5, 1), (2, 1), (2, 0)):
        works.clock.pass_(seconds=seconds)
        await works.timers.look()
        assert len(works.health.troubles) == troubles


async def test_a_prefect_that_is_down_is_not_asked_for_each_consumer(works: Works) -> None:
    for _ in range(10):
        works.ledger.deploy(HOURLY)
    works.runs.fails = [PrefectUnreachable("down")] * 10
    with pytest.raises(PrefectUnreachable):
        await works.look()
    assert works.runs.calls == 3


async def test_a_deployment_that_cannot_run_does_not_hold_up_the_others_and_loses_no_time(works: Works) -> None:
    broken, whole = works.ledger.deploy(HOURLY), works.ledger.deploy(HOURLY)
    works.runs.broken[broken.deployment_id] = PrefectRefused("409: parameters")
    await works.look()
    assert works.runs.of(whole) == ["13:00", "14:00", "15:00"]
    assert "409" in str(works.health.troubles)
    works.runs.broken.clear()
    await works.look(hours=4)
    await works.look()
    assert works.runs.of(broken)[:4] == ["13:00", "14:00", "15:00", "16:00"]
    assert works.health.troubles == {}


async def test_the_runs_created_before_a_failure_are_stored(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    works.runs.fails = []
    await works.look()
    works.runs.fails = [PrefectUnreachable("down")]
    await works.look(hours=1)
    assert works.ledger.timers[consumer.id].timer.after == datetime(2026, 11, 20, 15, tzinfo=UTC)
