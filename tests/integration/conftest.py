"""An evaluator of a test's own, on the shared Prefect server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation


@pytest.fixture
def here(prefect_server: PrefectServer, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(prefect_server, tmp_path)
    yield installation
    installation.close()
