"""Data that fails a check is never seen. Contract chapter 12."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pandera.pyspark as pandera
import pytest
from pyspark.sql import types

from assetflow.authoring.checks import DeclaredChecks
from assetflow.authoring.recording import TaskRecording
from assetflow.checks import Check, at_least, bounds, check, no_nulls, pandera_schema, schema, unique, values
from assetflow.core.values.assets import Asset
from assetflow.errors import CheckFailed, PublishFailed
from assetflow.spark.publish import publish, publish_together, staged
from assetflow.spark.reading import read
from assetflow.spark.writes import Write, asset_path

pytestmark = pytest.mark.spark


def checked(asset: Asset, *checks: Check, keep_failed: Path | None = None) -> AbstractContextManager[TaskRecording]:
    """Run the block as a task with these checks."""
    return TaskRecording([asset], "", 1, checks=DeclaredChecks({asset.token: checks}, keep_failed)).active()


def results_of(recording: TaskRecording) -> dict[str, tuple[bool, float | None]]:
    (event,) = recording.complete().events
    return {each.check: (each.passed, each.found) for each in event.checks}


def orders_of(spark: Any, *rows: tuple[Any, ...]) -> Any:
    return spark.createDataFrame(rows, "id BIGINT, state STRING, amount DOUBLE, token STRING")


GOOD = ((1, "open", 2.0, "t"), (2, "paid", 3.0, None))
ALL = (
    at_least(2),
    no_nulls("id", "state"),
    unique("id"),
    values("state", {"open", "paid"}),
    bounds("amount", 0, 10),
    schema("state STRING, id BIGINT, amount DOUBLE, token STRING"),
)
BAD = {
    "at_least": ((1, "open", 2.0, "t"),),
    "no_nulls(id, state)": (*GOOD, (3, None, 1.0, "t")),
    "unique(id)": (*GOOD, GOOD[0]),
    "values(state)": (*GOOD, (3, "gone", 1.0, "t")),
    "bounds(amount)": (*GOOD, (3, "open", float("nan"), "t")),
}


@pytest.mark.rule("12.5")
def test_good_data_is_published_and_the_update_carries_what_the_checks_found(spark: Any, orders: Asset) -> None:
    with checked(orders, *ALL) as recording:
        publish(orders_of(spark, *GOOD), orders)
        assert results_of(recording) == {
            "at_least": (True, 2),
            "no_nulls(id, state)": (True, 0),
            "unique(id)": (True, 0),
            "values(state)": (True, 0),
            "bounds(amount)": (True, 0),
            "schema": (True, 0),
        }


@pytest.mark.parametrize("name", BAD)
def test_rule_12_2_data_that_fails_a_check_stays_unseen(spark: Any, orders: Asset, name: str) -> None:
    publish(orders_of(spark, *GOOD), orders)
    with checked(orders, *ALL), pytest.raises(CheckFailed) as failed:
        publish(orders_of(spark, *BAD[name]), orders)
    assert [each.check for each in failed.value.results if not each.passed] == [name]
    assert f"the data failed {name}: found 1" in str(failed.value)
    assert read(orders, spark).count() == 2
    path = asset_path(orders)
    assert path is not None
    assert list((path.parent / "orders.versions" / ".staging").iterdir()) == []


def test_a_warning_lets_the_data_through_and_says_which_rows_broke_the_rule(spark: Any, orders: Asset) -> None:
    with checked(orders, values("state", {"open"}, severity="warn")) as recording:
        publish(orders_of(spark, *GOOD), orders)
        (event,) = recording.complete().events
    (result,) = event.checks
    assert (result.severity, result.passed, result.found) == ("warn", False, 1)
    assert result.sample == ({"id": 2, "state": "paid", "amount": 3.0, "token": None},)
    assert read(orders, spark).count() == 2


@pytest.mark.rule("12.5")
def test_a_sample_is_redacted(spark: Any, orders: Asset) -> None:
    with checked(orders, bounds("id", 2, severity="warn")) as recording:
        publish(orders_of(spark, *GOOD), orders)
        (event,) = recording.complete().events
    assert [each.sample[0]["token"] for each in event.checks] == ["[redacted]"]


def a_bool(df: Any) -> bool:
    return df.count() == 0


def a_number(df: Any) -> float:
    return df.count() / 4


def the_rows(df: Any) -> Any:
    return df.filter("id > 1")


def the_faults(_df: Any) -> list[str]:
    return ["the sum is wrong", "the day is missing"]


def nothing(_df: Any) -> None:
    """Return what is not a result."""


def an_error(_df: Any) -> bool:
    raise ZeroDivisionError("no rows")


OWN: dict[str, tuple[Check, str]] = {
    "a bool": (check(a_bool), "a_bool: wanted a bool"),
    "a number": (check(at_least=0.9)(a_number), "a_number: found 0.5, wanted at least 0.9"),
    "a number without a bound": (check(a_number), "a_number returned a number without at_least and at_most"),
    "rows": (check(the_rows), 'the_rows: found 1, wanted the rows, such as {"id": 2'),
    "texts": (check(the_faults), "the_faults: found 2, wanted the faults, the sum is wrong; the day is missing"),
    "another result": (check(nothing), "nothing returned None, not True, False"),
    "a check that raises": (check(an_error), "an_error: wanted an error, the check failed: ZeroDivisionError"),
    "a warning that raises": (check(severity="warn")(an_error), "the check failed: ZeroDivisionError: no rows"),
    "a column that is missing": (no_nulls("no_such", severity="warn"), "no_such"),
    "a value of another type": (values("amount", {"a"}, severity="warn"), "the check failed: "),
    "another schema": (schema("id INT, day DATE, token STRING"), "day date is missing; id is bigint, not int; "),
}


@pytest.mark.parametrize("name", OWN)
def test_rule_12_3_what_a_check_returns_and_how_it_fails(spark: Any, orders: Asset, name: str) -> None:
    own, text = OWN[name]
    with checked(orders, own, at_least(1)), pytest.raises(CheckFailed) as failed:
        publish(orders_of(spark, *GOOD), orders)
    assert text in str(failed.value)
    assert [each.passed for each in failed.value.results] == [False, True]
    assert asset_path(orders) is not None
    assert not asset_path(orders).exists()  # type: ignore[union-attr]


@pytest.mark.rule("12.3")
def test_each_partition_is_checked_for_itself(spark: Any, orders: Asset) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, "a"), (1, "b")], "id BIGINT, shop STRING")
    with (
        checked(orders, unique("id"), check(the_rows), at_least(2, severity="warn")),
        pytest.raises(CheckFailed) as failed,
    ):
        publish(frame, orders, partition_column="shop")
    assert "the_rows: found 1" in str(failed.value)
    assert "(partition a)" in str(failed.value)
    with checked(orders, unique("id"), at_least(2, severity="warn")) as recording:
        publish(frame, orders, partition_column="shop")
        found = {each.partition_key: [result.found for result in each.checks] for each in recording.complete().events}
    assert found == {"a": [0, 2], "b": [0, 1]}


@pytest.mark.rule("12.3")
def test_an_append_is_checked_for_the_rows_that_it_adds(spark: Any, orders: Asset) -> None:
    publish(orders_of(spark, *GOOD), orders)
    with checked(orders, at_least(2), unique("id")), pytest.raises(CheckFailed, match="at_least: found 1"):
        publish(orders_of(spark, GOOD[0]), orders, mode="append")
    assert read(orders, spark).count() == 2


@pytest.mark.rule("12.2")
def test_of_several_datasets_none_is_visible_if_one_fails(spark: Any, tmp_path: Path) -> None:
    good, bad = Asset(f"file://{tmp_path}/good"), Asset(f"file://{tmp_path}/bad")
    declared = DeclaredChecks({bad.token: (at_least(9),)})
    with TaskRecording([good, bad], "", 1, checks=declared).active(), pytest.raises(CheckFailed):
        publish_together([Write(spark.range(3), good), Write(spark.range(3), bad)])
    assert not (tmp_path / "good").exists()


def test_data_that_failed_is_kept_where_it_is_wanted(spark: Any, orders: Asset, tmp_path: Path) -> None:
    with checked(orders, at_least(9), keep_failed=tmp_path / "failed"), pytest.raises(CheckFailed) as failed:
        publish(orders_of(spark, *GOOD), orders)
    (kept,) = (tmp_path / "failed").iterdir()
    assert f"The new data is in {kept}" in str(failed.value)
    assert spark.read.parquet(str(kept)).count() == 2


def test_rule_12_2_a_task_that_hides_the_failure_makes_no_update(spark: Any, orders: Asset) -> None:
    with checked(orders, at_least(9)) as recording:
        with pytest.raises(CheckFailed):
            publish(orders_of(spark, *GOOD), orders)
        with pytest.raises(CheckFailed, match="published nothing that its checks have passed"):
            recording.complete()


@pytest.fixture
def bucket(tmp_path: Path) -> Asset:
    """An asset in another of Hadoop's file systems, where Spark writes directly, as in an object store."""
    return Asset(f"viewfs://here/all{tmp_path}/bucket/orders")


def test_rule_12_4_elsewhere_checks_that_only_warn_are_made_after_the_write(spark: Any, bucket: Asset) -> None:
    with checked(bucket, values("state", {"open"}, severity="warn")) as recording:
        publish(orders_of(spark, *GOOD), bucket)
        assert results_of(recording) == {"values(state)": (False, 1)}
    with checked(bucket, check(severity="warn")(an_error)) as recording:
        with pytest.raises(CheckFailed, match="the new data is written, and no update is recorded"):
            publish(orders_of(spark, GOOD[0]), bucket)
        with pytest.raises(CheckFailed, match="published nothing that its checks have passed"):
            recording.complete()
    assert spark.read.parquet(bucket.uri).count() == 1


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_rule_12_4_elsewhere_data_is_staged_as_parquet(spark: Any, bucket: Asset, tmp_path: Path, form: str) -> None:
    with checked(bucket, *ALL) as recording:
        publish(orders_of(spark, *GOOD), bucket, format=form)
        assert results_of(recording)["unique(id)"] == (True, 0)
    for mode in ("append", "overwrite"):
        with checked(bucket, *ALL), pytest.raises(CheckFailed, match="nothing of the new data is visible"):
            publish(orders_of(spark, *BAD["values(state)"]), bucket, format=form, mode=mode)
    assert spark.read.format(form).load(bucket.uri).count() == 2
    assert [each.name for each in (tmp_path / "bucket").iterdir()] == ["orders"]


def test_rule_12_4_partitions_elsewhere_are_checked_each_for_itself(spark: Any, bucket: Asset) -> None:
    frame = spark.createDataFrame([(1, "a"), (2, "a"), (1, "b")], "id BIGINT, shop STRING")
    with checked(bucket, at_least(2)), pytest.raises(CheckFailed, match=r"found 1, .*\(partition b\)"):
        publish(frame, bucket, partition_column="shop")
    with checked(bucket, unique("id"), at_least(2, severity="warn")) as recording:
        publish(frame, bucket, partition_column="shop", data_version="table")
        told = {
            each.partition_key: (each.metrics["rows"], [result.passed for result in each.checks])
            for each in recording.complete().events
        }
    assert told == {"a": (2, [True, True]), "b": (1, [True, False])}
    with checked(bucket, no_nulls("id")), pytest.raises(CheckFailed, match="found 1"):
        publish(spark.sql("SELECT CAST(NULL AS BIGINT) AS id"), bucket, partition_key="a")
    assert spark.read.parquet(bucket.uri).where("key = 'a'").count() == 2


def test_files_that_a_task_writes_itself_are_checked_and_published_whole(spark: Any, orders: Asset) -> None:
    frame = orders_of(spark, *GOOD).toPandas()
    with checked(orders, *ALL) as recording:
        with staged(orders) as place:
            frame.to_parquet(place / "a.parquet")
            assert not Path(place.parents[3] / "orders").exists()
        assert all(passed for passed, _ in results_of(recording).values())
    with checked(orders, at_least(9)), pytest.raises(CheckFailed), staged(orders) as place:
        frame.to_parquet(place / "a.parquet")
    assert read(orders, spark).count() == 2


def test_a_block_that_raises_or_writes_nothing_publishes_nothing(spark: Any, orders: Asset) -> None:
    def break_off() -> None:
        with staged(orders) as place:
            spark.range(3).toPandas().to_parquet(place / "a.parquet")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    with pytest.raises(PublishFailed, match="wrote no files"), staged(orders):
        pass
    with pytest.raises(PublishFailed, match="only data on local"), staged(Asset("s3://lake/orders")):
        pass
    path = asset_path(orders)
    assert path is not None
    assert not path.exists()


def test_an_empty_part_is_checked_too(spark: Any, orders: Asset) -> None:
    empty = spark.range(0).selectExpr("id", "'a' AS half")
    ways: list[tuple[dict[str, Any], str | None]] = [
        ({"partition_key": "a"}, "a"),
        ({"partition_column": "half"}, None),
    ]
    for options, key in ways:
        with checked(orders, at_least(1), no_nulls("id")) as recording:
            with pytest.raises(CheckFailed, match="at_least: found 0"):
                publish(empty.drop("half") if key else empty, orders, **options)
            (told,) = recording.fail().held_back
        assert told.partition_key == key


def test_a_schema_of_pandera_is_a_check(spark: Any, orders: Asset) -> None:
    class Orders(pandera.DataFrameModel):
        id: types.LongType = pandera.Field(gt=1)
        state: types.StringType = pandera.Field()

    columns = {"id": pandera.Column(types.LongType(), pandera.Check.gt(0)), "day": pandera.Column(types.DateType())}
    whole = pandera_schema(pandera.DataFrameSchema(columns, name="whole"))
    with checked(orders, whole, pandera_schema(Orders)), pytest.raises(CheckFailed) as failed:
        publish(orders_of(spark, *GOOD), orders)
    assert [(each.check, each.found) for each in failed.value.results] == [("whole", 1), ("Orders", 1)]
    assert "'day'" in failed.value.results[0].note
    with checked(orders, pandera_schema(Orders)) as recording:
        publish(orders_of(spark, GOOD[1]), orders)
        assert results_of(recording) == {"Orders": (True, 0)}
