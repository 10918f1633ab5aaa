"""Links to Prefect's UI."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from prefect.settings import PREFECT_API_URL, PREFECT_UI_URL

from assetflow.core.values.redaction import without_passwords
from assetflow.ledger.read.reader import Reader


@dataclass(frozen=True)
class PrefectLinks:
    """Links to pages of Prefect's UI; empty texts if its address is unknown."""

    base: str

    @classmethod
    def of(cls, reader: Reader) -> PrefectLinks:
        """Return links to the UI that Prefect's settings name, or that of the server to which the ledger belongs."""
        named = PREFECT_UI_URL.value()
        api = PREFECT_API_URL.value() or reader.prefect_api_url() or ""
        base = without_passwords(str(named or api.rstrip("/").removesuffix("/api")))
        return cls(base.rstrip("/") if base.startswith(("http://", "https://")) else "")

    def flow_run(self, number: UUID | str) -> str:
        return self._to("runs/flow-run", number)

    def task_run(self, number: UUID | str) -> str:
        return self._to("runs/task-run", number)

    def deployment(self, number: UUID | str) -> str:
        return self._to("deployments/deployment", number)

    def automation(self, number: UUID | str) -> str:
        return self._to("automations/automation", number)

    def _to(self, place: str, number: UUID | str) -> str:
        return f"{self.base}/{place}/{UUID(str(number))}" if self.base else ""
