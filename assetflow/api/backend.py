"""What the routes work on: a ledger, Prefect, and the evaluator that may run in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from assetflow.ledger import Ledger
from assetflow.ledger.reader import Reader
from assetflow.prefect_io.rest import PrefectApi, prefect_api

SIMULATIONS = 2

OpenPrefect = Callable[[], AbstractAsyncContextManager[PrefectApi]]


def _nothing() -> None: ...


def _no_troubles() -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Backend:
    """What the API works on.

    Attributes:
        ledger: open for reading and writing.
        prefect: opens Prefect's API, for what is done there: runs, switches.
        on_recorded: is called, from any thread, after something that may have led to decisions.
        troubles: what the evaluator of this process cannot do now, with the reasons.
        now: the clock.
        simulations: lets in so many simulations at once.
    """

    ledger: Ledger
    prefect: OpenPrefect = prefect_api
    on_recorded: Callable[[], None] = _nothing
    troubles: Callable[[], dict[str, str]] = _no_troubles
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    simulations: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIMULATIONS))


def backend_of(request: Request) -> Backend:
    return request.app.state.backend


def reader_of(request: Request) -> Reader:
    return backend_of(request).ledger.reader


TheBackend = Annotated[Backend, Depends(backend_of)]
TheReader = Annotated[Reader, Depends(reader_of)]
