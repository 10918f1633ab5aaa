"""For the live examples: an evaluator with an empty ledger in this process, on the server that all tests share."""

from collections.abc import Iterator

import pytest

from assetflow.testing import Harness, harness
from tests.environment.prefect_server import PrefectServer


@pytest.fixture
def h(prefect_here: PrefectServer) -> Iterator[Harness]:  # noqa: ARG001
    with harness(use_running_server=True) as made:
        yield made
