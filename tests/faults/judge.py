"""Whether anything was lost or done twice: the ledger, Prefect and the rules have to agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from assetflow.core.rules.fold import pass_over, record
from assetflow.core.rules.registry import deploy
from assetflow.core.rules.state import State
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Recording
from assetflow.core.wire import declaration_from_text
from assetflow.errors import InvalidAsset, InvalidEvent
from assetflow.ledger import Reader
from assetflow.ledger.records import DecisionRecord
from assetflow.prefect_io.names import CONSUMER_LABEL, DECISION_LABEL, RECORDING_LABEL, UPDATE_ARTIFACT
from assetflow.prefect_io.recordings import recording_from_artifact
from tests.faults.world import World, accepted_notes

MOST = 1_000_000


@dataclass
class Verdict:
    """What was counted, and what is wrong, in words.

    Attributes:
        decisions: those that have to have a run; one that is undeliverable is listed instead (4.6).
    """

    accepted: int = 0
    decisions: int = 0
    runs: int = 0
    lost: list[str] = field(default_factory=list[str])
    doubled: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return (
            f"accepted {self.accepted}, decisions {self.decisions}, runs {self.runs}, "
            f"lost {len(self.lost)}, doubled {len(self.doubled)}"
        )

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)

    def __add__(self, other: Verdict) -> Verdict:
        return Verdict(
            self.accepted + other.accepted,
            self.decisions + other.decisions,
            self.runs + other.runs,
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.wrong + other.wrong,
        )


@dataclass(frozen=True)
class Findings:
    """What the ledger and Prefect hold at the end."""

    events: list[AssetEvent]
    refused: set[UUID]
    decisions: list[DecisionRecord]
    consumed: dict[UUID, tuple[AssetEvent, ...]]
    consumers: dict[int, Consumer]
    folded: list[Decision]
    runs: list[dict[str, Any]]
    accepted: set[UUID]
    tokens: list[str]


def judge(
    world: World, *, unfolded: Iterable[str] = (), without_run: int = 0, deleted: Collection[str] = ()
) -> Verdict:
    """Compare everything, when everything has settled.

    Parameters:
        unfolded: names of deployments that were changed under load; what they decided is not folded again.
        without_run: how many decisions may be undeliverable.
        deleted: ids of deployments that were deleted under load: Prefect deletes their runs that have not begun.
    """
    found = _findings(world)
    gone = _gone_with_deployment(found, deleted)
    verdict = Verdict(len(found.accepted), len(found.decisions) - without_run - len(gone), len(found.runs))
    _compare_updates(found, verdict)
    _compare_runs(found, verdict, without_run, gone)
    _compare_decisions(found, verdict, set(unfolded))
    return verdict


def _findings(world: World) -> Findings:
    with world.reader() as reader:
        # A ledger that replays finds the updates and the runs of the server's earlier worlds, too.
        known = sorted(reader.decisions.find(limit=MOST), key=lambda each: each.number)
        decisions = [each for each in known if world.mark in each.consumer_name]
        consumed = reader.decisions.events_of(decisions)
        both = [*reader.consumers.all(), *reader.consumers.all(removed=True)]
        records = [each for each in both if world.mark in each.consumer.name]
        consumers = {
            each.consumer.id: Consumer(
                each.consumer.id,
                each.consumer.name,
                each.consumer.deployment_id,
                declaration_from_text(each.declaration, where=each.consumer.name).options,
            )
            for each in records
        }
        return Findings(
            events=world.recorded(),
            refused={each.id for each in reader.events.refused(limit=MOST)},
            decisions=decisions,
            consumed=consumed,
            consumers=consumers,
            folded=_fold(reader, consumers, decisions, consumed),
            runs=_runs(world),
            accepted=_accepted_by_prefect(world) | _accepted_by_ledger(world),
            tokens=accepted_notes(world),
        )


def _accepted_by_prefect(world: World) -> set[UUID]:
    """Artifacts count when they are there, events from outside when Prefect's log has them."""
    artifacts = world.pages("/artifacts/filter", {"artifacts": {"type": {"any_": [UPDATE_ARTIFACT]}}})
    recordings = [found for each in artifacts if (found := _recording_in(each)) is not None]
    ours = {event.id for each in recordings for event in each.events if world.mark in event.uri}
    return ours | {UUID(event["id"]) for event in world.stored() if RECORDING_LABEL not in event["resource"]}


def _recording_in(artifact: dict[str, Any]) -> Recording | None:
    """Return what an artifact records, or `None` if it is one that nobody can record."""
    try:
        return recording_from_artifact(artifact)
    except (InvalidAsset, InvalidEvent):
        return None


def _accepted_by_ledger(world: World) -> set[UUID]:
    return {event.id for event in world.recorded() if event.origin.kind == "cli"}


def _runs(world: World) -> list[dict[str, Any]]:
    runs = world.pages("/flow_runs/filter", {"sort": "ID_DESC"})
    return [run for run in runs if world.mark in run["labels"].get(CONSUMER_LABEL, "")]


def _compare_updates(found: Findings, verdict: Verdict) -> None:
    recorded = {event.id for event in found.events} | found.refused
    verdict.lost += [f"event {number}" for number in found.accepted - recorded]
    tokens = Counter((str(event.extra.get("token")), event.uri) for event in found.events if "token" in event.extra)
    verdict.doubled += [f"{token} of {uri}" for (token, uri), count in tokens.items() if count > 1]
    known = {token for token, _ in tokens}
    verdict.lost += [token for token in found.tokens if token not in known]


def _gone_with_deployment(found: Findings, deleted: Collection[str]) -> set[str]:
    """The decisions that had a run, or will have none, because their deployment is gone."""
    there = {run["labels"][DECISION_LABEL] for run in found.runs}
    theirs = [each for each in found.decisions if str(each.deployment_id) in deleted and str(each.id) not in there]
    return {str(each.id) for each in theirs if each.flow_run_id is not None or each.status == "undeliverable"}


def _compare_runs(found: Findings, verdict: Verdict, without_run: int, gone: Collection[str]) -> None:
    runs = Counter(run["labels"][DECISION_LABEL] for run in found.runs)
    known = {str(each.id): each for each in found.decisions}
    missing = [each for number, each in known.items() if number not in runs and number not in gone]
    if len(missing) != without_run:
        verdict.lost += [f"the run of decision {each.id} of {each.consumer_name}" for each in missing]
    verdict.doubled += [f"{count} runs of decision {number}" for number, count in runs.items() if count > 1]
    verdict.doubled += [f"a run of {number}, which is not in the ledger" for number in runs if number not in known]
    of_decision = {run["labels"][DECISION_LABEL]: run["id"] for run in found.runs}
    verdict.wrong += [
        f"decision {each.id} is marked with run {each.flow_run_id}"
        for each in found.decisions
        if str(each.id) in of_decision and str(each.flow_run_id) != of_decision[str(each.id)]
    ]


def _compare_decisions(found: Findings, verdict: Verdict, unfolded: set[str]) -> None:
    """The decisions and their order are those of the rules; where consumers changed, none consumed an update twice."""
    for consumer in found.consumers.values():
        made = [each for each in found.decisions if each.consumer == consumer.id]
        twice = Counter((event.id, each.target_key) for each in made for event in found.consumed[each.id])
        verdict.doubled += [f"{consumer.name} consumed {event}" for (event, _), count in twice.items() if count > 1]
        folded = [each.id for each in found.folded if each.consumer == consumer.id]
        if consumer.name.rpartition("/")[2] not in unfolded and [each.id for each in made] != folded:
            verdict.wrong.append(f"{consumer.name} decided {len(made)} times, by the rules {len(folded)} times")
        if consumer.name.rpartition("/")[2] not in unfolded and not _in_order(made, found.runs):
            verdict.wrong.append(f"the runs of {consumer.name} were not made in the order of its decisions")


def _in_order(made: list[DecisionRecord], runs: list[dict[str, Any]]) -> bool:
    created = {run["labels"][DECISION_LABEL]: datetime.fromisoformat(run["created"]) for run in runs}
    moments = [created[str(each.id)] for each in made if str(each.id) in created]
    return moments == sorted(moments)


def _fold(
    reader: Reader,
    consumers: dict[int, Consumer],
    decisions: list[DecisionRecord],
    consumed: dict[UUID, tuple[AssetEvent, ...]],
) -> list[Decision]:
    """The decisions that the recordings lead to, in ledger order, by the rules alone.

    When the runs of a coalescing consumer ended is known only from what it decided next: it ends just before the
    last of the updates that the next decision consumed.
    """
    state = State()
    for number in sorted(consumers):
        deploy(state, consumers[number])
    # Decisions of Eager flows consume nothing.
    having = [each for each in decisions if consumed[each.id]]
    ends = {(each.consumer, max(e.sequence or 0 for e in consumed[each.id])) for each in having}
    folded: list[Decision] = []
    for recording in reader.events.recordings():
        now = recording.events[0].recorded or recording.events[0].occurred
        recorded = record(state, recording, now)
        for number in [number for number, _ in consumers.items()]:
            if any((number, event.sequence) in ends for event in recorded.events):
                state.decisions.end_runs(number)
        folded += pass_over(state, recorded.touched, now)
    return folded
