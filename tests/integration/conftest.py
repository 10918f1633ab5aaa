"""An evaluator of a test's own on the shared Prefect server, and a harness on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assetflow.testing import Harness, harness
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation


@pytest.fixture
def here(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(prefect_server, tmp_path)
    yield installation
    installation.close()


@pytest.fixture
def h(prefect_here: PrefectServer) -> Iterator[Harness]:  # noqa: ARG001
    with harness(use_running_server=True) as made:
        yield made
