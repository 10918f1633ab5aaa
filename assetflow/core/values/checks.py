"""What a check of an update's data found. Contract chapter 12."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from assetflow.core.shapes import shape

Severity = Literal["error", "warn"]


@shape
class CheckResult:
    """What one check found in the data of one update.

    >>> from assetflow import AssetEvent
    >>> def failed_checks(event: AssetEvent) -> list[str]:
    ...     return [result.check for result in event.checks if not result.passed]

    Contract 12.5.

    Attributes:
        check: the name of the check.
        severity: "error" if its failure holds the data back, "warn" if it only warns.
        passed: True if the data keeps the rule.
        wanted: the rule, in words.
        found: the number that was compared, such as the number of rows that break the rule; `None` without one.
        note: what else there is to say: the cause, if the check could not be made.
        sample: some of the rows that break the rule, with secrets redacted.
    """

    check: str
    severity: Severity
    passed: bool
    wanted: str
    found: int | float | None = None
    note: str = ""
    sample: tuple[Mapping[str, object], ...] = ()

    def describe(self) -> str:
        """Return the result in words: `no_nulls(id): found 3, wanted no nulls in id`."""
        found = () if self.found is None else (f"found {self.found:,}",)
        note = (self.note,) if self.note else ()
        rows = (f"such as {json.dumps(self.sample[0], ensure_ascii=False)}",) if self.sample else ()
        return f"{self.check}: " + ", ".join([*found, f"wanted {self.wanted}", *note, *rows])


@shape
class CheckedData:
    """What the checks of an asset found at one time."""

    at: datetime
    partition_key: str | None
    event_id: UUID | None
    """The update; null if a check held the data back."""
    flow_run_id: UUID | None
    checks: tuple[CheckResult, ...]


@shape
class CheckHistory:
    """What the checks of an asset found lately."""

    uri: str
    history: Sequence[CheckedData]
    """The newest first."""
