"""`@asset` with a Spark session: what the function returns is the asset's data."""

from pathlib import Path
from typing import Any

import pytest

from assetflow.authoring.asset_decorator import AssetDefinition, asset
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Recording
from assetflow.spark.reading import read

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.prefect,
    pytest.mark.usefixtures("spark", "prefect_here"),
]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Recording]:
    """What tasks record, instead of sending it to Prefect."""
    monkeypatch.setenv("ASSETFLOW_SPARK_MASTER", "local[2]")
    recordings: list[Recording] = []
    monkeypatch.setattr("assetflow.authoring.attempts.deliver", recordings.append)
    return recordings


@pytest.mark.parametrize("spark_option", [None, True, {"conf": {"spark.sql.shuffle.partitions": "2"}}])
def test_a_first_parameter_spark_makes_it_a_spark_task(
    tmp_path: Path, recorded: list[Recording], spark_option: Any
) -> None:
    @asset(uri=f"file://{tmp_path}/numbers", spark=spark_option)
    def numbers(spark: Any, rows: int = 5) -> Any:
        return spark.range(rows)

    assert isinstance(numbers, AssetDefinition)
    numbers(rows=3)
    ((event,),) = [each.events for each in recorded]
    assert (event.uri, event.metrics["rows"]) == (numbers.asset.uri, 3)
    assert read(numbers.asset).count() == 3


def test_several_outlets_get_their_frames(tmp_path: Path, recorded: list[Recording]) -> None:
    evens, odds = Asset(f"file://{tmp_path}/evens"), Asset(f"file://{tmp_path}/odds")

    @asset.multi(outlets=[evens, odds])
    def split(spark: Any) -> Any:
        return {evens: spark.range(0, 10, 2), odds: spark.range(1, 10, 2)}

    split()
    assert {event.uri for recording in recorded for event in recording.events} == {evens.uri, odds.uri}
    assert sorted(row.id for row in read(odds).collect()) == [1, 3, 5, 7, 9]
