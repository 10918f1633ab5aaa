"""A dataset is published whole, measured, and safe to retry."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest.mock import MagicMock, call
from uuid import uuid4

import pytest

from assetflow.authoring.recording import TaskRecording
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin
from assetflow.errors import InvalidEvent, PublishFailed
from assetflow.spark.data_files import table_version
from assetflow.spark.layout import DatasetLayout
from assetflow.spark.publish import publish, publish_together
from assetflow.spark.reading import read
from assetflow.spark.writes import Write, asset_path
from tests.environment.waiting import until

pytestmark = pytest.mark.spark

Become = Callable[..., None]


def path_of(asset: Asset) -> Path:
    path = asset_path(asset)
    assert path is not None
    return path


def rows_of(spark: Any, asset: Asset) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(path_of(asset))).collect())


def version_runs(asset: Asset) -> list[str]:
    return [version.name.partition("-")[2] for version in DatasetLayout(path_of(asset)).versions()]


def test_a_plain_read_of_the_path_sees_what_was_published(spark: Any, orders: Asset, as_attempt: Become) -> None:
    as_attempt("run-1")
    published = publish(spark.range(10), orders)
    assert rows_of(spark, orders) == list(range(10))
    assert published.path == str(path_of(orders))
    assert path_of(orders).is_symlink()
    assert path_of(orders).resolve().name.endswith("-run-1")


def test_metrics_equal_a_count_and_a_listing(spark: Any, orders: Asset) -> None:
    published = publish(spark.range(1000).repartition(3), orders, partition_by=())
    files = list(path_of(orders).resolve().rglob("*.parquet"))
    assert published.metrics["rows"] == spark.read.parquet(str(path_of(orders))).count() == 1000
    assert published.metrics["files"] == len(files) == 3
    assert published.metrics["bytes"] == sum(each.stat().st_size for each in files)
    assert published.metrics["seconds"] > 0


def test_a_retry_replaces_its_own_version_and_no_other(spark: Any, orders: Asset, as_attempt: Become) -> None:
    for run in ("run-1", "run-2"):
        as_attempt(run)
        publish(spark.range(1), orders)
    for attempt in range(1, 6):
        as_attempt("run-3", attempt)
        publish(spark.range(attempt), orders)
    assert set(version_runs(orders)) == {"run-1", "run-2", "run-3"}
    assert rows_of(spark, orders) == [0, 1, 2, 3, 4]
    as_attempt("run-4")
    publish(spark.range(1), orders)
    assert version_runs(orders) == ["run-2", "run-3", "run-4"]


def test_a_failed_write_leaves_the_old_data_whole_and_nothing_else(spark: Any, orders: Asset) -> None:
    publish(spark.range(5), orders)
    failing = spark.range(100, numPartitions=4).selectExpr("IF(id = 99, raise_error('broken'), id) AS id")
    with pytest.raises(PublishFailed, match="whole") as caught:
        publish(failing, orders)
    assert caught.value.__cause__ is not None
    assert rows_of(spark, orders) == [0, 1, 2, 3, 4]
    assert list((path_of(orders).with_name("orders.versions") / ".staging").iterdir()) == []


@pytest.mark.rule("2.8")
def test_several_become_visible_together_or_not_at_all(spark: Any, orders: Asset, tmp_path: Path) -> None:
    customers = Asset(f"file://{tmp_path}/lake/customers")
    publish_together([Write(spark.range(1), orders), Write(spark.range(1), customers)])
    broken = spark.sql("SELECT raise_error('broken') AS id")
    with pytest.raises(PublishFailed):
        publish_together([Write(spark.range(2), orders), Write(broken, customers)])
    assert rows_of(spark, orders) == rows_of(spark, customers) == [0]


def test_a_read_holds_on_to_its_version_and_may_replace_it(spark: Any, orders: Asset) -> None:
    publish(spark.range(3), orders)
    publish(read(orders, spark).selectExpr("id + 10 AS id"), orders)
    assert rows_of(spark, orders) == [10, 11, 12]
    before = read(orders, spark)
    publish(spark.range(7), orders)
    publish(spark.range(8), orders)
    assert before.count() == 3
    assert read(orders, spark).count() == 8


def test_readers_never_see_half(spark: Any, orders: Asset) -> None:
    """Each version has 100 times its number in 4 files: another sum is a mixture."""

    def publish_version(number: int) -> None:
        publish(spark.range(0, 100, 1, 4).selectExpr(f"{number} AS id"), orders)

    done, pinned, plain = Event(), list[tuple[int, int]](), list[tuple[int, int]]()

    def look(seen: list[tuple[int, int]], frame: Callable[[], Any]) -> None:
        while not done.is_set():
            # A plain read that lists before a publish and opens after it fails, as the docstring says.
            with nullcontext() if seen is pinned else suppress(Exception):
                row = frame().selectExpr("count(id)", "count(DISTINCT id)").first()
                seen.append((row[0], row[1]))

    publish_version(0)
    readers = [
        Thread(target=look, args=(pinned, lambda: read(orders, spark))),
        Thread(target=look, args=(plain, lambda: spark.read.parquet(str(path_of(orders))))),
    ]
    for reader in readers:
        reader.start()
    for number in range(1, 9):
        before = len(pinned)
        publish_version(number)
        # So that no read meets more publishes than versions are kept.
        until(lambda: len(pinned) > before)  # noqa: B023 (called at once)
    until(lambda: len(plain) > 0)
    done.set()
    for reader in readers:
        reader.join(60)
    assert set(pinned) == set(plain) == {(100, 1)}


class TestAppend:
    def test_adds_rows_and_keeps_the_files_that_were_there(self, spark: Any, orders: Asset, as_attempt: Become) -> None:
        as_attempt("run-1")
        publish(spark.range(2), orders, mode="append")
        first = {each.stat().st_ino for each in path_of(orders).resolve().glob("*.parquet")}
        as_attempt("run-2")
        published = publish(spark.range(2, 4), orders, mode="append")
        assert rows_of(spark, orders) == [0, 1, 2, 3]
        assert published.metrics["rows"] == 2
        assert first < {each.stat().st_ino for each in path_of(orders).resolve().glob("*.parquet")}

    def test_a_retry_does_not_double_after_others_appended(self, spark: Any, orders: Asset, as_attempt: Become) -> None:
        as_attempt("run-1")
        publish(spark.range(1), orders)
        as_attempt("run-2", 1)
        publish(spark.range(10, 12), orders, mode="append")
        as_attempt("run-3")
        publish(spark.range(20, 21), orders, mode="append")
        as_attempt("run-2", 2)
        publish(spark.range(10, 12), orders, mode="append")
        assert rows_of(spark, orders) == [0, 10, 11, 20]


class TestWhatWasThereBefore:
    def test_it_can_be_appended_to(self, spark: Any, orders: Asset) -> None:
        spark.range(3).write.parquet(str(path_of(orders)))
        publish(spark.range(3, 4), orders, mode="append")
        assert rows_of(spark, orders) == [0, 1, 2, 3]

    @pytest.mark.parametrize("kind", ["file", "folder with datasets", "link"])
    def test_what_is_no_dataset_is_left_alone(self, spark: Any, orders: Asset, kind: str, tmp_path: Path) -> None:
        path = path_of(orders)
        path.parent.mkdir(parents=True)
        if kind == "file":
            path.write_text("mine")
        elif kind == "link":
            path.symlink_to(tmp_path)
        else:
            (path / "2013").mkdir(parents=True)
        with pytest.raises(PublishFailed, match="Move it away"):
            publish(spark.range(1), orders)
        assert path.exists()


class TestPlaces:
    @pytest.mark.parametrize(
        ("uri", "path"),
        [
            ("file:///lake/a%20b", "/lake/a b"),
            ("file://localhost/lake", "/lake"),
            ("/lake/orders", "/lake/orders"),
            ("s3://bucket/orders", None),
            ("orders", None),
            ("//host/path", None),
        ],
    )
    def test_asset_path(self, uri: str, path: str | None) -> None:
        assert asset_path(Asset(uri)) == (Path(path) if path else None)


def versions_of(recording: TaskRecording) -> dict[str | None, str | None]:
    return {event.partition_key: event.data_version for event in recording.complete().events}


@pytest.fixture
def recording(orders: Asset) -> Iterator[TaskRecording]:
    with TaskRecording([orders], str(uuid4()), 1).active() as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr("assetflow.authoring.recording.current_origin", lambda kind: Origin(kind))
        yield made


def test_rule_8_2_files_have_a_hash_of_their_listing(
    spark: Any, orders: Asset, recording: TaskRecording, as_attempt: Become
) -> None:
    found: list[str | None] = []
    for number, mode in enumerate(("overwrite", "overwrite", "append")):
        as_attempt(f"run-{number}")
        version = publish(spark.range(3), orders, mode=mode, data_version="table").data_versions[None]
        folder = path_of(orders).resolve()
        listing = sorted(f"{each.relative_to(folder)} {each.stat().st_size}" for each in folder.rglob("*.parquet"))
        assert version == hashlib.sha256("\n".join(listing).encode()).hexdigest()
        assert versions_of(recording) == {None: version}
        found.append(version)
    assert len(set(found)) == 3


def test_rule_8_2_a_version_that_is_none_is_refused_before_anything_is_written(spark: Any, orders: Asset) -> None:
    with pytest.raises(InvalidEvent):
        publish(spark.range(1), orders, data_version=" ")
    assert not path_of(orders).exists()


@pytest.mark.rule("8.2")
def test_the_versions_of_delta_and_iceberg_tables_are_their_newest_snapshots() -> None:
    told = {"DESCRIBE DETAIL delta.`s3a://lake/t`": "ab", "DESCRIBE HISTORY delta.`s3a://lake/t` LIMIT 1": 7}
    spark = MagicMock()
    spark.sql.side_effect = lambda text: MagicMock(**{"select.return_value.collect.return_value": [(told[text],)]})
    assert table_version(spark, "s3a://lake/t", "delta") == "ab-7"
    reads = spark.read
    reads.format().load().orderBy().limit().select().collect.return_value = [(8123,)]
    reads.reset_mock()
    assert table_version(spark, "s3a://lake/t", "iceberg") == "8123"
    assert call.format().load("s3a://lake/t#snapshots") in reads.mock_calls
    assert call.format().load().orderBy("committed_at", ascending=False) in reads.mock_calls
