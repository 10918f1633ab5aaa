"""What `read` makes of parts of a dataset that have other columns, in the mode that the environment names."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError
from assetflow.spark.publish import publish
from assetflow.spark.reading import read
from assetflow.spark.schemas import SchemaStore
from assetflow.spark.session import get_session

lake = Path(sys.argv[1])
spark = get_session()
NARROW = "byte TINYINT, short SMALLINT, number INT, real FLOAT, money DECIMAL(5,2), count SMALLINT"
WIDE = "byte INT, short BIGINT, number DOUBLE, real DOUBLE, money DECIMAL(9,4), count DECIMAL(12,2)"
VALUES = "1Y, 2S, 3, CAST(0.5 AS FLOAT), CAST(1.25 AS DECIMAL(5,2)), 7S"


def asset(name: str) -> Asset:
    return Asset(f"file://{lake}/{name}")


def error_of(attempt: Callable[[], Any]) -> str:
    try:
        return f"no error: {attempt()}"
    except AssetflowError as error:
        return f"{error.code}: {error}"


def frame(ddl: str, values: str = "") -> Any:
    names = ", ".join(each.split()[0] for each in ddl.split(", "))
    rows = spark.sql(f"SELECT * FROM VALUES ({values}) AS t({names})") if values else spark.createDataFrame([], ddl)
    kinds = [each.split(" ", 1) for each in ddl.split(", ")]
    return rows.selectExpr(*[f"CAST({name} AS {kind}) AS {name}" for name, kind in kinds])


def shown(frame: Any) -> list[list[str]]:
    return [
        [f"{each.name} {each.dataType.simpleString()}" for each in frame.schema],
        *sorted(map(str_row, frame.collect())),
    ]


def str_row(row: Any) -> list[str]:
    return [str(each) for each in row]


result: dict[str, Any] = {}
for number, (form, mode) in enumerate((f, m) for f in ("parquet", "orc", "json") for m in ("keyed", "appended")):
    place = asset(f"union{number}")
    more: Any = [{"partition_key": "d1"}, {"partition_key": "d2"}] if mode == "keyed" else [{}, {"mode": "append"}]
    publish(frame("id INT, who STRUCT<name: STRING>", "1, named_struct('name', 'ada')"), place, format=form, **more[0])
    wider = frame(
        f"note STRING, {'id' if form == 'json' else 'ID'} BIGINT, who STRUCT<age: INT>",
        "'x', 1099511627776, named_struct('age', 7)",
    )
    publish(wider, place, format=form, **more[1])
    result[f"{form} {mode}"] = shown(read(place, spark, format=form))

publish(frame(NARROW, VALUES), asset("types"), partition_key="d1")
publish(frame(WIDE), asset("types"), partition_key="d2")
result["types"] = shown(read(asset("types"), spark))
result["filtered"] = (
    read(asset("types"), spark).where("number = 3 AND short = 2 AND count = 7 AND money = 1.25").count()
)

publish(spark.sql("SELECT 1 AS id"), asset("conflict"), partition_key="d1")
publish(spark.sql("SELECT struct('x' AS a) AS id"), asset("conflict"), partition_key="d2")
result["conflict"] = error_of(lambda: read(asset("conflict"), spark))
result["one by one"] = read(asset("conflict"), spark, partition_keys=["d2"]).count()
publish(spark.sql("SELECT 1 AS id"), asset("append"))
result["append"] = error_of(lambda: publish(spark.sql("SELECT 'x' AS id"), asset("append"), mode="append"))
result["append kept"] = read(asset("append"), spark).count()

publish(spark.sql("SELECT 1 AS id"), asset("csv"), format="csv")
publish(spark.sql("SELECT 2 AS id"), asset("csv"), format="csv", mode="append")
result["csv"] = shown(read(asset("csv"), spark, format="csv"))
publish(spark.sql("SELECT 1 AS id"), asset("json"), format="json")
upper = spark.sql("SELECT 1 AS ID")
result["json append"] = error_of(lambda: publish(upper, asset("json"), format="json", mode="append"))
other = spark.sql("SELECT 'x' AS note, 3 AS id")
result["csv append"] = error_of(lambda: publish(other, asset("csv"), format="csv", mode="append"))

foreign = lake / "foreign"
spark.sql("SELECT 1 AS id").write.parquet(f"file:{foreign}")
spark.sql("SELECT 2 AS id, 'x' AS note").write.mode("append").parquet(f"file:{foreign}")
result["foreign"] = shown(read(asset("foreign"), spark))
publish(spark.sql("SELECT true AS flag"), asset("foreign"), mode="append")
result["foreign appended"] = shown(read(asset("foreign"), spark))

nothing = spark.createDataFrame([], "id INT, hour STRING")
result["nothing"] = dict(publish(nothing, asset("nothing"), partition_column="hour").partitions)
result["nothing read"] = shown(read(asset("nothing"), spark))
result["delta"] = error_of(lambda: read(asset("append"), spark, format="delta").count())

for key in range(5):
    publish(spark.range(1), asset("many"), partition_key=str(key))
with patch.object(SchemaStore, "get", autospec=True, side_effect=SchemaStore.get) as opened:
    read(asset("many"), spark)
    result["schemas read"] = opened.call_count
spark.stop()
sys.stdout.write("\n" + json.dumps(result))
