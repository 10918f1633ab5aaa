"""The pytest plugin that the package installs: the fixture `h`, and one Prefect server for all tests of a session.

pytest imports this module in every project that has assetflow installed, so it imports nothing before a test asks.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from assetflow.testing.environment import Harness


@pytest.fixture(scope="session")
def assetflow_prefect_server() -> Generator[None]:
    """Start a Prefect server with an empty database, for all tests of this session that use `h`."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=90):
        yield


@pytest.fixture
def h(assetflow_prefect_server: None) -> Generator[Harness]:  # noqa: ARG001
    """Return a harness with an empty ledger; what the test deployed is deleted at its end."""
    from assetflow.testing.environment import harness

    with harness(use_running_server=True) as made:
        yield made
