"""The examples in the docstrings of `publish`, `read` and `spark_task` run, in a real session."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.public import examples, public, run
from tests.docs.test_docstrings import WITH_SPARK
from tests.environment.prefect_server import PrefectServer

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", WITH_SPARK)
def test_the_examples_of_a_docstring_run(name: str, spark: Any) -> None:
    test = examples(name, public()[name])
    assert test is not None
    run(test, spark=spark)


@pytest.mark.prefect
def test_the_flow_in_the_docstring_of_spark_task_writes_its_rows(spark: Any, prefect_here: PrefectServer) -> None:  # noqa: ARG001
    test = examples("assetflow.spark_task", public()["assetflow.spark_task"])
    assert test is not None
    assert run(test)["produce"]() == 2
