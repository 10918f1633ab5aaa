"""Explain why a consumer runs, or why it does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from assetflow.core.explain.conditions import ConditionRow, condition_rows
from assetflow.core.explain.decisions import DecisionExplanation, explain_decision
from assetflow.core.explain.facts import ConsumerFacts, QueuedEvents
from assetflow.core.explain.partitions import PartitionExplanation, explain_partition
from assetflow.core.explain.waiting import Waiting
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.words import SHOWN, at, count, iso, joined, since, some

ConsumerState = Literal[
    "waiting", "ready", "running", "paused", "held", "never", "time only", "eager", "lazy", "removed"
]


@dataclass(frozen=True)
class ConsumerExplanation:
    """The explanation of one consumer.

    Attributes:
        state: `ready`: its condition holds, and the next pass decides. `running`: its condition holds, but it coalesces
            and one of its runs goes on. `held`: its deployment is paused. `never`: its condition cannot hold as things
            stand.
        condition: the rows of its condition. For a partitioned consumer each partition has its own rows, and these
            know of no events.
        partitions: its pending partitions, as far as they were read.
        queued: the number of queued events.
        notes: further sentences for people.
        last: its latest decision.
        next_time: when the clock starts its next run, UTC.
    """

    facts: ConsumerFacts
    state: ConsumerState
    words: str
    condition: tuple[ConditionRow, ...]
    partitions: tuple[PartitionExplanation, ...]
    queued: int
    notes: tuple[str, ...]
    last: DecisionExplanation | None
    next_time: datetime | None

    @property
    def name(self) -> str:
        return self.facts.consumer.name

    @property
    def waiting(self) -> Waiting | None:
        """The waits that the clock knows for the queue of a plain timed consumer; `None` for others."""
        plain = not self.facts.consumer.schedule.is_partitioned and bool(self.facts.queues)
        return self.facts.queues[0].waiting if plain else None

    @property
    def holds(self) -> bool:
        """True if the condition holds now; of a partitioned consumer, for at least one partition."""
        if self.facts.consumer.schedule.is_partitioned:
            return any(partition.holds for partition in self.partitions)
        return bool(self.queued) and bool(self.condition) and self.condition[0].state == "satisfied"

    def as_json(self) -> dict[str, object]:
        consumer = self.facts.consumer
        return {
            "id": consumer.id,
            "name": consumer.name,
            "deployment_id": str(consumer.deployment_id),
            "state": self.state,
            "words": self.words,
            "notes": list(self.notes),
            "paused": consumer.paused,
            "held": consumer.held,
            "while_paused": consumer.options.while_paused,
            "coalesce": consumer.coalesces,
            "partitioned": consumer.schedule.is_partitioned,
            "schedule": consumer.options.describe(),
            "holds": self.holds,
            "queued": self.queued,
            "pending_partitions": self.facts.partition_count if consumer.schedule.is_partitioned else None,
            "condition": [row.as_json() for row in self.condition],
            "partitions": [partition.as_json() for partition in self.partitions],
            "since": iso(self.facts.since),
            "next_time": iso(self.next_time),
            "last_decision": None if self.last is None else self.last.as_json(),
            **(self.waiting or Waiting({})).as_json(),
            "at": None,
            "next_decision": None,
        }


def explain_consumer(facts: ConsumerFacts, now: datetime) -> ConsumerExplanation:
    """Explain why a consumer runs, or why it does not.

    Parameters:
        now: the time after which its next run by the clock is computed.
    """
    schedule = facts.consumer.schedule
    waiting_since = _waiting_since(facts)
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
    state = _state(facts, rows, holds)
    return ConsumerExplanation(
        facts=facts,
        state=state,
        words=_words(facts, state, rows, waiting_since),
        condition=rows,
        partitions=partitions,
        queued=facts.queue_size,
        notes=tuple(_notes(facts, rows)),
        last=None if facts.last is None else explain_decision(facts.last, schedule, facts.names),
        next_time=None if facts.removed is not None else next_time(facts.consumer, now),
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
        case "eager" | "lazy":
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
    if facts.consumer.schedule.is_partitioned and facts.partition_count:
        return f"{name} waits: {count(facts.partition_count, 'partition')} begun, none complete."
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
    if consumer.paused and facts.queue_size:
        notes.append("What was queued before it was paused stays queued, and is judged when it is resumed.")
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


_BY_THE_PRESENT = "This goes by the schedule that it has now. Whether it was paused then is not kept."


@dataclass(frozen=True)
class PastExplanation:
    """The explanation of a consumer as of a moment.

    Attributes:
        told: the explanation as it would have been given then.
        next: its first decision afterwards; `None` if there is none.
    """

    moment: datetime
    told: ConsumerExplanation
    next: DecisionExplanation | None = None

    @property
    def next_words(self) -> str:
        """The next decision, as a sentence."""
        if self.next is None:
            return "It has made no decision since then."
        return f"Its next decision came at {at(self.next.decision.made)}. {self.next.words}"

    def as_json(self) -> dict[str, object]:
        following = None if self.next is None else self.next.as_json()
        return self.told.as_json() | {"at": iso(self.moment), "next_decision": following}


def explain_then(
    facts: ConsumerFacts, moment: datetime, following: DecisionExplanation | None, dropped: int = 0
) -> PastExplanation:
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
        return PastExplanation(moment, replace(told, words=words, notes=()), following)
    notes = [*told.notes, *([_refused(dropped)] if dropped else []), _BY_THE_PRESENT]
    return PastExplanation(moment, replace(told, words=f"At {at(moment)}: {told.words}", notes=tuple(notes)), following)


def _refused(dropped: int) -> str:
    return f"{count(dropped, 'update')} did not count before that, because it was paused."
