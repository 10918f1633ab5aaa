"""The columns of a dataset are those of all its parts, whichever file Spark looks into first."""

from pathlib import Path
from typing import Any

import pytest

from assetflow.core.values.assets import Asset
from assetflow.errors import PublishFailed, ReadFailed
from assetflow.spark.publish import publish
from assetflow.spark.reading import read

pytestmark = [pytest.mark.spark, pytest.mark.rule("2.8")]


def shown(frame: Any) -> list[list[str]]:
    """The columns with their types, and the rows."""
    columns = [f"{each.name} {each.dataType.simpleString()}" for each in frame.schema]
    return [columns, *sorted([str(each) for each in row] for row in frame.collect())]


@pytest.mark.parametrize("form", ["parquet", "orc", "json"])
@pytest.mark.parametrize("keyed", [True, False])
def test_parts_with_other_columns_are_read_as_one(spark: Any, orders: Asset, form: str, keyed: bool) -> None:
    ways: list[dict[str, Any]] = (
        [{"partition_key": "d1"}, {"partition_key": "d2"}] if keyed else [{}, {"mode": "append"}]
    )
    # Spark finds columns of JSON by their exact names.
    name = "id" if form == "json" else "ID"
    narrow = spark.sql("SELECT 1 AS id, named_struct('name', 'ada') AS who")
    wide = spark.sql(f"SELECT 'x' AS note, 1099511627776 AS {name}, named_struct('age', 7) AS who")
    for frame, way in zip((narrow, wide), ways, strict=True):
        publish(frame, orders, format=form, **way)
    key, first, second = (["key string"], ["d1"], ["d2"]) if keyed else ([], [], [])
    assert shown(read(orders, spark, format=form)) == [
        ["id bigint", "who struct<name:string,age:int>", "note string", *key],
        ["1", "Row(name='ada', age=None)", "None", *first],
        ["1099511627776", "Row(name=None, age=7)", "x", *second],
    ]


def test_columns_that_fit_no_common_type_are_refused(spark: Any, orders: Asset, tmp_path: Path) -> None:
    publish(spark.sql("SELECT 1 AS id"), orders, partition_key="d1")
    publish(spark.sql("SELECT struct('x' AS a) AS id"), orders, partition_key="d2")
    with pytest.raises(ReadFailed, match="id is int in partition d1 and struct<a:string> in partition d2"):
        read(orders, spark)
    assert read(orders, spark, partition_keys=["d2"]).count() == 1
    for form, other, words in (
        ("parquet", "'x' AS id", "int in the data that is there and string in the new data"),
        ("csv", "'x' AS note, 3 AS id", "Spark finds columns of csv by their exact places"),
        ("json", "1 AS ID", "Spark finds columns of json by their exact names"),
    ):
        place = Asset(f"file://{tmp_path}/{form}")
        publish(spark.sql("SELECT 1 AS id"), place, format=form)
        with pytest.raises(PublishFailed, match=words):
            publish(spark.sql(f"SELECT {other}"), place, format=form, mode="append")
        assert read(place, spark, format=form).count() == 1


def test_what_another_program_wrote_and_what_has_no_rows_have_their_columns(
    spark: Any, orders: Asset, tmp_path: Path
) -> None:
    foreign = f"{tmp_path}/lake/orders"
    spark.sql("SELECT 1 AS id").write.parquet(foreign)
    spark.sql("SELECT 2 AS id, 'x' AS note").write.mode("append").parquet(foreign)
    assert shown(read(orders, spark)) == [["id int", "note string"], ["1", "None"], ["2", "x"]]
    publish(spark.sql("SELECT true AS flag"), orders, mode="append")
    assert shown(read(orders, spark))[0] == ["id int", "note string", "flag boolean"]
    nothing = Asset(f"file://{tmp_path}/nothing")
    publish(spark.createDataFrame([], "id INT, hour STRING"), nothing, partition_column="hour")
    assert shown(read(nothing, spark)) == [["id int", "hour string", "key string"]]
