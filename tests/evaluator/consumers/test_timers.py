"""Each time of a timetable has one run, created ahead, whatever happens to consumer, Prefect and evaluator."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from assetflow.core.rules.timers import Lead, tick_id
from assetflow.core.time.timetables import CronTriggerTimetable, Tick
from assetflow.core.values.consumers import Automation, Consumer
from assetflow.errors import PrefectRefused, PrefectUnreachable
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


async def happens(works: Works, consumer: Consumer, steps: str) -> None:
    """Let things happen to a consumer: `+5` lets hours pass before a look, `look` looks at once."""
    for step in steps.split():
        match step:
            case "look":
                await works.look()
            case "restart":
                works.restart()
            case "pause" | "resume":
                works.ledger.switch(consumer, paused=step == "pause")
            case "hold" | "release":
                works.ledger.switch(consumer, held=step == "hold")
            case "change":
                works.ledger.reschedule(consumer, CronTriggerTimetable("15 * * * *", catchup=HOURLY.catchup))
            case "remove":
                works.ledger.here.writer.consumers.remove(consumer.id, works.clock.now)
            case "lose":
                works.ledger.here.writer.consumers.drop_timers([consumer.id])
            case "fail":
                works.runs.fails = [PrefectUnreachable("503")]
            case _:
                await works.look(hours=float(step))


@pytest.mark.rule("6.1")
@pytest.mark.parametrize(
    ("steps", "times"),
    [
        ("look look", "13:00 14:00 15:00"),
        ("look +1", "13:00 14:00 15:00 16:00"),
        # Those that were due while no evaluator ran are created.
        ("look restart +4", "13:00 14:00 15:00 16:00 17:00 18:00 19:00"),
        # A pause deletes upcoming runs, and its times are skipped; those of a hold run later.
        ("look pause +1", "13:00"),
        ("look pause +1 +5 resume restart look", "13:00 19:00 20:00 21:00"),
        ("look hold +1", "13:00"),
        ("look hold +1 restart +2 release look", "13:00 14:00 15:00 16:00 17:00 18:00"),
        ("look change +1", "13:00 14:15 15:15 16:15"),
        ("look lose change restart look", "13:15 14:15 15:15"),
        ("look remove look", ""),
        ("fail look", ""),
        ("fail look +0.01", "13:00 14:00 15:00"),
    ],
)
async def test_each_time_has_one_run_whatever_happens(works: Works, steps: str, times: str) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await happens(works, consumer, steps)
    assert works.runs.of(consumer) == times.split()
    assert works.told == [tick.time for tick in works.runs.order]
    assert works.runs.calls <= len(works.runs.order) + ("fail" in steps)


@pytest.mark.rule("6.1")
@pytest.mark.parametrize(
    ("steps", "times"),
    [
        # A worker took the run of 13:00; those of 14:00 and 15:00 were created in advance, and nobody took them.
        ("look restart +10", "00:00 01:00 13:00 22:00 23:00"),
        # Also after a hold, only the latest missed time runs.
        ("look hold look release +5", "17:00 18:00 19:00 20:00"),
    ],
)
async def test_only_the_latest_missed_time_runs_if_the_timetable_says_so(works: Works, steps: str, times: str) -> None:
    consumer = works.ledger.deploy(replace(HOURLY, catchup="latest"))
    works.runs.taken.add(START + timedelta(hours=1))
    await happens(works, consumer, steps)
    assert works.runs.of(consumer) == times.split()


async def test_a_crash_after_a_run_was_created_leads_to_no_second_run(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    await works.look()
    (record,) = works.ledger.timers.values()
    works.ledger.here.writer.consumers.keep_timers([replace(record, timer=record.timer.moved(works.clock.now))])
    works.restart()
    await works.look()
    assert works.runs.calls == 6
    assert works.runs.of(consumer) == ["13:00", "14:00", "15:00"]


async def test_runs_that_a_redeploy_would_create_differently_are_replaced(works: Works) -> None:
    consumer = works.ledger.deploy(HOURLY)
    works.inherited[consumer.deployment_id] = "parameters of today"
    await works.look()
    works.inherited[consumer.deployment_id] = "parameters of tomorrow"
    await works.look(hours=1)
    assert works.runs.calls == 6
    assert works.runs.of(consumer) == ["13:00", "14:00", "15:00", "16:00"]


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
