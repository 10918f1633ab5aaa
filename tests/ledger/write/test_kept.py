"""Eager flows on a ledger: what is asked for after recordings, ends of runs, deploys, switches, and in time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

from assetflow.core.freshness.records import RunState
from assetflow.core.partitions import IdentityMapper, PartitionMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.core.values.keeping import Keeping, Output
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from tests.ledger.making import NOW

SPACE = UUID(int=8)
RAW, CORE, LEFT, RIGHT, BOARD = (Asset(f"s3://lake/{name}") for name in ("raw", "core", "left", "right", "board"))


def kept(
    reads: Iterable[Asset],
    makes: Iterable[Asset],
    *,
    code: str | None = None,
    mapper: PartitionMapper | None = None,
    **options: Any,
) -> FlowDeclaration:
    """The declaration of an Eager flow whose task reads and makes assets."""
    reads, makes = tuple(reads), tuple(makes)
    parts = None if mapper is None else Partitioning(mapper)
    schedule = Schedule(partitioning=parts, keeping=Keeping("eager", **options))
    outputs = tuple(Output(each.token, tuple(read.token for read in reads), code) for each in makes)
    return FlowDeclaration(ConsumerOptions(schedule), makes, reads, outputs)


@dataclass
class Place:
    """A ledger with flows whose runs the test starts and ends.

    Attributes:
        pace: the seconds from one thing that happens to the next.
    """

    ledger: Ledger
    now: datetime = NOW
    consumers: dict[str, Consumer] = field(default_factory=dict[str, Consumer])
    pace: float = 1

    def later(self, seconds: float | None = None) -> datetime:
        self.now += timedelta(seconds=self.pace if seconds is None else seconds)
        return self.now

    def deploy(self, name: str, declaration: FlowDeclaration, **options: Any) -> list[Decision]:
        given = {"paused": False, "held": False, **options}
        text = declaration_to_text(declaration)
        number = uuid5(SPACE, name)
        consumer, made = self.ledger.writer.consumers.deploy(name, number, None, text, now=self.later(), **given)
        self.consumers[name] = consumer
        return made

    def update(self, asset: Asset, key: str | None = None, version: str | None = None) -> list[Decision]:
        event = AssetEvent(uuid4(), asset, self.later(), Origin("api"), partition_key=key, data_version=version)
        return self._record([event])

    def make(
        self,
        name: str,
        decision: Decision,
        *assets: Asset,
        pins: Mapping[str, int] | None = None,
        code: str = "",
        run: UUID | None = None,
        started: datetime | None = None,
    ) -> list[Decision]:
        consumer = self.consumers[name]
        run = run or uuid5(decision.id, "run")
        self.ledger.writer.decisions.launched(decision.id, run, self.later())
        flow_run = SourceFlowRun(run, deployment_id=consumer.deployment_id)
        return self._record(
            [
                AssetEvent(
                    uuid4(),
                    asset,
                    self.now,
                    Origin("task", flow_run=flow_run),
                    partition_key=decision.target_key,
                    inputs=pins or {},
                    code_version=code or None,
                    started=started,
                )
                for asset in assets
            ]
        )

    def end(self, decision: Decision, outcome: RunState = "completed") -> list[Decision]:
        state = outcome.capitalize()
        made = self.ledger.writer.decisions.ended(state, self.later(), decision_id=decision.id, outcome=outcome)
        return made or []

    def run(self, name: str, decision: Decision, *assets: Asset, code: str = "") -> list[Decision]:
        made = self.make(name, decision, *assets, code=code)
        return [*made, *self.end(decision)]

    def names(self, decisions: Sequence[Decision]) -> list[str]:
        of = {each.id: name for name, each in self.consumers.items()}
        return [of[each.consumer] + (f" {each.target_key}" if each.target_key else "") for each in decisions]

    def _record(self, events: Sequence[AssetEvent]) -> list[Decision]:
        ((_, made),) = self.ledger.writer.events.record([Recording(uuid4(), tuple(events))], self.now)
        return made


def only(decisions: Sequence[Decision]) -> Decision:
    (decision,) = decisions
    return decision


def test_a_decision_that_cannot_be_started_counts_as_a_failed_run(place: Place) -> None:
    place.deploy("core", kept([RAW], [CORE]))
    first = only(place.update(RAW))
    decisions = place.ledger.writer.decisions
    assert not decisions.undeliverable(first.id, "the deployment is gone", place.later())
    decisions.replay(first.id, place.later())
    assert not place.update(RAW)
    assert place.names(place.end(first)) == ["core"]


def test_8_2_a_history_of_keys_and_of_several_makers_before_the_first_eager_flow_starts_no_flood(place: Place) -> None:
    """What consumers made before has read what their inputs were when it was recorded."""
    by_key = to_schedule(PartitionedAssetTimetable(assets=RAW))
    place.deploy("core", FlowDeclaration(ConsumerOptions(by_key), (CORE,), (RAW,)))
    below = to_schedule(PartitionedAssetTimetable(assets=CORE))
    place.deploy("board", FlowDeclaration(ConsumerOptions(below), (BOARD,), (CORE,)))
    keys = [f"2026-01-{day:02}" for day in range(1, 21)]
    for key in keys:
        made = place.run("core", only(place.update(RAW, key)), CORE)
        place.run("board", only(made), BOARD)
    place.update(RAW, keys[0])
    asked = place.deploy("core", kept([RAW], [CORE], mapper=IdentityMapper(), catchup="all"))
    assert place.names(asked) == [f"core {keys[0]}"], "the only key that was not made since"
    assert not place.deploy("board", kept([CORE], [BOARD], mapper=IdentityMapper(), catchup="all"))
    assert [each.state for each in place.ledger.reader.freshness.statuses([BOARD.uri], place.now)] == ["fresh"]
    assert place.names(place.update(RAW, keys[7])) == [f"core {keys[7]}"]
