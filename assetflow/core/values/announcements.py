"""What becomes events of ours in Prefect: updates (2.10), failed checks (12.6), missed deadlines (9.8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID, uuid5

from assetflow.core.shapes import HIDDEN, TextOrNull, called, shape
from assetflow.core.values.consumers import MissedDeadline
from assetflow.core.values.events import AssetEvent, CheckResult

_NAMESPACE = UUID("5d6c4f0e-8a6b-5b7e-9d8f-0b6f0e1c2a44")


@shape
class FailedChecks:
    """Data of an asset that failed a check: an update with warnings, or data that was held back."""

    number: int
    """Counts up in the order in which the ledger heard of them."""
    id: UUID
    """The id of the event in Prefect."""
    uri: str
    name: str
    """The name of the asset, or its URI."""
    partition_key: str | None
    at: datetime
    held_back: bool
    """A check of the severity `error` failed, so there is no update."""
    flow_run_id: UUID | None
    flow_run_name: str
    deployment_id: UUID | None
    flow: TextOrNull
    """The flow and the deployment of the run, `flow/deployment`."""
    checks: tuple[CheckResult, ...]
    """What all checks of this data found."""
    posted: datetime | None = field(default=None, metadata=HIDDEN)

    is_good = False

    @property
    def failed(self) -> Sequence[CheckResult]:
        return [each for each in self.checks if not each.passed]

    def describe(self) -> str:
        """Return the failure in words: "orders: held back by no_nulls(id): found 3, wanted no nulls in id"."""
        key = "" if self.partition_key is None else f" {self.partition_key}"
        what = "held back by" if self.held_back else "updated, with a warning of"
        return f"{self.name}{key}: {what} {'; '.join(each.describe() for each in self.failed)}"


def failed_checks(updates: Sequence[AssetEvent], held_back: Sequence[AssetEvent]) -> list[FailedChecks]:
    """Return what is to be told of new updates, and of updates that a failed check has prevented."""
    # Most updates have no checks.
    warned = [each for each in updates if each.checks and not all(result.passed for result in each.checks)]
    if not warned and not held_back:
        return []
    return [*(_of(each, held_back=False) for each in warned), *(_of(each, held_back=True) for each in held_back)]


def _of(event: AssetEvent, *, held_back: bool) -> FailedChecks:
    run = event.source_flow_run
    flow = "" if run is None else "/".join(filter(None, (run.flow_name, run.deployment_name)))
    return FailedChecks(
        number=0,
        id=uuid5(_NAMESPACE, str(event.id)),
        uri=event.uri,
        name=event.asset.name,
        partition_key=event.partition_key,
        at=event.occurred,
        held_back=held_back,
        flow_run_id=None if run is None else run.id,
        flow_run_name="" if run is None else run.name,
        deployment_id=None if run is None else run.deployment_id,
        flow=flow,
        checks=event.checks,
    )


@dataclass(frozen=True)
class Materialized:
    """An update of an outlet that Prefect's log was not seen to have.

    Attributes:
        number: its sequence in the ledger.
        inputs: the URIs of what its deployment declares to read.
        posted: when the event was sent to Prefect last, UTC; `None` if it was not.
    """

    number: int
    event: AssetEvent
    inputs: tuple[str, ...] = ()
    posted: datetime | None = None
    is_good = True

    @property
    def recorded(self) -> datetime:
        """When the ledger recorded the update."""
        assert self.event.recorded is not None
        return self.event.recorded

    @property
    def at(self) -> datetime:
        """When the update occurred, by the producer's clock."""
        return self.event.occurred

    def describe(self) -> str:
        """Return nothing: the update itself was logged."""
        return ""


@shape
class MissedDeadlineRecord(MissedDeadline):
    """A deadline that passed without a decision, with its consumer's name, deployment and automation. Contract 9.8."""

    number: int
    consumer_name: str = field(metadata=called("consumer"))
    deployment_id: UUID = field(metadata=HIDDEN)
    automation_id: UUID | None = field(metadata=HIDDEN)
    posted: datetime | None = field(default=None, metadata=HIDDEN)

    is_good = False

    def describe(self) -> str:
        """Return the missed deadline in words, for logs."""
        key = "" if self.target_key is None else f", partition {self.target_key}"
        return f"{self.consumer_name} missed the deadline of {self.due.isoformat(timespec='seconds')}{key}"
