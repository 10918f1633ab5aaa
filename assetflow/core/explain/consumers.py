"""Explain why a consumer runs, or why it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from assetflow.core.explain.conditions import ConditionRow, condition_rows
from assetflow.core.explain.decisions import (
    DecisionExplanation,
    PartitionExplanation,
    explain_decision,
    explain_partition,
)
from assetflow.core.explain.events import explain_event
from assetflow.core.explain.facts import ConsumerFacts, QueuedEvents, Waiting
from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.rules.ended_runs import Failing
from assetflow.core.rules.waits import Reason
from assetflow.core.shapes import HIDDEN, called, shape
from assetflow.core.values.consumers import Consumer, Receipt
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.values.schedules import WhilePaused
from assetflow.core.values.words import SHOWN, at, count, joined, since, some

ConsumerState = Literal[
    "waiting", "ready", "running", "paused", "held", "never", "time only", "eager", "lazy", "no schedule", "removed"
]


@shape
class Expiry:
    """An update that expires, and when, if nothing else happens."""

    event_id: UUID
    at: datetime


@shape
class ConsumerExplanation:
    """The explanation of one consumer."""

    id: int
    name: str
    deployment_id: UUID
    state: ConsumerState
    """`ready`: its condition holds, and the next pass decides. `running`: its condition holds, but it coalesces and one
    of its runs goes on. `held`: its deployment is paused. `never`: its condition cannot hold as things stand."""
    words: str
    notes: Sequence[str]
    """Further sentences for people."""
    paused: bool
    held: bool
    while_paused: WhilePaused
    coalesce: bool
    partitioned: bool
    schedule: str
    holds: bool
    """Its condition holds now; of a partitioned consumer, for at least one partition."""
    queued: int
    """The number of queued events."""
    pending_partitions: int | None
    """Of a partitioned consumer: how many keys are pending."""
    condition: Sequence[ConditionRow]
    """The rows of its condition. For a partitioned consumer each partition has its own rows, and these know of no
    events."""
    partitions: Sequence[PartitionExplanation]
    """Its pending partitions, as far as they were read."""
    since: datetime | None
    next_time: datetime | None
    """When the clock starts its next run, UTC."""
    last: DecisionExplanation | None = field(metadata=called("last_decision"))
    """Its latest decision."""
    until: datetime | None
    """The latest instant that it waits for."""
    because: Sequence[Reason]
    """What it waits for, such as `quiet`."""
    waits: Mapping[Reason, datetime | None]
    """The same, each with the instant at which that is over."""
    expires: Sequence[Expiry]
    deadline: datetime | None
    plan: PlannedConsumer | None
    """Of an Eager or Lazy consumer: what it would run now, and what holds it back (8.16)."""
    waiting: Waiting | None = field(metadata=HIDDEN)
    """The waits that the clock knows for the queue of a plain timed consumer; `None` for others."""
    at: datetime | None = None
    """The time that was asked for with `at`."""
    next_decision: DecisionExplanation | None = None
    """With `at`: its first decision afterwards."""
    failing: Sequence[Failing] = ()
    """What of it failed and was not made good (4.9)."""

    @property
    def headline(self) -> str:
        """The state in a few words; of an Eager or Lazy consumer that is not paused, what its plan says."""
        return self.plan.state if self.plan is not None and self.state in ("eager", "lazy") else self.state

    @property
    def next_words(self) -> str:
        """The next decision, as a sentence."""
        if self.next_decision is None:
            return "It has made no decision since then."
        return f"Its next decision came at {at(self.next_decision.made)}. {self.next_decision.words}"


def explain_consumer(facts: ConsumerFacts, now: datetime) -> ConsumerExplanation:
    """Explain why a consumer runs, or why it does not.

    Parameters:
        now: the time after which its next run by the clock is computed.
    """
    consumer, schedule, waiting_since = facts.consumer, facts.consumer.schedule, _waiting_since(facts)
    partitions: tuple[PartitionExplanation, ...] = ()
    queue = QueuedEvents()
    if schedule.is_partitioned:
        partitions = tuple(explain_partition(schedule, each, facts.names) for each in facts.queues)
    elif facts.queues:
        queue = facts.queues[0]
    rows = condition_rows(schedule, queue, facts.names, waiting_since)
    holds = any(each.holds for each in partitions) or (
        bool(queue.events) and bool(rows) and rows[0].state == "satisfied"
    )
    state, waiting = _state(facts, rows, holds), queue.waiting or Waiting({})
    return ConsumerExplanation(
        id=consumer.id,
        name=consumer.name,
        deployment_id=consumer.deployment_id,
        state=state,
        words=_words(facts, state, rows, waiting_since),
        notes=_notes(facts, rows),
        paused=consumer.paused,
        held=consumer.held,
        while_paused=consumer.options.while_paused,
        coalesce=consumer.coalesces,
        partitioned=schedule.is_partitioned,
        schedule=consumer.options.describe(),
        holds=holds,
        queued=facts.queued,
        pending_partitions=facts.pending_keys if schedule.is_partitioned else None,
        condition=rows,
        partitions=partitions,
        since=facts.since,
        next_time=None if facts.removed is not None else next_time(consumer, now),
        last=None if facts.last is None else explain_decision(facts.last, consumer, facts.names),
        until=waiting.until,
        because=[*waiting.waits],
        waits=waiting.waits,
        expires=[Expiry(event.id, moment) for event, moment in waiting.expires],
        deadline=waiting.deadline,
        plan=facts.plan,
        waiting=queue.waiting,
    )


def _waiting_since(facts: ConsumerFacts) -> datetime | None:
    last = None if facts.last is None else facts.last.decision.made
    return last if facts.since is None or (last is not None and last > facts.since) else facts.since


def next_time(consumer: Consumer, now: datetime) -> datetime | None:
    """Return when the clock starts a consumer's next run, UTC, or `None` if it is paused or has no times."""
    timetable = consumer.schedule.timetable
    if timetable is None or consumer.paused:
        return None
    tick = timetable.next_after(now)
    return None if tick is None else tick.time


_AFTER_PAUSE = "Afterwards one run handles what has changed meanwhile."


def _state(facts: ConsumerFacts, rows: tuple[ConditionRow, ...], holds: bool) -> ConsumerState:
    consumer = facts.consumer
    if facts.removed is not None:
        return "removed"
    if consumer.paused:
        return "paused"
    if consumer.held:
        return "held"
    if not rows:
        return consumer.schedule.kind_without_assets
    if holds and _held_back(facts) is not None:
        return "waiting"
    if holds:
        return "running" if consumer.coalesces and facts.running else "ready"
    return "never" if rows[0].state == "never" or not consumer.schedule.tokens else "waiting"


def _held_back(facts: ConsumerFacts) -> Waiting | None:
    """Return what the clock says if it holds every queue back whose condition may hold."""
    told = [each.waiting for each in facts.queues if each.waiting is not None]
    return None if not told or any(each.decides_now for each in told) else told[0]


def _words(
    facts: ConsumerFacts,
    state: ConsumerState,
    rows: tuple[ConditionRow, ...],
    waiting_since: datetime | None,
) -> str:
    name = facts.consumer.name
    match state:
        case "removed":
            return f"The deployment of {name} is gone{since(facts.removed)}."
        case "paused":
            return f"{name} is paused: its automation is switched off. {_while_paused(facts)}"
        case "held" if facts.consumer.schedule.keeping is not None:
            return f"{name} makes no decisions, since its deployment is paused. {_AFTER_PAUSE}"
        case "held":
            return f"{name} makes no decisions, since its deployment is paused; its queue goes on filling."
        case "time only":
            return f"{name} runs by time only: {facts.consumer.schedule.describe()}."
        case "eager" | "lazy" | "no schedule":
            return f"{name} runs {facts.consumer.schedule.describe()}."
        case "ready":
            return f"The condition of {name} holds; the next pass decides."
        case "running":
            return f"The condition of {name} holds; it is decided when its run has ended (coalesce)."
        case "never":
            return f"{name} can never run as things stand: {_hopeless(rows)}."
        case "waiting":
            waiting = _held_back(facts)
            if waiting is not None and "condition" not in waiting.waits and "update" not in waiting.waits:
                return f"The condition of {name} holds. {waiting.words}"
            return _waits(facts, rows, waiting_since)


def _while_paused(facts: ConsumerFacts) -> str:
    if facts.consumer.schedule.keeping is not None:
        return _AFTER_PAUSE
    if facts.consumer.options.while_paused == "keep":
        return "Its queue goes on filling."
    return "What is updated meanwhile is dropped for it."


def _hopeless(rows: tuple[ConditionRow, ...]) -> str:
    never = [f"no asset is named {row.value!r}" for row in rows if row.state == "never" and row.kind == "name"]
    return joined(never) if never else "its condition names nothing"


def _waits(facts: ConsumerFacts, rows: tuple[ConditionRow, ...], waiting_since: datetime | None) -> str:
    name = facts.consumer.name
    if facts.consumer.schedule.is_partitioned and facts.pending_keys:
        return f"{name} waits: {count(facts.pending_keys, 'partition')} begun, none complete."
    if facts.last is not None and not facts.queued:
        last = at(facts.last.decision.made)
        return f"{name} has consumed all updates, last at {last}. It runs again on updates of {_needed(rows)}."
    return f"{name} has been waiting{since(waiting_since)}; it still needs {_needed(rows)}."


def _needed(rows: tuple[ConditionRow, ...]) -> str:
    """Return the assets that would complete the condition, as `a and b`, `a or b`, or `some of a, b`."""
    missing = list(dict.fromkeys(row.label for row in rows if not row.is_gate and row.state != "satisfied"))
    gates = {row.kind for row in rows if row.is_gate and row.state != "satisfied"}
    if len(missing) > SHOWN or len(gates) > 1:
        return f"some of {some(missing)}" if "any" in gates else some(missing)
    return joined(missing, "or" if "any" in gates else "and")


def _notes(facts: ConsumerFacts, rows: tuple[ConditionRow, ...]) -> list[str]:
    consumer = facts.consumer
    notes = [] if facts.refused is None else [f"What was deployed last is refused. {facts.refused.words}."]
    notes += [note for each in facts.queues[:1] if each.waiting is not None for note in each.waiting.notes]
    notes += [
        f"It is scheduled on what it produces ({' → '.join(way)}): each of its runs may start the next, without end."
        for way in facts.loops
    ]
    if consumer.paused and consumer.held:
        notes.append("Its deployment is paused as well.")
    if consumer.paused and facts.queued:
        notes.append("What was queued before it was paused stays queued, and is judged when it is resumed.")
    decided = None if facts.last is None else facts.last.decision.made
    later = (each for each in facts.newest if decided is None or (each[0].recorded or decided) > decided)
    notes += filter(None, (_unheeded(facts, event, receipt) for event, receipt in later))
    notes += [
        f"No asset is named {row.value!r}: that part is never satisfied."
        for row in rows
        if row.state == "never" and row.kind == "name"
    ]
    if consumer.coalesces:
        notes.append("Updates that come while a run of it has not ended become one run (coalesce).")
    if facts.last is not None and facts.last.run.undeliverable:
        notes.append(
            f"Its last decision, of {at(facts.last.decision.made)}, could not be delivered: {facts.last.run.error}. "
            f"Replay it with `assetflow queue replay {facts.last.decision.id}`."
        )
    return notes


def _unheeded(facts: ConsumerFacts, event: AssetEvent, receipt: Receipt | None) -> str:
    """Return why the newest update of an asset that the consumer waits for does not count; "" if it did (4.10)."""
    name, since, deployed = facts.consumer.name, facts.since, facts.consumer.deployed
    what = f"The update of {event.asset.name} at {at(event.occurred)}"
    if receipt is not None:
        told = explain_event(event, [receipt], {facts.consumer.id: name}).receipts[0]
        return "" if told.status in ("queued", "consumed") else f"{what} does not count: {told.words}."
    recorded = event.recorded
    if recorded is not None and since is not None and recorded < since:
        return f"{what} came before {name} was deployed (at {at(since)})."
    if recorded is not None and deployed is not None and recorded < deployed:
        then = "" if facts.consumer.switched_late else f" (at {at(deployed)})"
        return f"{what} came before {name} was deployed with the schedule that names it{then}."
    return ""


_BY_THE_PRESENT = "This goes by the schedule that it has now. Whether it was paused then is not kept."


def explain_then(
    facts: ConsumerFacts, moment: datetime, following: DecisionExplanation | None, dropped: int = 0
) -> ConsumerExplanation:
    """Explain why a consumer ran, or did not, at a moment.

    Parameters:
        facts: the consumer and its queues as they were then.
        following: its first decision afterwards.
        dropped: how many updates it had refused since its last decision, because it was paused.
    """
    running = replace(facts.consumer, paused=False, held=False)
    told = explain_consumer(replace(facts, consumer=running), moment)
    since = facts.since
    if since is not None and moment < since:
        words = f"{told.name} was not deployed yet at {at(moment)}: updates count for it since {at(since)}."
        return replace(told, words=words, notes=(), at=moment, next_decision=following)
    refused = f"{count(dropped, 'update')} did not count before that, because it was paused."
    notes = [*told.notes, *([refused] if dropped else []), _BY_THE_PRESENT]
    words = told.words if facts.consumer.schedule.keeping is None else _kept_then(facts, moment)
    return replace(told, words=f"At {at(moment)}: {words}", notes=notes, at=moment, next_decision=following)


def _kept_then(facts: ConsumerFacts, moment: datetime) -> str:
    """Return what an Eager or Lazy consumer had made of its inputs by a moment."""
    name, last = facts.consumer.name, facts.last
    if last is None:
        before = f"{name} had not been asked to run yet."
    else:
        because = causes_in_words(last.decision.because) or f"a {last.decision.kind} asked for it"
        ended = last.run.ended
        became = "its run had not started" if last.run.launched is None else "its run had not ended"
        if ended is not None and ended <= moment:
            became = f"its run ended {last.run.state} at {at(ended)}"
        before = f"{name} was last asked to run at {at(last.decision.made)}, because {because}; {became}."
    if not facts.updated:
        return f"{before} Nothing that it reads had been updated since then, so that nothing was due."
    updated = some([f"{each.asset.name} at {at(each.recorded or each.occurred)}" for each in facts.updated], 3)
    return f"{before} Since then had been updated: {updated}."
