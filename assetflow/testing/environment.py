"""A harness for tests of schedules: deploy flows, run a producer, see which flows ran, and with which events."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast, overload
from unittest.mock import patch
from uuid import UUID, uuid4

from prefect.client.orchestration import get_client
from prefect.exceptions import ObjectNotFound

from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.explain.status import Status
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.core.values.freshness_policy import State
from assetflow.errors import InvalidCall, TimedOut, UnknownAsset, UnknownConsumer
from assetflow.evaluator.process.evaluator import Evaluator, utc_now
from assetflow.ledger import Ledger, Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.operations.installation import Installation
from assetflow.operations.runs_by_hand import retry
from assetflow.prefect_io.connection import AskAgain
from assetflow.testing.background import AnyFlow, BackgroundEvaluator, StartedRuns, finished
from assetflow.testing.outside import Outside

SECONDS_TO_SETTLE = 30.0


@dataclass(frozen=True)
class ConsumerRun:
    """A flow run that updates of assets started.

    >>> from assetflow.testing import Harness
    >>> def rows_consumed(h: Harness, consumer: str) -> list[int]:
    ...     return [sum(event.extra["rows"] for event in run.events) for run in h.runs(consumer)]

    Attributes:
        id: the id of the flow run.
        events: the updates that it consumed, oldest first.
        partition_key: its key; `None` if its flow is not partitioned.
        state: the name of its last state ("Completed"); "" while it has not ended.
    """

    id: UUID
    events: tuple[AssetEvent, ...]
    partition_key: str | None
    state: str

    @property
    def uris(self) -> list[str]:
        """The URIs of the consumed updates, oldest first."""
        return [event.uri for event in self.events]


@contextmanager
def harness(*, use_running_server: bool = False, timeout: float = SECONDS_TO_SETTLE) -> Generator[Harness]:
    """Start a Prefect server, an evaluator in this process and an empty ledger for the duration of a `with` block.

    >>> from assetflow import Asset, flow, task
    >>> from assetflow.testing import harness
    >>> orders, customers = Asset("s3://shop/orders"), Asset("s3://shop/customers")
    >>> @task(outlets=[orders])
    ... def load_orders(): ...
    >>> @flow
    ... def produce():
    ...     load_orders()
    >>> @flow(schedule=orders & customers)
    ... def report(): ...
    >>> def test_the_report_runs_when_both_are_updated():
    ...     with harness() as h:
    ...         h.deploy(report)
    ...         h.run(produce)
    ...         assert h.settle().runs(report) == []
    ...         h.emit(customers)
    ...         (run,) = h.settle().runs(report)
    ...         assert run.uris == ["s3://shop/orders", "s3://shop/customers"]

    A server takes 5 to 20 seconds to start. In tests, take the fixture `h`, which comes with the package: all tests of
    a session then share one server. What the block deployed is deleted at its end.

    Parameters:
        use_running_server: True to use the server that PREFECT_API_URL names instead of a temporary one. It must be one
            for tests: the harness becomes its only evaluator.
        timeout: the seconds that each wait may take: until the evaluator is ready, a deployment is known, an update is
            recorded, everything has settled. Give more on a slow machine.

    Raises:
        PrefectUnreachable: `use_running_server` is True, and no server answers.
        TimedOut: the evaluator was not ready in time.
    """
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="assetflow-harness-")))
        if not use_running_server:
            # Import it only here: this imports the whole Prefect server.
            from prefect.testing.utilities import prefect_test_harness

            stack.enter_context(prefect_test_harness(server_startup_timeout=90))
        # Nothing comes late from a server of one's own, so that no instant has to wait for it.
        own = {"ASSETFLOW_HOME": str(home), "ASSETFLOW_DATABASE_URL": "", "ASSETFLOW_SETTLE": "0"}
        stack.enter_context(patch.dict(os.environ, own))
        evaluator = stack.enter_context(BackgroundEvaluator(home / "ledger.db", timeout=timeout))
        reader = stack.enter_context(Reader.open(home / "ledger.db"))
        made = Harness(evaluator, reader)
        stack.callback(made.remove_deployments)
        yield made


class Harness:
    """The handle of a test to deploy and run flows, which `harness()` returns.

    >>> from assetflow import Asset, flow
    >>> from assetflow.testing import harness
    >>> orders = Asset("s3://shop/orders")
    >>> @flow(schedule=orders)
    ... def report(): ...
    >>> def test_the_report_follows_the_orders():
    ...     with harness() as h:
    ...         h.deploy(report)
    ...         h.emit(orders)
    ...         (run,) = h.settle().runs(report)
    ...         assert run.state == "Completed"

    Where a test takes `h`, that is the fixture of the package's pytest plugin.
    """

    def __init__(self, evaluator: BackgroundEvaluator, reader: Reader) -> None:
        self._reader = reader
        self._deployed: dict[UUID, AnyFlow] = {}
        self._evaluator = evaluator
        self._started = StartedRuns(reader, evaluator, self._deployed)
        self._outside = Outside(reader.place)

    def deploy(self, flow: AnyFlow, name: str = "test", **options: Any) -> str:
        """Deploy a flow, wait until its consumer is known, and return the consumer's name, `flow/deployment`.

        Parameters:
            flow: the flow.
            name: the name of the deployment.
            options: everything that `flow.to_deployment` takes: tags, parameters.

        Raises:
            InvalidSchedule: the schedule cannot be used.
            NameTaken: two URIs in the schedules have one name (contract 1.2).
            TimedOut: the evaluator did not learn of the deployment in time; see `harness(timeout=…)`.
        """
        made = cast(Any, flow.to_deployment(name=name, **options))
        number = UUID(str(made.apply()))
        self._deployed[number] = flow
        self._evaluator.make(_learn_deployments, f"for the deployment {flow.name}/{name} to be known")
        return f"{flow.name}/{name}"

    def run(self, flow: AnyFlow, /, **parameters: Any) -> Any:
        """Run a flow here and now, as a producer, and return its result. It does not have to be deployed.

        Parameters:
            flow: the flow.
            parameters: the parameters of the flow.

        Raises:
            Exception: what the flow raises.
        """
        return finished(flow(**parameters))

    def emit(
        self,
        asset: Asset | str,
        *,
        extra: Mapping[str, object] | None = None,
        partition_key: str | None = None,
        aliases: tuple[str, ...] = (),
        data_version: str | None = None,
    ) -> AssetEvent:
        """Record an update without running anything, and return its event.

        Parameters:
            asset: the asset, or its URI.
            extra: facts about the update, a JSON object.
            partition_key: the key of the partition that was updated.
            aliases: the names of the aliases through which the update comes.
            data_version: the version of the data (contract 8.2).

        Raises:
            InvalidAsset: the URI or an alias breaks contract 1.4, 1.5 or 1.7.
            InvalidEvent: `extra`, `partition_key` or `data_version` breaks contract 2.5, 2.7 or 8.2.
        """
        asset = asset if isinstance(asset, Asset) else Asset(asset)
        event = event_by_hand(
            asset,
            id=uuid4(),
            occurred=utc_now(),
            origin=Origin("api", by="assetflow.testing"),
            extra=extra,
            partition_key=partition_key,
            aliases=aliases,
            data_version=data_version,
        )

        async def record(evaluator: Evaluator) -> None:
            evaluator.inbox.take(Recording(event.id, (event,)))
            await evaluator.inbox.settled()

        self._evaluator.make(record, f"for the update of {asset.uri} to be recorded")
        return event

    def observe(self, source: Asset | str, version: str | Mapping[str, str]) -> list[AssetEvent]:
        """Observe a source, and return the updates that the observation is: those of items with another version.

        >>> from assetflow import Asset, Eager, flow, task
        >>> raw, table = Asset("s3://lake/raw"), Asset("s3://lake/table")
        >>> @task(inlets=[raw], outlets=[table])
        ... def build(): ...
        >>> @flow(schedule=Eager())
        ... def tables():
        ...     build()
        >>> def test_the_same_version_starts_nothing(h):
        ...     h.deploy(tables)
        ...     for version in ("v1", "v1", "v2"):
        ...         h.observe(raw, version)
        ...         h.settle()
        ...     assert len(h.runs(tables)) == 2

        Parameters:
            source: the asset, or its URI.
            version: the version that was seen, or one for each partition key (contract 8.2).

        Raises:
            InvalidEvent: a version or a key breaks contract 2.5 or 8.2, or a deployed flow makes the asset.
        """
        return self._outside.observe(Asset(source) if isinstance(source, str) else source, version, utc_now())

    def message(self, watcher: str, body: object, *, message_id: str | None = None) -> list[AssetEvent]:
        """Let a message arrive in the queue of a watcher, without a broker, and return the updates that it is.

        >>> from assetflow import Asset, AssetWatcher
        >>> from assetflow.watchers import MessageQueueTrigger
        >>> queue = MessageQueueTrigger("amqp://mq.internal", queue="orders", partition_key="date")
        >>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])
        >>> def test_a_message_is_an_update(h, report):
        ...     h.deploy(report)
        ...     h.message("orders-queue", {"date": "2026-01-01", "rows": 3})
        ...     (run,) = h.settle().runs(report)
        ...     assert run.partition_key == "2026-01-01"

        Parameters:
            watcher: the name of the watcher. A flow that is deployed has an asset with it.
            body: the content: bytes, or what is written as JSON.
            message_id: the message's id; two messages with one id are one update (contract 10.2). Without one, each
                message is new.

        Returns:
            The updates; an empty list if the watcher's filter does not want the message, or it came before.

        Raises:
            UnknownWatcher: no deployed asset has this watcher.
            InvalidWatcher: it does not watch a queue.
            InvalidEvent: a running watcher would refuse the message; the error says why (contract 10.2).
        """
        return self._outside.message(watcher, body, message_id, utc_now())

    def file(self, watcher: str, name: str, *, size: int = 1) -> list[AssetEvent]:
        """Let a file appear or change where a watcher looks, without a folder, and return the updates that it is.

        Parameters:
            watcher: the name of the watcher. A flow that is deployed has an asset with it.
            name: the path, or the part of it that comes after the folders without wildcards.
            size: in bytes.

        Raises:
            UnknownWatcher: no deployed asset has this watcher.
            InvalidWatcher: it does not watch files.
            InvalidEvent: the file is not among those that it watches, or has no partition key where one is asked for.
        """
        return self._outside.file(watcher, name, size, utc_now())

    def settle(self, timeout: float | None = None, *, execute: bool = True) -> Harness:
        """Wait until everything is done: updates recorded, decisions made, runs started, and run to their end here.

        Runs whose flows update assets start further runs; the harness waits for these as well.

        Parameters:
            timeout: the seconds for all of it, instead of those of the harness. A run that has not ended by then is
                ended.
            execute: True to run the started flow runs in this process; False to leave them Scheduled.

        Returns:
            The harness itself: `h.settle().runs(report)`.

        Raises:
            TimedOut: it took longer. The error says what the harness waited for, and which flows keep starting each
                other: those never settle.
        """
        allowance = AskAgain(self._evaluator.timeout if timeout is None else timeout).start()
        while True:
            try:
                self._evaluator.make(Evaluator.settled, "for updates to be recorded and runs to be created", allowance)
            except TimedOut as late:
                raise self._started.circle(allowance) or late from late.__cause__
            if not (execute and self._started.execute(allowance)):
                return self

    def advance(self, span: timedelta) -> Harness:
        """Let time pass at once: waits end, schedules open, deadlines are missed, data gets old. Contract 9.6.

        The harness first waits until all updates so far are recorded, as of the time before, and then until what falls
        due in the span is decided and its runs are created. Runs by time alone are not moved.

        >>> from datetime import datetime, timedelta
        >>> from assetflow import Asset, flow
        >>> from assetflow.testing import harness
        >>> orders = Asset("s3://shop/orders")
        >>> @flow(schedule=orders, debounce=timedelta(minutes=10))
        ... def report(): ...
        >>> def test_the_report_waits_until_it_is_quiet():
        ...     with harness() as h:
        ...         h.deploy(report)
        ...         h.emit(orders)
        ...         assert h.advance(timedelta(minutes=5)).runs(report) == []
        ...         assert len(h.advance(timedelta(minutes=5)).runs(report)) == 1

        Parameters:
            span: how much time passes.

        Returns:
            The harness itself.

        Raises:
            InvalidCall: the span is below zero: time never goes back.
            TimedOut: it took longer than the harness allows.
        """
        if span < timedelta():
            raise InvalidCall(f"advance({span!r}) goes back in time", fix="Give a timedelta above zero")
        self.settle(execute=False)
        self._evaluator.ahead += span
        return self.settle(execute=False)

    def runs(self, consumer: AnyFlow | str) -> list[ConsumerRun]:
        """Return the runs of a deployed flow that updates have started, oldest first.

        Parameters:
            consumer: the flow, or the name of one of its deployments (`flow/deployment`).

        Raises:
            UnknownConsumer: it is not deployed, or has no asset schedule.
        """
        decisions = self._reader.decisions.find(consumer=self._consumer(consumer).consumer.id, limit=10_000)[::-1]
        events = self._reader.decisions.events_of(decisions)
        return [
            ConsumerRun(each.flow_run_id, events[each.id], each.target_key, each.run_state)
            for each in decisions
            if each.flow_run_id is not None
        ]

    def queued(self, consumer: AnyFlow | str, partition_key: str | None = None) -> list[AssetEvent]:
        """Return the events that wait in a consumer's queue, oldest first.

        Parameters:
            consumer: the flow, or the name of one of its deployments (`flow/deployment`).
            partition_key: the key of the events to return, if the flow is partitioned.

        Raises:
            UnknownConsumer: it is not deployed, or has no asset schedule.
        """
        return self._reader.queues.events(self._consumer(consumer).consumer.id, partition_key)

    @overload
    def status(self, asset: Asset | str, partition_key: str | None = None) -> Status: ...
    @overload
    def status(self) -> list[Status]: ...
    def status(self, asset: Asset | str | None = None, partition_key: str | None = None) -> Status | list[Status]:
        """Return whether an asset is up to date, and if not, what has changed since it was made. Contract 8.9.

        >>> from assetflow import Asset, Eager, flow, task
        >>> from assetflow.testing import harness
        >>> raw, fact = Asset("s3://lake/raw"), Asset("s3://lake/fact")
        >>> @task(inlets=[raw], outlets=[fact])
        ... def build_fact(): ...
        >>> @flow(schedule=Eager())
        ... def core():
        ...     build_fact()
        >>> def test_fact_follows_raw():
        ...     with harness() as h:
        ...         h.deploy(core)
        ...         h.emit(raw)
        ...         assert h.status(fact).state == "missing"
        ...         h.settle()
        ...         assert h.status(fact).state == "fresh"

        Parameters:
            asset: the asset, or its URI; without it, all assets that Eager and Lazy flows need.
            partition_key: the key of one partition.

        Returns:
            The status of the asset; without an asset, a list, by URI.

        Raises:
            InvalidCall: there is a key, and no asset.
        """
        if asset is None:
            if partition_key is not None:
                raise InvalidCall("a partition key needs an asset", fix="Write h.status(asset, partition_key)")
            return self._reader.freshness.statuses(None, self._evaluator.now())
        uri = (asset if isinstance(asset, Asset) else Asset(asset)).uri
        return self._reader.freshness.status(uri, partition_key, self._evaluator.now())

    @overload
    def plan(self, consumer: AnyFlow | str) -> PlannedConsumer: ...
    @overload
    def plan(self) -> list[PlannedConsumer]: ...
    def plan(self, consumer: AnyFlow | str | None = None) -> PlannedConsumer | list[PlannedConsumer]:
        """Return what a deployed flow would run now, what holds it back, and when it is looked at next. Contract 8.16.

        Parameters:
            consumer: the flow, or the name of one of its deployments (`flow/deployment`); without it, all flows whose
                schedule is Eager, OnMissing or Lazy.

        Returns:
            The plan of the flow; without a flow, a list, by name.

        Raises:
            UnknownConsumer: it is not deployed, or its schedule is not Eager, OnMissing or Lazy.
        """
        if consumer is None:
            return self._reader.freshness.plan(self._evaluator.now())
        record = self._consumer(consumer)
        found = self._reader.freshness.plan(self._evaluator.now(), record.consumer.id)
        if not found:
            raise UnknownConsumer(
                f"{record.consumer.name} has no plan: updates start it",
                fix="Give it schedule=Eager(), OnMissing() or Lazy()",
            )
        return found[0]

    def retry(self, consumer: AnyFlow | str, partition_key: str | None = None) -> Harness:
        """Let a deployed flow try again, as `assetflow retry` does: of one that updates start, its last failed run.

        An Eager or Lazy flow tries again what it tried or waived. Contract 4.7, 8.7.

        >>> from assetflow import Asset, Eager, flow, task
        >>> from assetflow.testing import harness
        >>> raw, fact = Asset("s3://lake/raw"), Asset("s3://lake/fact")
        >>> works: list[bool] = []
        >>> @task(inlets=[raw], outlets=[fact])
        ... def build_fact():
        ...     assert works, "the database is away"
        >>> @flow(schedule=Eager())
        ... def core():
        ...     build_fact()
        >>> def test_core_runs_again():
        ...     with harness() as h:
        ...         h.deploy(core)
        ...         h.emit(raw)
        ...         assert [run.state for run in h.settle().runs(core)] == ["Failed"]
        ...         works.append(True)
        ...         assert [run.state for run in h.retry(core).settle().runs(core)] == ["Failed", "Completed"]

        Parameters:
            consumer: the flow, or the name of one of its deployments (`flow/deployment`).
            partition_key: only this target key; by default all of them.

        Returns:
            The harness itself.

        Raises:
            UnknownConsumer: it is not deployed, or it has no schedule.
            InvalidCall: it has no such key.
            Conflict: none of its runs has failed.
        """
        record = self._consumer(consumer)
        with Ledger.open(self._reader.place) as ledger:
            here = Installation(ledger, now=self._evaluator.now)

            async def try_again(evaluator: Evaluator) -> None:
                await retry(here, record, partition_key)
                await evaluator.run_watch.look()

            self._evaluator.make(try_again, f"for {record.consumer.name} to be tried again")
        return self

    def freshness(self, asset: Asset | str) -> State:
        """Return the state of an asset under its freshness policy: "pass", "warn", "fail" or "unknown". Contract 8.13.

        >>> from datetime import timedelta
        >>> from assetflow import Asset, FreshnessPolicy, flow
        >>> from assetflow.testing import harness
        >>> orders = Asset("s3://shop/orders", freshness=FreshnessPolicy(timedelta(hours=1)))
        >>> @flow(schedule=orders)
        ... def report(): ...
        >>> def test_old_orders_fail():
        ...     with harness() as h:
        ...         h.deploy(report)
        ...         h.emit(orders)
        ...         assert h.settle().freshness(orders) == "pass"
        ...         assert h.advance(timedelta(hours=1)).freshness(orders) == "fail"

        Parameters:
            asset: the asset, or its URI.

        Raises:
            UnknownAsset: no deployed flow declares a policy of the asset.
        """
        uri = (asset if isinstance(asset, Asset) else Asset(asset)).uri
        found = self._reader.policies.of_asset(uri)
        if found is None:
            raise UnknownAsset(f"{uri} has no freshness policy", fix="Deploy a flow that names the asset with one")
        return found.record.state

    def remove_deployments(self) -> None:
        """Delete the deployments of this harness, with their automations."""
        with get_client(sync_client=True) as client:
            for deployment in self._deployed:
                try:
                    client.delete_deployment(deployment)
                except ObjectNotFound:
                    continue
        self._deployed.clear()
        self._evaluator.make(_learn_deployments, "for the deployments to be removed")

    def _consumer(self, consumer: AnyFlow | str) -> ConsumerRecord:
        name = consumer if isinstance(consumer, str) else consumer.name
        all_known = self._reader.consumers.all()
        found = [each for each in all_known if each.consumer.name == name]
        if not isinstance(consumer, str):
            # The flow may have been made again since, with the same name.
            of_flow = [each for each in all_known if each.consumer.name.partition("/")[0] == name]
            this = [each for each in of_flow if self._deployed.get(each.consumer.deployment_id) is consumer]
            found = this or of_flow
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownConsumer(f"{name} has several deployments", fix="Name one of them: `flow/deployment`")
        raise UnknownConsumer(
            f"{name} is not a consumer", fix="Deploy a flow that has an asset schedule: h.deploy(flow)"
        )


async def _learn_deployments(evaluator: Evaluator) -> None:
    await evaluator.registry.sync()
