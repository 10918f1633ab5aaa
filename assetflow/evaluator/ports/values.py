"""What passes between the evaluator's loops, the ledger and Prefect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from assetflow.core.freshness.records import Asked
from assetflow.core.values.consumers import Automation, Consumer, Decision

# A JSON object, as Prefect's API gives and takes it.
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Refused:
    """An event from Prefect that breaks a rule of contract 1 or 2; the ledger keeps it. Contract 2.6."""

    id: UUID
    event: Json
    reason: str
    rule: str | None = None


@dataclass(frozen=True)
class Written:
    """The result of a recording, for the log."""

    events: int = 0
    decisions: int = 0
    new_assets: Sequence[str] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class TimePassed:
    """The result of letting time act on timed consumers.

    Attributes:
        decisions: the number of decisions.
        next: the next instant at which time may change something, UTC; `None` if there is none.
        told: how many states of freshness policies changed, which has to be told.
    """

    decisions: int = 0
    next: datetime | None = None
    told: int = 0


@dataclass(frozen=True)
class Launch:
    """A decision without a run, the name of its consumer, and the automation that shows the consumer's schedule.

    Attributes:
        asked: what an Eager or Lazy flow is asked for; `None` for other decisions.
    """

    decision: Decision
    consumer: str
    automation: Automation | None = None
    asked: Asked | None = None


@dataclass(frozen=True)
class RunWithoutNote:
    """The run of a decision that, as far as the ledger knows, has no note yet."""

    decision: UUID
    consumer: str
    flow_run: UUID


@dataclass(frozen=True)
class TimedConsumer:
    """A consumer with a timetable, and the automation that shows its schedule."""

    consumer: Consumer
    automation: Automation | None = None


@dataclass(frozen=True)
class KnownConsumer:
    """A consumer of the ledger, with the text of its declaration and the id of the automation that shows it."""

    consumer: Consumer
    text: str
    automation_id: UUID | None = None
