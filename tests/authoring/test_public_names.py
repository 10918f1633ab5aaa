"""`import assetflow` is quick, loads neither Prefect nor Spark, and offers every public name."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

import assetflow

ROOT = Path(assetflow.__file__)


def test_the_names_are_those_that_type_checkers_see() -> None:
    (block, *_) = [each for each in ast.parse(ROOT.read_text()).body if isinstance(each, ast.If)]
    imports = [each for each in block.body if isinstance(each, ast.ImportFrom)]
    typed = {name.name: each.module for each in imports for name in each.names}
    assert typed == {name: place_of(name) for name in assetflow.__all__ if name != "__version__"}


def place_of(name: str) -> str | None:
    """Return the module from which Python takes a name on its first use."""
    return cast("dict[str, str]", vars(assetflow)["_PLACE_OF"]).get(name)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Dataset", "import Asset"),
        ("DatasetAlias", "import AssetAlias"),
        ("DatasetAll", "`&`"),
        ("DatasetAny", "`|`"),
        ("DatasetOrTimeSchedule", "import AssetOrTimeSchedule"),
        ("DAG", "@flow(schedule=...)"),
        ("dag", "@flow(schedule=...)"),
    ],
)
def test_a_name_of_airflows_says_what_to_use(name: str, word: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(f"from assetflow import {name}")
    assert word in str(caught.value)
    with pytest.raises(ImportError, match=name):
        getattr(assetflow, name)
    assert name not in dir(assetflow)


HEAVY = ("prefect", "pyspark", "sqlalchemy", "pydantic", "httpx")


def loaded(code: str) -> list[str]:
    """Return the heavy packages that a new Python process has loaded after running some code."""
    code = f"import sys; {code}; print(*[name for name in {HEAVY} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_pure_names_import_neither_prefect_nor_spark() -> None:
    names = (
        "from assetflow import Asset, AssetAlias, AssetOrTimeSchedule, AssetEvent, PartitionedAssetTimetable, simulate",
        "from assetflow.partitions import DayWindow, RollupMapper",
        "from assetflow.timetables import CronTriggerTimetable",
        "import assetflow; assetflow.__version__",
    )
    assert loaded("; ".join(names)) == []
