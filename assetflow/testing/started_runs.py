"""Run here what updates have started, and tell the evaluator how each run ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any, cast
from uuid import UUID

from prefect import Flow
from prefect.client.orchestration import get_client

from assetflow.errors import TimedOut
from assetflow.evaluator.process.evaluator import Evaluator
from assetflow.ledger import Reader
from assetflow.prefect_io.internals import needed_for
from assetflow.prefect_io.open_runs import run_end
from assetflow.testing.background import Allowance, Calls


@dataclass(frozen=True)
class StartedRun:
    """A run that updates started.

    Attributes:
        name: the name of its flow.
        started_by: the runs that made the updates it consumed, oldest first.
    """

    name: str
    started_by: tuple[UUID, ...]


def circle_to(run: UUID, runs: Mapping[UUID, StartedRun]) -> list[str]:
    """Return the names of the flows in a circle that led to this run, or an empty list if there is no circle."""
    names: list[str] = []
    seen: set[UUID] = set()
    current: UUID | None = run
    while current is not None and current not in seen:
        seen.add(current)
        name = runs[current].name
        if name in names:
            return [name, *reversed(names[names.index(name) :])]
        names.append(name)
        # The run that completed the condition is the last one.
        current = next((each for each in reversed(runs[current].started_by) if each in runs), None)
    return []


AnyFlow = Flow[..., Any]


class StartedRuns:
    """The flow runs that updates have started in a test.

    Parameters:
        reader: reads the test's ledger.
        calls: what the test asks of its evaluator.
        deployed: the deployed flows by deployment; the harness adds to it.
    """

    def __init__(self, reader: Reader, calls: Calls, deployed: Mapping[UUID, AnyFlow]) -> None:
        self._reader = reader
        self._calls = calls
        self._deployed = deployed
        self._executed = 0

    def execute(self, allowance: Allowance) -> bool:
        """Run what was started, or is retried, and has not run yet, oldest first; return whether there was anything.

        Raises:
            TimedOut: the time ended before all of them had run.
        """
        waiting = self._waiting()
        for done, (run, deployment) in enumerate(waiting):
            if allowance.left < 0:
                left = f"for {len(waiting) - done} more started runs to be run, after {self._executed} that were"
                raise self.circle(allowance) or allowance.exceeded(left)
            self._execute(run, self._deployed[deployment], allowance)
        return bool(waiting)

    def circle(self, allowance: Allowance) -> TimedOut | None:
        """Return an error that names the flows that keep starting each other, if such flows started the newest run."""
        runs = self._by_id()
        names = circle_to(next(iter(runs)), runs) if runs else []
        if not names:
            return None
        return TimedOut(
            f"Flows keep starting each other: {' → '.join(names)}. This went on for {allowance.seconds:g} s",
            fix="Let one of them be scheduled on something else, or look at single steps: settle(execute=False)",
        )

    def _waiting(self) -> list[tuple[UUID, UUID]]:
        """Return the runs that have not ended, with their deployments, oldest first."""
        return [
            (each.flow_run_id, each.deployment_id)
            for each in self._reader.decisions.running()
            if each.flow_run_id and each.deployment_id in self._deployed
        ]

    def _execute(self, run: UUID, flow: AnyFlow, allowance: Allowance) -> None:
        self._executed += 1
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(run)
        left = max(0.1, allowance.left)
        own = flow.timeout_seconds
        limited = flow if own is not None and own <= left else flow.with_options(timeout_seconds=left)
        with needed_for("The harness's execution of a started run"):
            from prefect.flow_engine import run_flow
        # A failed run is a result too, which the test reads from its state.
        state = finished(run_flow(limited, flow_run=flow_run, return_type="state"))
        end_of_run = run_end(state.type.value, state.name or "", state.timestamp)
        assert end_of_run is not None, "the run of a flow that was called has ended"

        async def tell(evaluator: Evaluator) -> None:
            await evaluator.run_watch.end(run, end_of_run)

        self._calls.make(tell, f"for the end of the run {flow_run.name} of {flow.name} to be known")
        if limited is not flow and state.name == "TimedOut":
            stopped = f"for the run {flow_run.name} of {flow.name} to end; it was stopped"
            raise self.circle(allowance) or allowance.exceeded(stopped)

    def _by_id(self) -> dict[UUID, StartedRun]:
        """Return the runs that decisions started, by id, newest first."""
        decisions = [each for each in self._reader.decisions.find(limit=10_000) if each.flow_run_id is not None]
        events = self._reader.decisions.events_of(decisions)
        return {
            cast(UUID, each.flow_run_id): StartedRun(
                each.consumer_name.partition("/")[0],
                tuple(event.source_flow_run.id for event in events[each.id] if event.source_flow_run),
            )
            for each in decisions
        }


def finished(result: Any) -> Any:
    """Return the result of a flow that was called, awaited if it has to be."""

    async def finish() -> Any:
        return await result

    return asyncio.run(finish()) if isawaitable(result) else result
