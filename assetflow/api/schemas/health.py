"""Whether the process answers and updates lead to runs, and the ledger in numbers."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel


class HealthOut(BaseModel):
    status: Literal["ok"]


class EvaluatorOut(BaseModel):
    host: str
    pid: int
    since: datetime
    renewed: datetime


class ReadyOut(BaseModel):
    status: Literal["ready", "not ready"]
    problems: list[str]
    evaluator: EvaluatorOut | None


class LedgerOut(BaseModel):
    id: UUID
    created: datetime
    prefect_api_url: str | None
    assets: int
    consumers: int
    last_event: int
    last_decision: int
    waiting: int
    running: int
    undeliverable: int
    refused: int
    oldest_waiting: datetime | None
