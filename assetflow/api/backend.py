"""The backend of the routes: an installation, and the evaluator that may run in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from assetflow.evaluator.process.held_up import held_up
from assetflow.ledger.lease.standby import Evaluators
from assetflow.ledger.read.reader import Reader
from assetflow.operations.installation import Installation

SIMULATIONS = 2


def _no_troubles() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Backend(Installation):
    """The installation that the routes work on.

    Attributes:
        troubles: returns what the evaluator of this process cannot do now, with the reasons.
        simulations: limits how many simulations run at a time.
    """

    troubles: Callable[[], dict[str, str]] = _no_troubles
    simulations: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIMULATIONS))

    def current_troubles(self, evaluators: Evaluators) -> dict[str, str]:
        """Return what the evaluator cannot do now, with the reasons; one of another process writes it to the ledger."""
        kept = held_up(self.ledger.reader) if evaluators.alive else ()
        return {each.name: each.reason for each in kept} | self.troubles()


def backend_of(request: Request) -> Backend:
    return request.app.state.backend


def reader_of(request: Request) -> Reader:
    return backend_of(request).ledger.reader


TheBackend = Annotated[Backend, Depends(backend_of)]
TheReader = Annotated[Reader, Depends(reader_of)]
