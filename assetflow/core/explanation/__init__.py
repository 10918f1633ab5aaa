"""Why something ran, or did not: one explanation, which command line, API, pages and artifacts all show.

Pure functions from facts to values; each value has `words` that a person says, and `as_json()`.
"""

from assetflow.core.explanation.conditions import ConditionRow, condition_rows
from assetflow.core.explanation.consumers import ConsumerExplanation, explain_consumer, next_time
from assetflow.core.explanation.decisions import (
    MOST_EVENTS,
    DecisionExplanation,
    completing_event,
    explain_decision,
    run_status,
    run_words,
)
from assetflow.core.explanation.events import (
    EventExplanation,
    EventSummary,
    ReceiptExplanation,
    explain_event,
    source_of,
    summary_of,
)
from assetflow.core.explanation.facts import ConsumerFacts, DecisionFacts, Names, QueuedEvents, RunFacts
from assetflow.core.explanation.partitions import PartitionExplanation, explain_partition

__all__ = [
    "MOST_EVENTS",
    "ConditionRow",
    "ConsumerExplanation",
    "ConsumerFacts",
    "DecisionExplanation",
    "DecisionFacts",
    "EventExplanation",
    "EventSummary",
    "Names",
    "PartitionExplanation",
    "QueuedEvents",
    "ReceiptExplanation",
    "RunFacts",
    "completing_event",
    "condition_rows",
    "explain_consumer",
    "explain_decision",
    "explain_event",
    "explain_partition",
    "next_time",
    "run_status",
    "run_words",
    "source_of",
    "summary_of",
]
