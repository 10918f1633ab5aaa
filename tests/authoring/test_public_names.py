"""`import assetflow` is quick, loads neither Prefect nor Spark, and offers every public name."""

import subprocess
import sys

import pytest

import assetflow


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
