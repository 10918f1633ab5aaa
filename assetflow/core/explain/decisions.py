"""Explain a decision: what it consumed, which event completed the condition, and what became of its run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from datetime import datetime
from shlex import quote
from typing import Annotated, Literal
from uuid import UUID

from assetflow.core.explain.conditions import ConditionRow, EventById, condition_rows
from assetflow.core.explain.events import EventSummary, summary_of
from assetflow.core.explain.facts import (
    DecisionBefore,
    DecisionFacts,
    KnownNames,
    NotStarted,
    QueuedEvents,
    RunFacts,
    first_prefix,
    pending_of,
)
from assetflow.core.explain.plan import PlannedTarget
from assetflow.core.explain.status import RunRead
from assetflow.core.rules.ended_runs import Failing, retry_command
from assetflow.core.rules.evaluation import Reach, evaluate, in_order
from assetflow.core.shapes import HIDDEN, As, TextOrNull, called, shape
from assetflow.core.values.conditions import fold_condition, join_gate
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.values.schedules import Schedule
from assetflow.core.values.words import at, count


def why_later(
    decision: Decision,
    consumer: Consumer,
    completed: AssetEvent,
    newest: datetime | None,
    before: DecisionBefore | None,
) -> str:
    """Return a sentence that says what the decision came with.

    Parameters:
        completed: the event that completed the condition.
        newest: when the newest consumed event was recorded; `None` if it is not known.
        before: the decision before; `None` if there was none, or nothing waits for it.
    """
    found = next(_reasons(decision, consumer, completed, newest, before), "")
    return f"The decision came {found}." if found else "What the decision waited for after that is not kept."


def _reasons(
    decision: Decision,
    consumer: Consumer,
    completed: AssetEvent,
    newest: datetime | None,
    before: DecisionBefore | None,
) -> Iterator[str]:
    """Yield what a decision may have come with, the certain ones first: those whose instant is the decision's."""
    made, intake, deployed = decision.made, consumer.options.intake, consumer.deployed
    if decision.opening == made:
        yield "when its schedule opened"
    if deployed == made and consumer.switched_late:
        yield f"when the evaluator found, at {at(made)}, that it was active again"
    if deployed == made:
        yield f"with the deploy at {at(made)}"
    if intake.cooldown is not None and before is not None and before.made + intake.cooldown == made:
        yield f"at the end of its cooldown after the decision of {at(before.made)}"
    if intake.debounce is not None and newest is not None and newest + intake.debounce == made:
        yield "when no more updates had come for a while (debounce)"
    if intake.max_wait is not None and completed.recorded is not None and completed.recorded + intake.max_wait == made:
        yield "after the longest wait for more updates (max_wait)"
    if consumer.coalesces and before is not None and (before.ended is None or before.ended >= made):
        yield f"when the run of the decision of {at(before.made)} had ended (coalesce)"
    if newest == made and intake.min_events is not None:
        yield f"with the last of {intake.min_events} updates (min_events)"
    if deployed is not None and deployed > made:
        return
    names_may_change = any(token.kind != "uri" for token in consumer.schedule.judging_tokens)
    if newest not in (None, made) and not consumer.is_timed and not names_may_change:
        yield "when it became active: it was paused or held until then"


# The JSON of a decision has at most this number of its events.
MOST_EVENTS = 1_000
RunStatus = Literal["waiting", "launched", "ended", "undeliverable"]


@shape
class RunExplanation:
    """The run of a decision, as far as it has come."""

    flow_run_id: UUID | None
    status: RunStatus
    run_state: TextOrNull
    launched: datetime | None
    ended: datetime | None
    error: TextOrNull
    attempts: int
    words: str
    """What became of it, in a sentence."""
    message: TextOrNull = ""
    """The message of the state in which it failed; null if it did not, or Prefect was not asked."""

    @classmethod
    def of(cls, facts: DecisionFacts) -> RunExplanation:
        """Explain what became of a decision's run."""
        run, retry = facts.run, retry_command(facts.consumer, facts.decision.target_key)
        told = (run.error, run.attempts, run_words(run, retry), run.message)
        return cls(run.flow_run_id, run_status(run), run.state, run.launched, run.ended, *told)


@shape
class DecisionExplanation:
    """The explanation of one decision."""

    id: UUID
    consumer: str
    deployment_id: UUID
    target_key: str | None
    made: datetime
    words: str
    """Why the decision was made, in one to three sentences."""
    condition: TextOrNull
    """The consumer's present condition as text; null if it has none any more."""
    completed_by: EventById | None
    """The event with which the condition first held; null if the present condition does not hold over the consumed
    events."""
    consumed: int
    """How many events it consumed."""
    events: Sequence[Annotated[AssetEvent, As(EventSummary, summary_of)]]
    """The oldest of these events, at most 1,000. The completing event is always among them."""
    run: RunExplanation
    reads: Sequence[RunRead]
    """Of an Eager or Lazy consumer: what its run read, at most 100 items, those first that had changed."""
    facts: DecisionFacts = field(metadata=HIDDEN)
    names: KnownNames = field(metadata=HIDDEN)

    @property
    def decision(self) -> Decision:
        return self.facts.decision

    def oldest_events(self, most: int) -> list[AssetEvent]:
        """Return at most `most` of the consumed events, the oldest first. The completing event is always among them."""
        return _oldest(self.decision, self.completed_by, most)


def _oldest(decision: Decision, completed_by: AssetEvent | None, most: int) -> list[AssetEvent]:
    found = list(decision.events[:most])
    if completed_by is not None and completed_by not in found:
        found[-1:] = [completed_by]
    return found


def explain_decision(facts: DecisionFacts, consumer: Consumer | None, names: KnownNames) -> DecisionExplanation:
    """Explain why a decision was made, and what became of it.

    Parameters:
        consumer: the consumer as it is now; `None` if it is removed.
        names: the names and links that its schedule needs.
    """
    decision = facts.decision
    completed = None if consumer is None else completing_event(decision, consumer.schedule, names)
    condition = None if consumer is None else consumer.schedule.condition
    described = "" if condition is None else fold_condition(condition, names.label_of, join_gate)
    return DecisionExplanation(
        id=decision.id,
        consumer=facts.consumer,
        deployment_id=decision.deployment_id,
        target_key=decision.target_key,
        made=decision.made,
        words=_words(facts, consumer, described, completed, names),
        condition=described,
        completed_by=completed,
        consumed=facts.consumed,
        events=_oldest(decision, completed, MOST_EVENTS),
        run=RunExplanation.of(facts),
        reads=facts.reads,
        facts=facts,
        names=names,
    )


def completing_event(decision: Decision, schedule: Schedule, names: KnownNames) -> AssetEvent | None:
    """Return the consumed event with which the condition first held, or `None`."""
    if schedule.condition is not None and schedule.condition.has_time_gates:
        return Reach(schedule, decision.target_key, in_order(decision.events), names.tokens_of).completing

    def holds(events: Sequence[AssetEvent]) -> bool:
        return evaluate(schedule, decision.target_key, pending_of(events), names.tokens_of)

    length = first_prefix(decision.events, holds)
    return None if length is None else decision.events[length - 1]


def run_status(run: RunFacts) -> RunStatus:
    """Return `waiting`, `launched`, `ended` or `undeliverable`."""
    if run.undeliverable:
        return "undeliverable"
    if run.flow_run_id is None:
        return "waiting"
    return "launched" if run.ended is None else "ended"


def run_words(run: RunFacts, retry: str) -> str:
    """Return in a sentence what became of a decision's run; `retry` is the command that lets its flow try again."""
    if run.undeliverable:
        return f"It could not be delivered, and has no run: {run.error}."
    if run.flow_run_id is None:
        if run.error:
            return f"Its run is not started yet; {count(run.attempts, 'attempt')} failed, the last with: {run.error}."
        return "Its run is not started yet."
    started = "" if run.launched is None else f" at {at(run.launched)}"
    if run.ended is None and run.not_started is not None:
        return f"It created the flow run {run.flow_run_id}{started}. {not_started_words(run.not_started)}"
    if run.ended is None:
        return f"It started the flow run {run.flow_run_id}{started}."
    ended = f"It started the flow run {run.flow_run_id}{started}, which ended {run.state} at {at(run.ended)}"
    if not run.has_failed:
        return f"{ended}."
    reason = f": {run.message.rstrip('.')}" if run.message else ""
    return f"{ended}{reason}. `{retry}` lets it try again."


def not_started_words(found: NotStarted) -> str:
    """Return what a run waits for that has not started, and what to do about it."""
    if found.taken:
        return f"A worker took it at {at(found.since)}, and it has not begun: the worker's log says why."
    if not found.pool:
        return f"It has been waiting since {at(found.since)} for the process that serves its deployment: start it."
    return (
        f"It has been waiting since {at(found.since)} for a worker of the work pool {found.pool}: "
        f"start one with `prefect worker start --pool {quote(found.pool)}`."
    )


def with_run_in_prefect(
    told: DecisionExplanation, not_started: NotStarted | None, message: str = ""
) -> DecisionExplanation:
    """Return the explanation with what Prefect reports about the decision's run.

    Parameters:
        not_started: `None` if the run has started or Prefect does not know.
        message: the message of the state in which the run failed.
    """
    facts = replace(told.facts, run=replace(told.facts.run, not_started=not_started, message=message))
    return replace(told, facts=facts, run=RunExplanation.of(facts))


def _words(
    facts: DecisionFacts, consumer: Consumer | None, condition: str, completed: AssetEvent | None, names: KnownNames
) -> str:
    decision = facts.decision
    key = "" if decision.target_key is None else f" for the partition {decision.target_key}"
    if decision.kind == "backfill":
        return (
            f"{facts.consumer} runs{key} because a backfill asked for it at {at(decision.made)}; it consumes nothing."
        )
    if decision.because:
        asked = f"{facts.consumer} was asked to run{key} at {at(decision.made)}"
        return f"{asked}, because {causes_in_words(decision.because, names.name_of)}."
    consumed = count(facts.consumed, "event")
    if decision.by_deadline:
        return f"{facts.consumer} runs{key} because its deadline passed at {at(decision.made)}, with {consumed}."
    story = f"{facts.consumer} runs{key} because its condition held at {at(decision.made)}, with {consumed}"
    if completed is None or consumer is None:
        changed = "its schedule is another one now" if condition else "it has no condition any more"
        return f"{story}. Which of them completed it cannot be said: {changed}."
    story += f". The update of {completed.asset.name}"
    when = "" if completed.recorded is None else f", recorded {at(completed.recorded)}"
    story += f" (event {completed.id}{when}) completed {condition}."
    if completed.recorded is not None and completed.recorded < decision.made:
        story += f" {why_later(decision, consumer, completed, facts.newest, facts.before)}"
    return story


@shape
class PartitionExplanation:
    """A pending partition."""

    target_key: str
    holds: bool
    """Its condition holds."""
    since: datetime | None
    """When its first event was recorded, UTC."""
    words: str
    queued: int = 0
    """How many events are queued."""
    received: tuple[str, ...] = ()
    """The upstream keys that have come, of all leaves."""
    missing: tuple[str, ...] = ()
    """The upstream keys for which rolled-up leaves wait, of all leaves."""
    condition: tuple[ConditionRow, ...] = ()
    """The rows of its condition, each rolled-up leaf with its received and missing keys."""
    events: tuple[EventSummary, ...] = ()
    """The events queued for the key, oldest first."""
    last: DecisionExplanation | None = field(default=None, metadata=called("last_decision"))
    """Its latest decision. If nothing is queued, `received` and `condition` tell what that consumed."""
    plan: PlannedTarget | None = None
    """Of an Eager consumer: what it would run for the key now, and what holds it back; null if it is up to date."""
    notes: Sequence[str] = ()
    """Which makers of what it may wait for have failed, in words."""
    failing: Sequence[Failing] = ()
    """Its failed run, if nothing has made it good (4.9)."""


def explain_partition(
    schedule: Schedule,
    queue: QueuedEvents,
    names: KnownNames,
    last: DecisionExplanation | None = None,
    plan: PlannedTarget | None = None,
) -> PartitionExplanation:
    """Explain what a pending partition has and what it waits for, or what its last run did with what has come.

    Parameters:
        queue: the events queued for the target key.
        names: the names and links that the schedule needs.
        last: the last decision for the key; `None` if there was none.
        plan: what an Eager consumer would run for it now.
    """
    key = queue.target_key or ""
    if not queue.events and (last is not None or schedule.keeping is not None):
        return _decided(schedule, key, names, last, plan)
    first = queue.events[0].recorded if queue.events else None
    rows = condition_rows(schedule, queue, names, first)
    holds = bool(queue.events) and bool(rows) and rows[0].state == "satisfied"
    started = "" if first is None else f", the first at {at(first)}"
    have = f"{count(queue.count, 'event')} queued{started}" if queue.events else "nothing queued"
    words = f"Partition {key}: {have}; its condition {'holds' if holds else 'does not hold yet'}."
    if queue.waiting is not None and queue.waiting.words:
        words = f"{words} {queue.waiting.words}"
    missing = dict.fromkeys(key for row in rows for key in row.missing)
    events = tuple(summary_of(event) for event in queue.events)
    return PartitionExplanation(
        *(key, holds, first, words, queue.count, _keys_of(queue.events), tuple(missing), rows, events), last
    )


def _decided(
    schedule: Schedule, key: str, names: KnownNames, last: DecisionExplanation | None, plan: PlannedTarget | None
) -> PartitionExplanation:
    """Explain a partition for which nothing is queued: what its last run consumed, or read, and what became of it."""
    then = "" if plan is None else f" {plan.words}."
    if last is None:
        return PartitionExplanation(key, False, None, f"Partition {key} has not run yet.{then}", plan=plan)
    run, events, rows = last.facts.run, last.decision.events, tuple[ConditionRow, ...]()
    words = f"Partition {key} {_became(run)}."
    if events:
        keys = _keys_of(events)
        of_keys = f" with {count(len(keys), 'key')}" if len(keys) > 1 else ""
        words += f" Its last run consumed {count(last.consumed, 'event')}{of_keys}, and nothing is queued since."
        rows = condition_rows(schedule, QueuedEvents(events, target_key=key), names, None)
    words = f"{words}{then} {last.run.words}"
    return PartitionExplanation(
        key, False, None, words, received=_keys_of(events), condition=rows, last=last, plan=plan
    )


def _became(run: RunFacts) -> str:
    if run.has_failed or run.undeliverable:
        return "failed"
    if run.ended is None:
        return "is running"
    return "is done" if run.state == "Completed" else f"ended {run.state}"


def _keys_of(events: Sequence[AssetEvent]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(event.partition_key for event in events if event.partition_key is not None))
