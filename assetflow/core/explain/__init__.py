"""Explanations of why a consumer runs or does not. The command line, the API, the pages and the notes all show them.

Pure functions turn facts into explanations. Each explanation has `words`, a text for people,, and is a shape.
"""

from __future__ import annotations

from assetflow.core.explain.conditions import ConditionRow, condition_rows
from assetflow.core.explain.consumers import (
    ConsumerExplanation,
    explain_consumer,
    explain_then,
    next_time,
)
from assetflow.core.explain.decisions import (
    MOST_EVENTS,
    DecisionExplanation,
    PartitionExplanation,
    completing_event,
    explain_decision,
    explain_partition,
    not_started_words,
    run_status,
    run_words,
    with_run_in_prefect,
)
from assetflow.core.explain.events import (
    EventExplanation,
    EventSummary,
    ReceiptExplanation,
    ShownEvent,
    explain_event,
    shown_event,
    source_of,
    summary_of,
)
from assetflow.core.explain.facts import ConsumerFacts, DecisionFacts, KnownNames, NotStarted, QueuedEvents, RunFacts

__all__ = [
    "MOST_EVENTS",
    "ConditionRow",
    "ConsumerExplanation",
    "ConsumerFacts",
    "DecisionExplanation",
    "DecisionFacts",
    "EventExplanation",
    "EventSummary",
    "KnownNames",
    "NotStarted",
    "PartitionExplanation",
    "QueuedEvents",
    "ReceiptExplanation",
    "RunFacts",
    "ShownEvent",
    "completing_event",
    "condition_rows",
    "explain_consumer",
    "explain_decision",
    "explain_event",
    "explain_partition",
    "explain_then",
    "next_time",
    "not_started_words",
    "run_status",
    "run_words",
    "shown_event",
    "source_of",
    "summary_of",
    "with_run_in_prefect",
]
