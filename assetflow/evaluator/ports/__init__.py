"""What the evaluator's loops need from outside: the ledger, and Prefect.

`process/ledger_thread.py` and `assetflow.prefect_io` implement these protocols, and `process/composition.py` puts the
implementations in. Tests put in simple fakes.
"""

from __future__ import annotations

from assetflow.evaluator.ports.ledger import (
    ClockLedger,
    ConsumerLedger,
    EvaluatorLedger,
    FreshnessLedger,
    Ledger,
    TimerLedger,
)
from assetflow.evaluator.ports.prefect import (
    AutomationBoard,
    ConsumerRegistry,
    DeploymentFeed,
    Json,
    KnownConsumer,
    Launch,
    NoteBoard,
    PastDecisions,
    Prefect,
    PrefectDeployments,
    RecordingLog,
    Refused,
    RunMaker,
    RunsGoingOn,
    RunWithoutNote,
    TimedConsumer,
    TimePassed,
    TimeRunMaker,
    UpdateLog,
    Written,
)

__all__ = [
    "AutomationBoard",
    "ClockLedger",
    "ConsumerLedger",
    "ConsumerRegistry",
    "DeploymentFeed",
    "EvaluatorLedger",
    "FreshnessLedger",
    "Json",
    "KnownConsumer",
    "Launch",
    "Ledger",
    "NoteBoard",
    "PastDecisions",
    "Prefect",
    "PrefectDeployments",
    "RecordingLog",
    "Refused",
    "RunMaker",
    "RunWithoutNote",
    "RunsGoingOn",
    "TimePassed",
    "TimeRunMaker",
    "TimedConsumer",
    "TimerLedger",
    "UpdateLog",
    "Written",
]
