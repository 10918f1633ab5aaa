"""The pass of chapter 8: decide what runs now, and when to look again (contract 8.16).

It follows the passes of event and time schedules. It looks at the agenda and at what is due, never at all consumers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid5

from assetflow.core.freshness.backfilling import run_id, take_ready
from assetflow.core.freshness.data_time import DataTimes
from assetflow.core.freshness.demands import Demand, Demands, Pull
from assetflow.core.freshness.graph import FlowNode
from assetflow.core.freshness.judging import Judging, is_out_of_date
from assetflow.core.freshness.reads import all_keys, newest_that_start, read_ahead
from assetflow.core.freshness.recording import begin_run
from assetflow.core.freshness.records import Target, TargetRecord, Verdict
from assetflow.core.freshness.state.state import Agenda, FreshnessState
from assetflow.core.grouping import grouped
from assetflow.core.values.consumers import Decision, DecisionKind
from assetflow.core.values.keeping import Cause

Verdicts = dict[Target, Verdict | None]


def look_again(freshness: FreshnessState, until: datetime) -> None:
    """Put on the agenda what is due: failed runs that are repeated, and targets that a deploy or a resume set aside.

    Parameters:
        until: up to when it is due.
    """
    due = freshness.targets.take_due(until, freshness.most_judged)
    freshness.targets.load(due)
    for target in due:
        retry_at = freshness.targets.find(target).retry_at
        if retry_at is not None and retry_at <= until:
            freshness.agenda.add(target)
            continue
        freshness.agenda.add_catching_up(target)
        if retry_at is not None:
            freshness.targets.wait_for_retry(target, retry_at)


def hold_back(freshness: FreshnessState, verdicts: Verdicts, catching_up: Collection[Target]) -> Verdicts:
    """Return the verdicts of a pass after limiting the targets that `catchup` asks for: the greatest keys run first.

    Parameters:
        catching_up: the targets that are judged because of a deploy or a pause of their flow.
    """
    numbers = dict.fromkeys(each.consumer for each in catching_up if each.key is not None)
    for number in numbers if freshness.most_catching_up is not None else ():
        asked = _asked(verdicts, number)
        by_catchup = sorted((each for each in asked if each in catching_up), key=_key, reverse=True)
        room = max(
            0, (freshness.most_catching_up or 0) - len(freshness.runs.of(number)) - (len(asked) - len(by_catchup))
        )
        verdicts = _with_owed(verdicts, by_catchup[room:])
    return verdicts


def without_waiver(freshness: FreshnessState, target: Target) -> TargetRecord:
    """Return the record of a target, without the waiver if `catchup="all"` asks for the target (8.8)."""
    record, node = freshness.targets.find(target), freshness.graph.find(target.consumer)
    if record.waived is None or node is None or not node.is_eager or node.keeping is None:
        return record
    runs_all = node.keeping.catchup == "all" and is_out_of_date(freshness, node, target.key)
    return replace(record, waived=None) if runs_all else record


def flows_catching_up(freshness: FreshnessState, agenda: Agenda) -> Collection[int]:
    """Return the partitioned flows of which a run has ended, so that the next targets may run (8.18)."""
    if freshness.most_catching_up is None:
        return ()
    ended = [each for each in agenda.targets if each.key is not None]
    freshness.targets.load(ended)
    return dict.fromkeys(each.consumer for each in ended if freshness.targets.find(each).verdict == "in_progress")


def next_targets(freshness: FreshnessState, number: int, verdicts: Mapping[Target, Verdict | None]) -> list[Target]:
    """Return the next targets of a flow that `catchup` asks for: the greatest keys, as many as may run now.

    Parameters:
        verdicts: the verdicts of this pass.
    """
    node = freshness.graph.find(number)
    room = (freshness.most_catching_up or 0) - len(freshness.runs.of(number)) - len(_asked(verdicts, number))
    # Most of those that were set aside may be up to date: the clock continues with them.
    is_enough = freshness.most_judged is not None and len(verdicts) >= 2 * freshness.most_judged
    if node is None or node.is_idle or room <= 0 or is_enough:
        return []
    found = freshness.targets.with_verdict("owed", number, room + len(verdicts))
    return sorted((each for each in found if each not in verdicts), key=_key, reverse=True)[:room]


def as_said(freshness: FreshnessState, verdicts: Verdicts) -> Verdicts:
    """Return the verdicts with the name "owed" for targets that the last pass held back under this name."""
    held = (each for each, verdict in verdicts.items() if verdict is not None and verdict.name == "run")
    return _with_owed(verdicts, [each for each in held if freshness.targets.find(each).verdict == "owed"])


def _with_owed(verdicts: Verdicts, targets: Iterable[Target]) -> Verdicts:
    """Return verdicts with the name "owed" for some of the targets that would run."""
    return verdicts | {
        each: replace(verdict, name="owed") for each in targets if (verdict := verdicts[each]) is not None
    }


def _asked(verdicts: Mapping[Target, Verdict | None], number: int) -> list[Target]:
    found = (each for each in verdicts.items() if each[0].consumer == number)
    return [target for target, verdict in found if verdict is not None and verdict.name == "run"]


def _key(target: Target) -> str:
    return target.key or ""


_NAMESPACE = UUID("54d5a7c4-7b52-5c1e-9a3f-0d4b6f1e8c21")
_INSTANT = timedelta(microseconds=1)


def decide(freshness: FreshnessState, now: datetime, *, recorded: bool) -> list[Decision]:
    """Make a pass: ask for what backfills run next, and for the Eager and Lazy targets that are to be run.

    Parameters:
        recorded: whether all is recorded that counts at this instant; only then what is due now is over (9.6).
    """
    made = [*_next_of_backfills(freshness, now)]
    until = now if recorded else now - _INSTANT
    look_again(freshness, until)
    agenda, freshness.agenda = freshness.agenda, Agenda()
    pulls = _pulls(freshness, agenda, now, until)
    judging = Judging(freshness, pulls, now, recorded=recorded)
    paying = flows_catching_up(freshness, agenda)
    verdicts = hold_back(
        freshness, _judge_all(freshness, judging, _candidates(freshness, agenda, pulls)), agenda.catching_up
    )
    for number in paying:
        while targets := next_targets(freshness, number, verdicts):
            verdicts |= _judge_all(freshness, judging, targets)
    for target, verdict in verdicts.items():
        record = without_waiver(freshness, target) if target in agenda.catching_up else freshness.targets.find(target)
        freshness.targets.save(target, replace(record, verdict="" if verdict is None else verdict.name))
    asked = [verdict for verdict in verdicts.values() if verdict is not None and verdict.name == "run"]
    return [*made, *(_ask(freshness, verdict.target, verdict.because, now) for verdict in asked)]


def next_look(freshness: FreshnessState) -> datetime | None:
    """Return the next instant at which something falls due: a retry, a demand, a state."""
    found = [freshness.targets.next_due(), freshness.policies.next_look()]
    return min((moment for moment in found if moment is not None), default=None)


def plan(freshness: FreshnessState, now: datetime, targets: Iterable[Target] | None = None) -> list[Verdict]:
    """Return what would be done now with Eager and Lazy targets, and what holds them back; start nothing.

    Parameters:
        targets: those to judge; all by default.
    """
    demands = Demands(freshness, DataTimes(freshness), now)
    found = [demand for uri in freshness.policies.all() if (demand := demands.demand(uri)) is not None]
    judging = Judging(freshness, demands.pulls(each for each in found if each.due <= now), now, recorded=True)
    if targets is not None:
        judged = as_said(freshness, _judge_all(freshness, judging, targets))
        return [verdict for verdict in judged.values() if verdict is not None]
    keepers = [node for node in freshness.graph.all() if node.keeping is not None]
    every = {Target(node.id, key): None for node in keepers for key in all_keys(freshness, node)}
    judged = as_said(freshness, _judge_all(freshness, judging, every))
    runs = (run for node in freshness.graph.all() for run in freshness.runs.of(node.id))
    going_on = {run.target: Verdict(run.target, "in_progress") for run in runs}
    return [verdict for verdict in {**judged, **going_on}.values() if verdict is not None]


def _next_of_backfills(freshness: FreshnessState, now: datetime) -> Iterator[Decision]:
    for backfill in freshness.backfills.live():
        for step in take_ready(freshness, backfill, now):
            node = freshness.graph.find(step.target.consumer)
            assert node is not None, "a target of a removed flow is taken off its backfills"
            number = run_id(backfill, node.consumer.deployment_id, step.target.key, step.attempt)
            yield _begin(freshness, node, step.target, number, "backfill", (Cause("backfill"),), now)


def _pulls(freshness: FreshnessState, agenda: Agenda, now: datetime, until: datetime) -> Mapping[int, Pull]:
    """Return the consumers that policies pull, looking only at policies that something happened to or that are due."""
    readers = (number for uri in agenda.assets for number in freshness.graph.readers_ever(uri))
    below = [uri for uri in agenda.assets if freshness.graph.declares_any([uri])]
    below += _policies_below(freshness, [*agenda.flows, *readers])
    for uri in dict.fromkeys(below):
        for instant in agenda.instants or (now,):
            freshness.policies.touch(uri, instant)
    looked = dict.fromkeys([*below, *freshness.policies.take_due(until)])
    demands = Demands(freshness, DataTimes(freshness), now)
    due: list[Demand] = []
    pulls: Mapping[int, Pull] = {}
    new = list(looked)
    while new:
        due += (demand for uri in new if (demand := _due_demand(freshness, demands, uri, until)) is not None)
        pulls = demands.pulls(due)
        # Policies that have been due for longer may pull the same flows.
        new = [uri for uri in _policies_below(freshness, pulls) if uri not in looked]
        looked |= dict.fromkeys(new)
    return pulls


def _due_demand(freshness: FreshnessState, demands: Demands, uri: str, until: datetime) -> Demand | None:
    """Return the demand of a policy if it is due, and remember when to look at the policy again."""
    record, demand = freshness.policies.find(uri), demands.demand(uri)
    if record is None:
        return None
    is_due = demand is not None and (demand.at_once or demand.due <= until)
    # A deadline that was missed is followed by another one.
    later = record.policy.next_deadline(until) if is_due else None if demand is None else demand.due
    freshness.policies.save(uri, replace(record, due=later, chain=demands.way(uri)))
    return demand if is_due else None


def _policies_below(freshness: FreshnessState, flows: Iterable[int]) -> Iterator[str]:
    """Yield the assets with policies that flows make, or those below them, also where these read other inputs now."""
    if freshness.graph.has_policies:
        below = (freshness.graph.find(number) for number in freshness.graph.dated_by(flows))
        yield from (
            uri for node in below if node is not None for uri in node.outputs if freshness.graph.declares_any([uri])
        )


def _candidates(freshness: FreshnessState, agenda: Agenda, pulls: Mapping[int, Pull]) -> dict[Target, None]:
    """Return the targets to judge."""
    found = dict(agenda.targets)
    waiting = freshness.targets.consumers_with("waits")
    if waiting:
        below = freshness.graph.below(agenda.flows)
        concerned = [number for number in waiting if number in below]
        freshness.targets.load_waiting(concerned)
        for number in concerned:
            found |= dict.fromkeys(freshness.targets.waiting(number))
    for number in pulls:
        node = freshness.graph.find(number)
        if node is not None and node.is_lazy:
            found[Target(number)] = None
    return found


def _judge_all(freshness: FreshnessState, judging: Judging, targets: Iterable[Target]) -> dict[Target, Verdict | None]:
    by_consumer = grouped(targets)
    nodes = [node for node in freshness.graph.parents_first(by_consumer) if node.keeping is not None]
    freshness.targets.load(Target(node.id, key) for node in nodes for key in by_consumer[node.id])
    freshness.runs.load(node.id for node in nodes)
    judging.upcoming.expect(nodes)
    found: dict[Target, Verdict | None] = {}
    for node in nodes:
        read_ahead(freshness, node, by_consumer[node.id])
        for key in sorted(by_consumer[node.id], key=lambda key: key or ""):
            if (key is not None) == node.is_partitioned:
                found[Target(node.id, key)] = judging.judge(node, key)
    return found


def _ask(freshness: FreshnessState, target: Target, because: tuple[Cause, ...], now: datetime) -> Decision:
    node = freshness.graph.find(target.consumer)
    assert node is not None
    assert node.keeping is not None
    record = freshness.targets.find(target)
    codes = (f"{uri}={version}" for uri, version in sorted(node.code_versions.items()))
    parts = [str(node.consumer.deployment_id), target.key or "", str(record.decision), *codes]
    number = uuid5(_NAMESPACE, "|".join([*parts, *newest_that_start(freshness, node, target.key)]))
    freshness.targets.save(target, replace(record, decision=number, verdict="in_progress"))
    return _begin(freshness, node, target, number, node.keeping.kind, because, now, record.decision)


def _begin(
    freshness: FreshnessState,
    node: FlowNode,
    target: Target,
    number: UUID,
    kind: DecisionKind,
    because: tuple[Cause, ...],
    now: datetime,
    predecessor: UUID | None = None,
) -> Decision:
    begin_run(freshness, node, target.key, number, kind, now, predecessor=predecessor)
    return Decision(number, node.id, node.consumer.deployment_id, target.key, (), now, kind, because=because)
