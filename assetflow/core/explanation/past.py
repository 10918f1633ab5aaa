"""Explain why a consumer ran, or did not, at a moment of the past."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from assetflow.core.explain.consumers import ConsumerExplanation, explain_consumer
from assetflow.core.explain.decisions import DecisionExplanation
from assetflow.core.explain.facts import ConsumerFacts
from assetflow.core.values.words import at, count, iso

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
