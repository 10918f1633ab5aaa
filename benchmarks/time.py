"""What time costs: updates of consumers with windows and debounce, instants, and a week of downtime.

Figures:
    cpu_ms_per_event_10k: the CPU time for an update, with 10,000 consumers that have a window and a debounce.
    cost_ratio_to_plain: the same by the CPU time for an update of the same consumers without window and debounce.
    instants_per_second: how many of their waits end in a second, each with its decision, by CPU time.
    cpu_ms_per_event_open_window: the CPU time for an update of a window that is open, with 100,000 updates in it.
    catch_up_seconds_7d: the CPU time for seven days of downtime, over hourly openings and the updates of that time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from assetflow.core.rules import opening_hours, registry
from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import Recording
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.values.timing import Intake, Opening
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from benchmarks import ring
from benchmarks.report import Figures, parser, tell

START = datetime(2026, 1, 1, tzinfo=UTC)
WEEK = timedelta(days=7)
AT_ONCE = 100
MEASURED = 1000
HOURLY = Opening(CronTriggerTimetable("0 * * * *"))


def figures(consumers: int, events: int, openings: int, updates: int, queued: int) -> Figures:
    """Measure each figure on a ledger of its own.

    Parameters:
        consumers, events: of the first three figures.
        openings, updates: the number of consumers with hourly openings, and the updates during the downtime.
        queued: the updates in the open window.
    """
    plain, _ = ring_with_time(consumers, events, ConsumerOptions)
    timed, instants = ring_with_time(consumers, events, with_window_and_debounce)
    return {
        "cpu_ms_per_event_10k": timed,
        "cost_ratio_to_plain": timed / plain,
        "instants_per_second": instants,
        "cpu_ms_per_event_open_window": open_window(queued),
        "catch_up_seconds_7d": week_of_downtime(openings, updates),
    }


def with_window_and_debounce(schedule: Schedule) -> ConsumerOptions:
    """Return a consumer whose updates count together within six hours, and that waits for an hour of quiet."""
    assert schedule.condition is not None
    window = Schedule(schedule.condition.within(timedelta(hours=6)))
    return ConsumerOptions(window, intake=Intake(debounce=timedelta(hours=1)))


def ring_with_time(consumers: int, events: int, options: Callable[[Schedule], ConsumerOptions]) -> tuple[float, float]:
    """Return the CPU milliseconds for an update of the ring, and how many decisions of its clock fit into a second.

    Parameters:
        options: returns the consumer of a schedule.
    """
    assets = ring.assets(consumers)
    came = at_times(ring.recordings(assets, events), START, timedelta(minutes=20))
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        deploy(ledger, (options(Schedule(each)) for each in ring.schedules(assets)))
        seconds = cpu(lambda: record(ledger, came, START + timedelta(minutes=20)))
        made = [0]
        passing = cpu(lambda: made.append(let_pass(ledger, START + timedelta(hours=3))))
    return 1000 * seconds / events, made[-1] / passing


def week_of_downtime(openings: int, updates: int) -> float:
    """Return the CPU seconds in which an evaluator goes through the openings and updates of seven days."""
    assets = ring.assets(openings)
    hours = (ConsumerOptions(Schedule(asset, opening=HOURLY)) for asset in assets)
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        deploy(ledger, hours)
        week = at_times(ring.recordings(assets, updates), START, WEEK)

        def catch_up() -> None:
            record(ledger, week, START + WEEK)
            let_pass(ledger, START + WEEK)

        return cpu(catch_up)


def open_window(queued: int) -> float:
    """Return the CPU milliseconds for an update of one asset, of which so many wait for another asset."""
    orders, customers = ring.assets(2)
    together = Schedule((orders & customers).within(timedelta(hours=6)))
    number = queued + MEASURED
    with TemporaryDirectory() as folder, Ledger.open(Path(folder) / "ledger.db") as ledger:
        deploy(ledger, [ConsumerOptions(together)])
        came = at_times(ring.recordings([orders], number), START, timedelta(hours=1))
        record(ledger, came[:queued], START + timedelta(hours=1))
        return 1000 * cpu(lambda: record(ledger, came[queued:], START + timedelta(hours=1))) / MEASURED


def deploy(ledger: Ledger, options: Iterable[ConsumerOptions]) -> None:
    """Add a consumer for each of the options, all in one transaction."""
    with ledger.transaction(START) as unit:
        for place, each in enumerate(options):
            consumer = Consumer(unit.next_consumer(), f"timed/{place:06}", uuid4(), each)
            unit.declare(consumer.id, declaration_to_text(FlowDeclaration(each)))
            registry.deploy(unit.state, consumer)
            opening_hours.follow(unit.state, None, consumer, START)


def at_times(recordings: list[Recording], start: datetime, span: timedelta) -> list[Recording]:
    """Return recordings that became durable one after the other within a span."""
    return [replace(each, durable=start + span * place / len(recordings)) for place, each in enumerate(recordings)]


def record(ledger: Ledger, recordings: list[Recording], now: datetime) -> None:
    """Record in batches, as an evaluator at work does."""
    for first in range(0, len(recordings), AT_ONCE):
        ledger.writer.events.record(recordings[first : first + AT_ONCE], now)


def let_pass(ledger: Ledger, until: datetime) -> int:
    """Go through all instants up to one, and return the number of decisions."""
    made = 0
    while True:
        passed = ledger.writer.clock.run(until, until)
        made += len(passed.decisions)
        if passed.next is None or passed.next > until:
            return made


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds that some work takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--consumers", type=int, default=10_000, help="consumers with a window and a debounce")
    options.add_argument("--events", type=int, default=10_000, help="updates of them")
    options.add_argument("--openings", type=int, default=100, help="consumers with hourly openings")
    options.add_argument("--updates", type=int, default=10_000, help="updates during the downtime")
    options.add_argument("--queued", type=int, default=100_000, help="updates in the open window")
    given = options.parse_args()
    tell(
        figures(given.consumers, given.events, given.openings, given.updates, given.queued),
        as_json=given.json,
    )


if __name__ == "__main__":
    main()
