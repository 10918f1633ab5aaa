"""Why a run exists: what its decision consumed, and which event completed the condition (contract chapter 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assetflow.core.consumers import Decision
from assetflow.core.evaluation import evaluate
from assetflow.core.events import AssetEvent
from assetflow.core.explanation.events import summary_of
from assetflow.core.explanation.facts import DecisionFacts, Names, RunFacts, pending_of
from assetflow.core.explanation.prefixes import first_prefix
from assetflow.core.explanation.words import at, count, iso
from assetflow.core.schedules import Schedule

# A document tells at most so many events of a decision.
MOST_EVENTS = 1_000


@dataclass(frozen=True)
class DecisionExplanation:
    """One decision, told.

    Attributes:
        condition: the consumer's condition as text, as it is now; empty if the consumer has none any more.
        completed_by: the event with which the condition first held; none if, with the schedule of now, it does not.
        words: the story in a sentence or three.
        run_words: what became of it.
    """

    facts: DecisionFacts
    condition: str
    completed_by: AssetEvent | None
    words: str
    run_words: str

    @property
    def decision(self) -> Decision:
        return self.facts.decision

    @property
    def consumed(self) -> int:
        """How many events were consumed."""
        return self.facts.consumed

    def oldest_events(self, most: int) -> list[AssetEvent]:
        """What was consumed, oldest first; of more than `most` events the oldest, and the one that completed it."""
        events = self.decision.events
        found = list(events[:most])
        if self.completed_by is not None and self.completed_by not in found:
            found[-1:] = [self.completed_by]
        return found

    def as_json(self) -> dict[str, object]:
        decision, run = self.decision, self.facts.run
        return {
            "decision": str(decision.id),
            "consumer": self.facts.consumer,
            "deployment": str(decision.deployment_id),
            "target_key": decision.target_key,
            "made": iso(decision.made),
            "words": self.words,
            "condition": self.condition,
            "completed_by": None if self.completed_by is None else str(self.completed_by.id),
            "consumed": self.consumed,
            "events": [summary_of(event).as_json() for event in self.oldest_events(MOST_EVENTS)],
            "run": {
                "flow_run": None if run.flow_run_id is None else str(run.flow_run_id),
                "status": run_status(run),
                "state": run.state,
                "launched": iso(run.launched),
                "ended": iso(run.ended),
                "error": run.error,
                "attempts": run.attempts,
                "words": self.run_words,
            },
        }


def explain_decision(facts: DecisionFacts, schedule: Schedule | None, names: Names) -> DecisionExplanation:
    """Why a decision was made, and what became of it.

    Parameters:
        schedule: the consumer's, as it is now; none if the consumer is gone.
        names: the names and links that the schedule speaks of.
    """
    decision = facts.decision
    completed = None if schedule is None else completing_event(decision, schedule, names)
    condition = "" if schedule is None or schedule.condition is None else schedule.condition.describe()
    return DecisionExplanation(
        facts=facts,
        condition=condition,
        completed_by=completed,
        words=_words(facts, condition, completed),
        run_words=run_words(facts.run),
    )


def completing_event(decision: Decision, schedule: Schedule, names: Names) -> AssetEvent | None:
    """The event after which the condition first held over the consumed events, in ledger order."""

    def holds(events: Sequence[AssetEvent]) -> bool:
        return evaluate(schedule, decision.target_key, pending_of(events), names.tokens_of)

    length = first_prefix(decision.events, holds)
    return None if length is None else decision.events[length - 1]


def run_status(run: RunFacts) -> str:
    """`waiting`, `launched`, `ended` or `undeliverable`."""
    if run.undeliverable:
        return "undeliverable"
    if run.flow_run_id is None:
        return "waiting"
    return "launched" if run.ended is None else "ended"


def run_words(run: RunFacts) -> str:
    """What became of a decision, in a sentence."""
    if run.undeliverable:
        return f"It could not be delivered, and has no run: {run.error}."
    if run.flow_run_id is None:
        if run.error:
            return f"Its run is not started yet; {count(run.attempts, 'attempt')} failed, the last with: {run.error}."
        return "Its run is not started yet."
    started = "" if run.launched is None else f" at {at(run.launched)}"
    if run.ended is None:
        return f"It started the flow run {run.flow_run_id}{started}."
    return f"It started the flow run {run.flow_run_id}{started}, which ended {run.state} at {at(run.ended)}."


def _words(facts: DecisionFacts, condition: str, completed: AssetEvent | None) -> str:
    decision = facts.decision
    key = "" if decision.target_key is None else f" for the partition {decision.target_key}"
    if decision.kind == "backfill":
        return (
            f"{facts.consumer} runs{key} because a backfill asked for it at {at(decision.made)}; it consumes nothing."
        )
    consumed = count(facts.consumed, "event")
    story = f"{facts.consumer} runs{key} because its condition held at {at(decision.made)}, over {consumed}"
    if completed is None:
        changed = "its schedule is another one now" if condition else "it has no condition any more"
        return f"{story}. Which of them completed it cannot be said: {changed}."
    story += f". The update of {completed.asset.name}"
    when = "" if completed.recorded is None else f", recorded {at(completed.recorded)}"
    story += f" (event {completed.id}{when}) completed {condition}."
    if completed.recorded is not None and completed.recorded < decision.made:
        story += " The decision came later: with a later update, a resume, a new schedule, or the end of a run before."
    return story
