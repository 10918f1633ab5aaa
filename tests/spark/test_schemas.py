"""The columns of a dataset are those of all its parts, whichever file Spark looks into first."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assetflow.spark.connect import stop_recorded_server

pytestmark = [pytest.mark.long, pytest.mark.spark]


@pytest.mark.rule("2.8")
@pytest.mark.timeout(600)
def test_parts_with_other_columns_are_read_as_one(child: Callable[..., Any], tmp_path: Path) -> None:
    try:
        found = child(
            "schemas_child.py", str(tmp_path), ASSETFLOW_SPARK_REMOTE="local", ASSETFLOW_SPARK_MASTER="local[1]"
        )
    finally:
        stop_recorded_server()

    columns = ["id bigint", "who struct<name:string,age:int>", "note string"]
    first, second = ["1", "Row(name='ada', age=None)", "None"], ["1099511627776", "Row(name=None, age=7)", "x"]
    for form in ("parquet", "orc", "json"):
        assert found[f"{form} appended"] == [columns, first, second], form
        assert found[f"{form} keyed"] == [[*columns, "key string"], [*first, "d1"], [*second, "d2"]], form
    assert found["types"] == [
        [
            *("byte int", "short bigint", "number double", "real double"),
            *("money decimal(9,4)", "count decimal(12,2)", "key string"),
        ],
        ["1", "2", "3.0", "0.5", "1.2500", "7.00", "d1"],
    ]
    assert found["filtered"] == 1
    assert "read-failed" in found["conflict"]
    assert "the column id is int in partition d1 and struct<a:string> in partition d2" in found["conflict"]
    assert found["one by one"] == 1
    assert "publish-failed" in found["append"]
    assert "int in the data that is there and string in the new data" in found["append"]
    assert found["append kept"] == 1
    assert found["csv"] == [["id int"], ["1"], ["2"]]
    assert "Spark finds columns of csv by their exact places" in found["csv append"]
    assert "Spark finds columns of json by their exact names" in found["json append"]
    assert found["foreign"] == [["id int", "note string"], ["1", "None"], ["2", "x"]]
    assert found["foreign appended"][0] == ["id int", "note string", "flag boolean"]
    assert len(found["foreign appended"]) == 4
    assert found["nothing"] == {}
    assert found["nothing read"] == [["id int", "hour string", "key string"]]
    assert "read-failed" in found["delta"]
    assert "Failed to find the data source: delta" in found["delta"]
    assert found["schemas read"] == 1
