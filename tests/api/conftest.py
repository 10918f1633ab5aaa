"""The API behind a real server, on a ledger of each test's own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from assetflow.api.app import create_app
from assetflow.api.requests import Backend
from assetflow.api.security import Access
from assetflow.ledger import Ledger
from tests.api.serving import serving

Api = httpx.Client
MakeApi = Callable[..., Api]


@pytest.fixture
def make_api(ledger: Ledger) -> Iterator[MakeApi]:
    """Makes clients, each of an API of its own."""
    with ExitStack() as opened:

        def make(access: Access | None = None, **backend: Any) -> Api:
            url = opened.enter_context(serving(create_app(Backend(ledger, **backend), access)))
            return opened.enter_context(httpx.Client(base_url=url, timeout=60, verify=False))

        yield make


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api()
