"""Partitions of a dataset: each is published on its own, and read by key."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, cast
from uuid import UUID

import pytest

from assetflow import PartitionedAssetTimetable, flow, partition_key
from assetflow.authoring.recording import TaskRecording
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.errors import InvalidCall, InvalidEvent, PublishFailed, UnknownAsset
from assetflow.partitions import StartOfDayMapper
from assetflow.spark import staging as staging_module
from assetflow.spark.layout import DatasetLayout
from assetflow.spark.partitioned import PartitionedLayout, directory_of, key_of
from assetflow.spark.publish import publish
from assetflow.spark.reading import read
from tests.spark.test_publish import path_of

pytestmark = [pytest.mark.long, pytest.mark.spark]

Become = Callable[..., None]


def found(frame: Any) -> dict[str, list[int]]:
    by_key: dict[str, list[int]] = {}
    for row in frame.collect():
        by_key.setdefault(str(row["key"]), []).append(row["id"])
    return {key: sorted(ids) for key, ids in sorted(by_key.items())}


def plain(spark: Any, asset: Asset) -> dict[str, list[int]]:
    return found(spark.read.parquet(str(path_of(asset))))


@pytest.mark.parametrize(
    "key", ["2026-11-20T05", "us|a/b=c%d:{*}[?]\\", "Zürich x", "007", "k" * 250, ".", "%41", "a\n"]
)
def test_a_key_is_read_back_as_the_text_it_was(spark: Any, orders: Asset, key: str) -> None:
    publish(spark.range(3), orders, partition_key=key)
    publish(spark.range(2), orders, partition_key="other")
    assert key_of(directory_of(key)) == key
    assert found(read(orders, spark)) == dict(sorted({key: [0, 1, 2], "other": [0, 1]}.items()))
    assert found(read(orders, spark, partition_keys=[key])) == {key: [0, 1, 2]}
    assert spark.read.parquet(str(path_of(orders))).count() == 5


def test_a_partition_is_replaced_and_the_others_are_not_touched(spark: Any, orders: Asset, as_attempt: Become) -> None:
    for number, key in enumerate(("a", "b", "a"), start=1):
        as_attempt(f"run-{number}")
        before = sorted(path_of(orders).glob("key=b/*.parquet"))
        publish(spark.range(number), orders, partition_key=key)
    assert plain(spark, orders) == {"a": [0, 1, 2], "b": [0, 1]}
    assert sorted(path_of(orders).glob("key=b/*.parquet")) == before
    assert len(PartitionedLayout(path_of(orders)).of("a").versions()) == 2


def test_the_keys_of_a_column_replace_their_partitions_and_no_others(spark: Any, orders: Asset) -> None:
    publish(spark.range(9), orders, partition_key="c")
    frame = spark.range(10).selectExpr("id", "if(id < 7, 'a', 'b') AS letter")
    for _ in range(2):
        published = publish(frame, orders, partition_column="letter")
    assert plain(spark, orders) == {"a": list(range(7)), "b": [7, 8, 9], "c": list(range(9))}
    assert {key: metrics["rows"] for key, metrics in published.partitions.items()} == {"a": 7, "b": 3}
    assert published.metrics["rows"] == 10
    assert read(orders, spark, partition_keys=["a"]).columns == ["id", "letter", "key"]


def test_what_cannot_be_a_partition_is_refused_before_anything_is_written(spark: Any, orders: Asset) -> None:
    publish(spark.range(1), orders, partition_key="a")
    letters = spark.range(2).selectExpr("id", "cast(null AS string) AS letter", "'x' AS key")
    with pytest.raises(PublishFailed, match="in partitions"):
        publish(spark.range(1), orders)
    with pytest.raises(PublishFailed, match="column 'key'"):
        publish(letters, orders, partition_key="b")
    with pytest.raises(PublishFailed, match="no column 'day'"):
        publish(letters.drop("key"), orders, partition_column="day")
    with pytest.raises(PublishFailed, match="have no partition key"):
        publish(letters.drop("key"), orders, partition_column="letter")
    with pytest.raises(InvalidEvent, match="blank"):
        publish(spark.range(1), orders, partition_key=" ")
    with pytest.raises(PublishFailed, match="bytes"):
        publish(spark.range(1), orders, partition_key="ü" * 200)
    with pytest.raises(InvalidCall, match="cannot be given together"):
        publish(letters, orders, partition_key="b", partition_column="key")
    assert plain(spark, orders) == {"a": [0]}


def test_a_dataset_without_partitions_gets_none(spark: Any, orders: Asset) -> None:
    publish(spark.range(3), orders)
    with pytest.raises(PublishFailed, match="not in partitions"):
        publish(spark.range(1), orders, partition_key="a")
    with pytest.raises(InvalidCall, match="not in partitions"):
        read(orders, spark, partition_keys=["a"])
    assert read(orders, spark).count() == 3
    assert path_of(orders).readlink().parent == Path(DatasetLayout(path_of(orders)).versions_folder.name)


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a_partition_that_another_run_publishes_meanwhile_is_not_replaced_by_the_whole(
    spark: Any, orders: Asset, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    def write_meanwhile(*arguments: Any) -> None:
        monkeypatch.undo()
        publish(spark.range(2), orders, partition_key="a")
        staging_module.mark_files(*arguments)

    monkeypatch.setattr(staging_module, "mark_files", write_meanwhile)
    with pytest.raises(PublishFailed, match="is in partitions"):
        publish(spark.range(3), orders, mode=mode)
    assert plain(spark, orders) == {"a": [0, 1]}


def test_two_keys_published_at_the_same_time_are_both_there(spark: Any, orders: Asset) -> None:
    keys = [f"k{number}" for number in range(6)]
    threads = [
        Thread(target=publish, args=(spark.range(n), orders), kwargs={"partition_key": keys[n]}) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert PartitionedLayout(path_of(orders)).keys() == keys
    assert plain(spark, orders) == {key: list(range(n)) for n, key in enumerate(keys) if n}


def test_rule_2_5_no_rows_are_no_update(spark: Any, orders: Asset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assetflow.authoring.recording.is_deployed", lambda: True)
    nothing = spark.createDataFrame([], "id INT, letter STRING")
    with TaskRecording((orders,), "run", 1).active() as recording:
        assert publish(nothing, orders, partition_column="letter").partitions == {}
        assert recording.complete().events == ()
        assert [event.asset for event in recording.complete().confirmed] == [orders]
        assert read(orders, spark).columns == ["id", "letter", "key"]
        publish(spark.range(1).selectExpr("id", "'a' AS letter"), orders, partition_column="letter")
        publish(nothing, orders, partition_column="letter")
        assert [event.partition_key for event in recording.complete().events] == ["a"]
        assert recording.complete().confirmed == ()


def test_threads_of_a_task_publish_with_its_context_or_not_at_all(spark: Any, orders: Asset) -> None:
    def write(key: str) -> None:
        publish(spark.range(3), orders, partition_key=key)

    with TaskRecording((orders,), "run", 1).active() as recording, ThreadPoolExecutor() as pool:
        with pytest.raises(PublishFailed, match=r"copy_context\(\)\.run"):
            pool.submit(write, "lost").result()
        for done in [pool.submit(copy_context().run, write, key) for key in "abcd"]:
            done.result()
    assert {event.partition_key: event.metrics["rows"] for event in recording.complete().events} == dict.fromkeys(
        "abcd", 3
    )
    assert sorted(plain(spark, orders)) == ["a", "b", "c", "d"]


@pytest.fixture
def run_for(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let what follows be a run of a flow for a key, started by updates or not."""

    def become(key: str | None, schedule: Any, *events: AssetEvent) -> None:
        class Context:
            @flow(schedule=schedule)
            @staticmethod
            def flow() -> None: ...

            flow_run = None
            parameters: ClassVar = {"partition_key": key, "triggering_asset_events": list(events)}

        for place in ("triggering", "past_events.reading"):
            monkeypatch.setattr(f"assetflow.authoring.{place}.flow_run_contexts", lambda: iter([cast(Any, Context)]))

    return become


def update(asset: Asset, key: str) -> AssetEvent:
    return AssetEvent(UUID(int=1), asset, datetime.now(UTC), Origin("task"), partition_key=key)


def test_a_run_writes_its_key_and_reads_those_that_started_it(
    spark: Any, orders: Asset, tmp_path: Path, run_for: Callable[..., None]
) -> None:
    daily, other = Asset(f"file://{tmp_path}/lake/daily"), Asset(f"file://{tmp_path}/lake/other")
    for number, hour in enumerate(("2026-11-20T05", "2026-11-20T06", "2026-11-21T05", "no hour"), start=1):
        publish(spark.range(number), orders, partition_key=hour)
        publish(spark.range(number), other, partition_key=hour)
    mapper = StartOfDayMapper(input_format="%Y-%m-%dT%H")
    schedule = PartitionedAssetTimetable(assets=orders, default_partition_mapper=mapper)
    run_for("2026-11-20", schedule, update(orders, "2026-11-20T06"))
    assert partition_key() == "2026-11-20"
    assert found(read(orders, spark)) == {"2026-11-20T06": [0, 1]}
    assert read(other, spark).count() == 10, "the flow is not scheduled on it"
    assert read(orders, spark, all_partitions=True).count() == 10
    publish(read(orders, spark).drop("key"), daily)
    assert plain(spark, daily) == {"2026-11-20": [0, 1]}
    run_for("2026-11-20", schedule)
    assert set(found(read(orders, spark))) == {"2026-11-20T05", "2026-11-20T06"}, "a person started it"
    run_for("2026-11-25", schedule)
    with pytest.raises(UnknownAsset, match="this run is about"):
        read(orders, spark)
    run_for(None, schedule)
    assert read(orders, spark).count() == 10


# Killed


KILLED = """
import sys
from assetflow.core.values.assets import Asset
from assetflow.spark.publish import publish
from assetflow.spark.session import SparkProfile, get_session

frame = get_session(SparkProfile(master="local[1]")).range(7).selectExpr("id", "'a' AS letter")
publish(frame, Asset(f"file://{sys.argv[1]}"), partition_column="letter")
"""


def test_a_retry_repairs_what_a_killed_publish_left(spark: Any, orders: Asset, tmp_path: Path) -> None:
    publish(spark.range(3), orders, partition_key="a")
    publish(spark.range(4), orders, partition_key="b")
    env = os.environ | {"ASSETFLOW_HOME": str(tmp_path), "ASSETFLOW_CRASH_AT": "between-staging-and-swap"}
    command = [sys.executable, "-c", KILLED, str(path_of(orders))]
    killed = subprocess.run(command, capture_output=True, timeout=120, check=False, env=env)
    assert killed.returncode == -9, killed.stderr[-3000:]
    assert plain(spark, orders) == {"a": [0, 1, 2], "b": [0, 1, 2, 3]}
    publish(spark.range(7), orders, partition_key="a")
    assert plain(spark, orders) == {"a": list(range(7)), "b": [0, 1, 2, 3]}
    staging = list(PartitionedLayout(path_of(orders)).store.glob("key=a/.staging/*"))
    assert staging == [], "what the dead process left is cleaned"
