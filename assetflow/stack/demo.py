"""The demo: run the pipelines of this repository on real data in a stack of its own, and check every event."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import cast

from assetflow.errors import StackFailed, TimedOut
from assetflow.ledger.read.reader import Reader
from assetflow.stack.calls import POLL_SECONDS, FlowRun, PrefectCalls
from assetflow.stack.environment import StackEnvironment
from assetflow.stack.stack import Stack, Tell
from assetflow.stack.summary import DeployedConsumer, Json, Story, deployed_now

RUN_SECONDS = 300.0
SETTLE_SECONDS = 600.0
# The same value as in flows/partitions.py, which belongs to the project, so that the package cannot import it.
LATE_HOUR = "2013-01-04T23"


@dataclass(frozen=True)
class DemoResult:
    """The result of the demo, as a story and as JSON (also in `summary.json`)."""

    story: Story
    summary: Json


class Demo:
    """Runs the flows of `prefect.yaml` in a fresh stack, and decides again from the recordings to compare.

    Parameters:
        environment: the stack's folders and port; the demo empties the stack's folder first.
        tell: called with a line for each step.
    """

    def __init__(self, environment: StackEnvironment, tell: Tell) -> None:
        self.environment = environment
        self._tell = tell

    def run(self, look: Callable[[PrefectCalls], None] = lambda _: None) -> DemoResult:
        """Run the whole demo.

        Parameters:
            look: called when everything has run, while the stack is still up.

        Raises:
            JavaNotFound: Spark has no Java to run on.
            StackFailed, TimedOut: a process or a run failed; the stack is stopped.
        """
        started = time.monotonic()
        if self.environment.has_spark_server:
            self.environment.check_java()
        stack = Stack(self.environment, self._tell, fresh=True)
        with stack:
            with stack.watched(), PrefectCalls(self.environment.api_url) as calls:
                deployed = self._deployed()
                # The feed is looked at while the lake is filled.
                calls.start("watch-feed/lake")
                self._produce(calls)
                self._follow_feed(calls)
                self._push_bugfix(calls, stack)
                story = self._settle(calls, [*deployed, *self._deployed(deployed)])
                look(calls)
            results, held_back = self._check_results(), self._held_back()
        summary = story.as_json() | {"held_back": held_back, "results": results}
        summary["seconds"] = round(time.monotonic() - started, 1)
        summary["ok"] = bool(summary["ok"]) and bool(results["ok"])
        (self.environment.home / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
        return DemoResult(story, summary)

    def _produce(self, calls: PrefectCalls) -> None:
        self._tell("Starting orders-producer and ingest-flights through Prefect's API")
        first = [calls.start("orders-producer/shop"), calls.start("ingest-flights/lake")]
        for run in first:
            calls.wait_for_run(run, RUN_SECONDS)
        self._hold_back(calls)
        self._tell("Waiting for carrier-report and board, which run by themselves")
        self._wait_for_consumer(calls, "carrier-report/lake")
        # board runs again for the two other reports: the later run has to be the one that writes last.
        self._wait_for_consumer(calls, "board/lake")
        self._tell("Starting ingest-weather and ingest-planes")
        for run in [calls.start("ingest-weather/lake"), calls.start("ingest-planes/lake")]:
            calls.wait_for_run(run, RUN_SECONDS)
        self._tell("Starting flights-daily and weather-hourly: three days, of which one lacks an hour")
        for run in [calls.start("flights-daily/lake"), calls.start("weather-hourly/lake")]:
            calls.wait_for_run(run, RUN_SECONDS)
        self._tell(f"Starting weather-hourly for {LATE_HOUR}, the late hour that completes its day")
        calls.wait_for_run(calls.start("weather-hourly/lake", partition_key=LATE_HOUR), RUN_SECONDS)

    def _hold_back(self, calls: PrefectCalls) -> None:
        """Let a check hold data back, and wait until the ledger knows."""
        self._tell("Starting ingest-arrivals: some flights never arrived, so a check holds the data back")
        calls.wait_for_end(calls.start("ingest-arrivals/lake"), RUN_SECONDS)
        end = time.monotonic() + RUN_SECONDS
        while not self._held_back():
            if time.monotonic() > end:
                raise TimedOut(f"no check failed in {RUN_SECONDS:.0f} s", fix=f"Read {self.environment.logs}")
            time.sleep(POLL_SECONDS)

    def _held_back(self) -> list[str]:
        """Return what checks have held back, in words."""
        with self._reader() as reader:
            found = reader.checks.failed(datetime.min.replace(tzinfo=UTC))
            return [each.describe() for each in found if each.held_back]

    def _follow_feed(self, calls: PrefectCalls) -> None:
        """Let a day arrive: the tables follow, the summary has a day's time."""
        self._wait_for_consumer(calls, "delay-summary/lake")
        self._tell("Delivering a day of flights to the feed: no table has a schedule, a look at it will do")
        self._run_module("flows.feed", "next-day")
        calls.wait_for_run(calls.start("watch-feed/lake"), RUN_SECONDS)
        self._wait_for_tables(calls, runs=2)

    def _push_bugfix(self, calls: PrefectCalls, stack: Stack) -> None:
        """Deploy another code version: what depends on it is built again, although no data has come."""
        self._tell("Deploying a bugfix: delays has another code version")
        self._run_module("flows.feed", "bugfix")
        stack.deploy()
        self._wait_for_tables(calls, runs=3)

    def _wait_for_tables(self, calls: PrefectCalls, runs: int) -> None:
        for name in ("delays-by-hour/lake", "delays-by-day/lake"):
            self._wait_for_consumer(calls, name, runs)

    def _deployed(self, before: Sequence[DeployedConsumer] = ()) -> list[DeployedConsumer]:
        """Return what was deployed since."""
        with self._reader() as reader:
            return deployed_now(reader, before)

    def _wait_for_consumer(self, calls: PrefectCalls, name: str, count: int = 1) -> None:
        """Wait until so many runs of the consumer have ended."""
        end = time.monotonic() + RUN_SECONDS
        while True:
            with self._reader() as reader:
                consumer = reader.consumers.named(name)
                decisions = reader.decisions.find(consumer=consumer.consumer.id) if consumer else []
            runs = [decision.flow_run_id for decision in decisions if decision.flow_run_id]
            if len(runs) >= count:
                calls.wait_for_run(runs[0], RUN_SECONDS)
                return
            if time.monotonic() > end:
                told = f"{name} had {len(runs)} of {count} runs after {RUN_SECONDS:.0f} s"
                raise TimedOut(told, fix=f"Read {self.environment.logs}")
            time.sleep(POLL_SECONDS)

    def _settle(self, calls: PrefectCalls, deployed: Sequence[DeployedConsumer]) -> Story:
        """Wait until everything is done: runs have ended, recordings are in the ledger, decisions have their runs."""
        self._tell("Waiting until all runs that follow have ended")
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            runs = calls.flow_runs()
            with self._reader() as reader:
                missing = left_to_do(runs, calls, reader)
                if not missing and len(calls.flow_runs()) == len(runs):
                    return Story.read(reader, runs, deployed)
            if time.monotonic() > end:
                left = missing or "new runs still came"
                raise TimedOut(f"after {SETTLE_SECONDS:.0f} s {left}", fix=f"Read {self.environment.logs}")
            time.sleep(POLL_SECONDS)

    def _check_results(self) -> Json:
        """Count the source files again without Spark, and compare (`flows/check.py`)."""
        self._tell("Counting the source files again")
        printed = self._run_module("flows.check", may_fail=True)
        try:
            return cast(Json, json.loads(printed))
        except ValueError as error:
            raise StackFailed(f"flows.check printed no result: {printed[-500:]}") from error

    def _run_module(self, *module: str, may_fail: bool = False) -> str:
        """Run a module of the project, and return what it prints.

        Raises:
            StackFailed: it failed, unless it may.
        """
        done = subprocess.run(
            [sys.executable, "-m", *module],
            env=self.environment.processes_env,
            cwd=self.environment.project,
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode and not (may_fail and done.stdout):
            raise StackFailed(f"{' '.join(module)} failed: {done.stderr[-500:]}")
        return done.stdout

    def _reader(self) -> Reader:
        return Reader.open(self.environment.home / "ledger.db")


def left_to_do(runs: Sequence[FlowRun], calls: PrefectCalls, reader: Reader) -> str:
    """Return a sentence about what is not done yet, or an empty text."""
    if going := sum(not run.has_ended for run in runs):
        return f"{going} of {len(runs)} runs had not ended"
    stored = calls.recordings()
    known = reader.events.known(chain.from_iterable(stored))
    if unrecorded := sum(known.isdisjoint(ids) for ids in stored):
        return f"the recordings of {unrecorded} tasks were not in the ledger; check that the evaluator is running"
    if undelivered := len(reader.decisions.waiting()):
        return f"{undelivered} decisions had no run"
    kept = (each for each in reader.decisions.find(limit=1_000_000) if each.kind in ("eager", "lazy"))
    if unheard := sum(each.ended is None for each in kept):
        return f"the ledger had not heard the end of {unheard} runs"
    return ""
