"""The API behind a real server, on a ledger of each test's own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from assetflow.api.app import create_app
from assetflow.api.backend import Backend
from assetflow.api.security import Access
from assetflow.ledger import Ledger
from tests.api.serving import serving
from tests.cli.shop import NOON

Api = httpx.Client
MakeApi = Callable[..., Api]


@pytest.fixture(scope="session")
def new_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new ledger's file: copying it is faster than making one."""
    place = tmp_path_factory.mktemp("api-ledger") / "ledger.db"
    Ledger.open(place, now=NOON).close()
    return place


@pytest.fixture
def ledger(tmp_path: Path, new_ledger: Path) -> Iterator[Ledger]:
    shutil.copy(new_ledger, tmp_path / "ledger.db")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        yield ledger


@pytest.fixture
def make_api(ledger: Ledger) -> Iterator[MakeApi]:
    """Makes clients, each of an API of its own."""
    with ExitStack() as opened:

        def make(access: Access | None = None, **backend: Any) -> Api:
            url = opened.enter_context(serving(create_app(Backend(ledger, **backend), access)))
            return opened.enter_context(httpx.Client(base_url=url, timeout=60))

        yield make


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api()
