"""Explain why a decision came later than the update that completed its condition (contract 4.10)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.words import at


class DecisionBefore(NamedTuple):
    """The decision of the same consumer and key before another one.

    Attributes:
        made: when it was made.
        ended: when its run ended, UTC; `None` if it goes on.
    """

    made: datetime
    ended: datetime | None


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
