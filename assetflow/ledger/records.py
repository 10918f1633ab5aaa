"""What the reader gives: the core's values with what the ledger knows beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from assetflow.core.consumers import Consumer, DecisionKind, Receipt
from assetflow.core.explanation.words import iso
from assetflow.core.redaction import redact
from assetflow.core.timers import Timer

DecisionStatus = Literal["waiting", "launched", "ended", "undeliverable"]


@dataclass(frozen=True)
class AssetRecord:
    """An asset: its number is stable; group and extra are as declared last."""

    id: int
    uri: str
    group: str
    extra: Mapping[str, object]
    first_seen: datetime
    names: tuple[str, ...]
    aliases: tuple[str, ...]


@dataclass(frozen=True)
class Activity:
    """How many events an asset has, and when the newest one occurred."""

    events: int
    last: datetime


@dataclass(frozen=True)
class EventQuery:
    """Which events; what is none does not matter.

    Attributes:
        uri, alias: of this asset; that came through this alias.
        after, before: occurred later, or earlier, than this time; UTC.
        from_sequence, to_sequence: sequences at least and at most this.
        partition_key, flow_run_id: with this key; made by this flow run.
    """

    uri: str | None = None
    alias: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    from_sequence: int | None = None
    to_sequence: int | None = None
    partition_key: str | None = None
    flow_run_id: UUID | None = None


@dataclass(frozen=True)
class RefusedRecord:
    """Something that was sent as an event and is none."""

    number: int
    id: UUID
    payload: object
    reason: str
    rule: str | None
    source: str
    at: datetime

    def as_json(self) -> dict[str, object]:
        """What was refused as the API and `--json` show it, without the values that look like secrets."""
        return {
            "id": str(self.id),
            "at": iso(self.at),
            "reason": self.reason,
            "rule": self.rule,
            "source": self.source,
            "payload": redact(self.payload),
        }


@dataclass(frozen=True)
class ConsumerRecord:
    """A consumer with what the evaluator needs to keep it in step; `declaration` is the stored text."""

    consumer: Consumer
    flow_id: UUID | None
    declaration: str
    automation_id: UUID | None
    since: datetime
    removed_at: datetime | None


@dataclass(frozen=True)
class TimerRecord:
    """The timer of a consumer, which may have been removed since.

    Attributes:
        inherited: what the runs that were made ahead took over from their deployment.
    """

    consumer: int
    name: str
    deployment_id: UUID
    timer: Timer
    inherited: str = ""


@dataclass(frozen=True)
class ReceiptRecord:
    """A receipt, the name of its consumer (none for `no_consumer`), and when it was written."""

    receipt: Receipt
    consumer_name: str | None
    at: datetime


@dataclass(frozen=True)
class DecisionRecord:
    """A decision and what became of it. `number` counts up in the order in which decisions were made."""

    number: int
    id: UUID
    consumer: int
    consumer_name: str
    automation_id: UUID | None
    deployment_id: UUID
    target_key: str | None
    made: datetime
    kind: DecisionKind
    status: DecisionStatus
    flow_run_id: UUID | None
    launched: datetime | None
    ended: datetime | None
    attempts: int
    error: str
    run_state: str

    def as_json(self) -> dict[str, object]:
        """The decision as the API and `--json` show it."""
        return {
            "number": self.number,
            "decision": str(self.id),
            "consumer": self.consumer_name,
            "deployment": str(self.deployment_id),
            "target_key": self.target_key,
            "made": iso(self.made),
            "kind": self.kind,
            "status": self.status,
            "flow_run": None if self.flow_run_id is None else str(self.flow_run_id),
            "state": self.run_state,
            "launched": iso(self.launched),
            "ended": iso(self.ended),
            "attempts": self.attempts,
            "error": self.error,
        }


@dataclass(frozen=True)
class KeyDecisions:
    """What became of a target key.

    Attributes:
        latest: the id of the latest decision, whatever its kind.
        state: the end of its run as Prefect calls it; "Running" or "Waiting" before, "Undeliverable" without a run.
        backfills: how many decisions backfills made for the key.
    """

    latest: UUID
    state: str
    flow_run_id: UUID | None
    made: datetime
    backfills: int = 0

    @property
    def is_done(self) -> bool:
        return self.state == "Completed"

    @property
    def is_open(self) -> bool:
        return self.state in ("Running", "Waiting")


@dataclass(frozen=True)
class Edge:
    """A deployment produces or reads an asset, a name or an alias; `label` is the asset's readable name."""

    deployment_id: UUID
    name: str
    direction: Literal["produces", "reads"]
    kind: Literal["uri", "name", "alias"]
    value: str
    label: str | None


@dataclass(frozen=True)
class Status:
    """The ledger in numbers; `oldest_waiting` is when the oldest decision without a run was made."""

    assets: int
    consumers: int
    last_event: int
    last_decision: int
    waiting: int
    running: int
    undeliverable: int
    refused: int
    oldest_waiting: datetime | None
