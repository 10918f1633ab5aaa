"""An update that becomes one of Prefect's own asset events. Contract 2.10."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from assetflow.core.values.events import AssetEvent


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
