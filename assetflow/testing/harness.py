"""A harness for tests of schedules: deploy flows, run a producer, see which flows ran, and with which events."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from inspect import isawaitable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, cast
from unittest.mock import patch
from uuid import UUID, uuid4

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound
from prefect.flow_engine import run_flow
from prefect.testing.utilities import prefect_test_harness

from assetflow.core.assets import Asset, AssetAlias
from assetflow.core.events import AssetEvent, Origin, Recording, check_extra
from assetflow.errors import TimedOut, UnknownConsumer
from assetflow.evaluator.evaluator import Evaluator, utc_now
from assetflow.ledger import Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.testing.background import BackgroundEvaluator

AnyFlow = Flow[..., Any]

SECONDS_TO_SETTLE = 30.0


@dataclass(frozen=True)
class ConsumerRun:
    """A flow run that updates of assets started.

    Attributes:
        events: what it consumed, oldest first.
        uris: their URIs, oldest first.
        partition_key: its key, if its flow is partitioned.
        state: the name of its last state ("Completed"); "" when it has not ended.
    """

    id: UUID
    events: tuple[AssetEvent, ...]
    partition_key: str | None
    state: str

    @property
    def uris(self) -> list[str]:
        return [event.uri for event in self.events]


@contextmanager
def harness(*, use_running_server: bool = False) -> Generator[Harness]:
    """A Prefect server, an evaluator in this process and an empty ledger, for as long as the block lasts.

        from assetflow.testing import harness

        def test_the_report_runs_when_both_are_updated():
            with harness() as h:
                h.deploy(report)  # @flow(schedule=orders & customers)
                h.run(produce_orders)
                assert h.settle().runs(report) == []
                h.run(produce_customers)
                (run,) = h.settle().runs(report)
                assert run.uris == ["s3://shop/orders", "s3://shop/customers"]

    A server takes 5 to 20 seconds to start. To start one for all tests, use Prefect's `prefect_test_harness()` in a
    fixture of the session, and `use_running_server=True` here. What was deployed in the block is deleted at its end.

    Parameters:
        use_running_server: use the server that PREFECT_API_URL names instead of a temporary one. It must be one for
            tests: the harness becomes its only evaluator.

    Raises:
        PrefectUnreachable: the running server is to be used, and there is none.
    """
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="assetflow-harness-")))
        if not use_running_server:
            stack.enter_context(prefect_test_harness(server_startup_timeout=90))
        stack.enter_context(patch.dict(os.environ, {"ASSETFLOW_HOME": str(home), "ASSETFLOW_DATABASE_URL": ""}))
        evaluator = stack.enter_context(BackgroundEvaluator(home / "ledger.db"))
        reader = stack.enter_context(Reader.open(home / "ledger.db"))
        made = Harness(evaluator, reader)
        stack.callback(made.remove_deployments)
        yield made


class Harness:
    """What a test does with its flows; made by `harness()`."""

    def __init__(self, evaluator: BackgroundEvaluator, reader: Reader) -> None:
        self._evaluator = evaluator
        self._reader = reader
        self._deployed: dict[UUID, AnyFlow] = {}
        self._executed: set[UUID] = set()

    def deploy(self, flow: AnyFlow, name: str = "test", **options: Any) -> str:
        """Deploy a flow and wait until its consumer is known; the consumer's name, `flow/deployment`.

        Parameters:
            options: whatever `flow.to_deployment` takes: tags, parameters.

        Raises:
            InvalidSchedule, NameTaken: the schedule cannot be used.
        """
        made = cast(Any, flow.to_deployment(name=name, **options))
        number = UUID(str(made.apply()))
        self._deployed[number] = flow
        self._evaluator.call(_learn_deployments, SECONDS_TO_SETTLE)
        return f"{flow.name}/{name}"

    def run(self, flow: AnyFlow, /, **parameters: Any) -> Any:
        """Run a flow here and now, as a producer; its result. It does not have to be deployed."""
        return _finished(flow(**parameters))

    def emit(
        self,
        asset: Asset | str,
        *,
        extra: Mapping[str, object] | None = None,
        partition_key: str | None = None,
        aliases: tuple[str, ...] = (),
    ) -> AssetEvent:
        """Record an update without running anything.

        Raises:
            InvalidAsset, InvalidEvent: it breaks chapters 1 or 2 of the contract.
        """
        asset = asset if isinstance(asset, Asset) else Asset(asset)
        names = tuple(sorted(AssetAlias(alias).name for alias in aliases))
        origin = Origin("api", by="assetflow.testing")
        event = AssetEvent(uuid4(), asset, utc_now(), origin, check_extra(extra), partition_key, names)

        async def record(evaluator: Evaluator) -> None:
            evaluator.intake.take(Recording(event.id, (event,)))
            await evaluator.intake.settled()

        self._evaluator.call(record, SECONDS_TO_SETTLE)
        return event

    def settle(self, timeout: float = SECONDS_TO_SETTLE, *, execute: bool = True) -> Harness:
        """Wait until nothing is left to do: updates recorded, decisions made, runs started and, here, run to their end.

        Runs whose flows update assets in turn start further runs; these are waited for as well.

        Parameters:
            timeout: seconds for all of it.
            execute: run the started flow runs in this process; otherwise they stay Scheduled.

        Raises:
            TimedOut: it took longer; flows that start each other in a circle never settle.
        """
        end = monotonic() + timeout
        while True:
            self._evaluator.call(_settle, max(0.0, end - monotonic()))
            waiting = self._started_runs() if execute else []
            if not waiting:
                return self
            for run, deployment in waiting:
                if monotonic() > end:
                    raise TimedOut(f"flow runs are still being started after {timeout:g} s", fix="Is there a circle?")
                self._execute(run, self._deployed[deployment])

    def runs(self, consumer: AnyFlow | str) -> list[ConsumerRun]:
        """The runs that updates have started of a deployed flow, oldest first.

        Parameters:
            consumer: the flow, or the name of one of its deployments (`flow/deployment`).

        Raises:
            UnknownConsumer: it is not deployed, or has no asset schedule.
        """
        decisions = self._reader.decisions(consumer=self._consumer(consumer).consumer.id, limit=10_000)[::-1]
        events = self._reader.events_of(decisions)
        return [
            ConsumerRun(each.flow_run_id, events[each.id], each.target_key, each.run_state)
            for each in decisions
            if each.flow_run_id is not None
        ]

    def queued(self, consumer: AnyFlow | str, partition_key: str | None = None) -> list[AssetEvent]:
        """The events that wait in a consumer's queue, oldest first.

        Raises:
            UnknownConsumer: as `runs`.
        """
        return self._reader.queue(self._consumer(consumer).consumer.id, partition_key)

    def remove_deployments(self) -> None:
        """Delete what was deployed, with its automations."""
        with get_client(sync_client=True) as client:
            for deployment in self._deployed:
                try:
                    client.delete_deployment(deployment)
                except ObjectNotFound:
                    continue
        self._deployed.clear()
        self._evaluator.call(_learn_deployments, SECONDS_TO_SETTLE)

    def _consumer(self, consumer: AnyFlow | str) -> ConsumerRecord:
        found = [
            each
            for each in self._reader.consumers()
            if each.consumer.name == consumer or self._deployed.get(each.consumer.deployment_id) is consumer
        ]
        if len(found) == 1:
            return found[0]
        name = consumer if isinstance(consumer, str) else consumer.name
        if found:
            raise UnknownConsumer(f"{name} has several deployments", fix="Name one of them: `flow/deployment`")
        raise UnknownConsumer(f"{name} is no consumer", fix="Deploy a flow that has an asset schedule: h.deploy(flow)")

    def _started_runs(self) -> list[tuple[UUID, UUID]]:
        """Runs that have started and not been executed here, with their deployments, oldest first."""
        return [
            (each.flow_run_id, each.deployment_id)
            for each in self._reader.running()
            if each.flow_run_id not in self._executed and each.flow_run_id and each.deployment_id in self._deployed
        ]

    def _execute(self, run: UUID, flow: AnyFlow) -> None:
        self._executed.add(run)
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(run)
        # A failed consumer is a result, which the test reads from its state.
        state = _finished(run_flow(flow, flow_run=flow_run, return_type="state"))

        async def tell(evaluator: Evaluator) -> None:
            await evaluator.run_watch.end(run, state.name or "")

        self._evaluator.call(tell, SECONDS_TO_SETTLE)


async def _learn_deployments(evaluator: Evaluator) -> None:
    await evaluator.registry.sync()


async def _settle(evaluator: Evaluator) -> None:
    await evaluator.settled()


def _finished(result: Any) -> Any:
    async def finish() -> Any:
        return await result

    return asyncio.run(finish()) if isawaitable(result) else result
