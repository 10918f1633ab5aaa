"""An evaluator of a test's own, and one for a module, on the shared Prefect server."""

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


@pytest.fixture(scope="module")
def _at_work(prefect_server: PrefectServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    installation = Installation(prefect_server, tmp_path_factory.mktemp("evaluator"))
    installation.start()
    yield installation
    installation.close()


@pytest.fixture
def at_work(_at_work: Installation) -> Iterator[Installation]:
    """The evaluator that all tests of a module share, with names and deployments of this test's own."""
    _at_work.rename()
    yield _at_work
    _at_work.remove_deployments()
