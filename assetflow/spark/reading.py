"""Read the data of an asset, or of some of its partitions, in one version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from assetflow.authoring.partition_inputs import keys_of_run
from assetflow.core.assets import Asset
from assetflow.errors import AssetflowError, InvalidCall, UnknownAsset
from assetflow.spark.key_column import with_text_keys
from assetflow.spark.layout import DatasetLayout
from assetflow.spark.partitioned import KEY_COLUMN, VERSION_COLUMN, PartitionedLayout
from assetflow.spark.publish import asset_path
from assetflow.spark.session import get_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

_GLOB = str.maketrans({character: f"\\{character}" for character in "\\*?[]{}"})


def read(
    asset: Asset,
    spark: SparkSession | None = None,
    *,
    format: str = "parquet",  # noqa: A002 (Spark's name for it)
    options: Mapping[str, str] | None = None,
    partition_keys: Iterable[str] | None = None,
    all_partitions: bool = False,
) -> DataFrame:
    """Return the data of `asset` as a DataFrame.

    >>> from pathlib import Path
    >>> from assetflow import Asset, publish, read
    >>> orders = Asset(Path("lake/orders").absolute().as_uri())
    >>> published = publish(spark.range(2), orders, partition_key="2026-11-20")
    >>> published = publish(spark.range(3), orders, partition_key="2026-11-21")
    >>> read(orders, spark).count(), read(orders, spark, partition_keys=["2026-11-20"]).count()
    (5, 2)

    For a dataset that `publish` wrote to a local path, the DataFrame reads the version that is current now, whatever is
    published while it is used. Three versions are kept of each partition: use the DataFrame before the third publish
    from now.

    A dataset with partitions has the column `key`, always a text. A run for a partition key reads the partitions that
    the run is about: those whose updates started it, or, if a user or a backfill started it, those that the flow's
    schedule maps to its key. It reads assets that the flow is not scheduled on as a whole. Other runs read everything.

    Parameters:
        asset: what to read.
        spark: the session; by default the session of this process.
        format: Spark's name of the format.
        options: options of Spark's reader for the format.
        partition_keys: read the partitions of these keys, whatever the run is about.
        all_partitions: True to read all partitions, also in a run for a key.

    Raises:
        UnknownAsset: there is no data at the asset's local path, or none for one of the keys.
        InvalidCall: the dataset has no partitions and `partition_keys` is given; or `all_partitions` is given too.
    """
    if partition_keys is not None and (all_partitions or isinstance(partition_keys, str)):
        raise InvalidCall(
            f"partition_keys={partition_keys!r} is not a list of keys, or is given with all_partitions",
            where=asset.uri,
            fix='Give partition_keys=["2026-11-20"], or all_partitions=True',
        )
    wanted = None if partition_keys is None else list(dict.fromkeys(partition_keys))
    reader = (spark or get_session()).read.format(format).options(**(options or {}))
    path = asset_path(asset)
    from pyspark.errors import PySparkException

    try:
        if path is None:
            return _remote(asset, reader, wanted, all_partitions)
        try:
            return _local(asset, reader, path, wanted, all_partitions)
        except PySparkException:
            # If others publish very often, the version may be deleted before Spark lists its files.
            return _local(asset, reader, path, wanted, all_partitions)
    except AssetflowError as error:
        raise error if error.where else error.at(asset.uri) from error


def _local(asset: Asset, reader: DataFrameReader, path: Path, wanted: list[str] | None, all_of_them: bool) -> DataFrame:
    if PartitionedLayout(path).is_there:
        return _partitions(asset, reader, path, wanted, all_of_them)
    return _whole(reader, path, wanted)


def _whole(reader: DataFrameReader, path: Path, wanted: list[str] | None) -> DataFrame:
    current = DatasetLayout(path).current()
    if current is None:
        raise UnknownAsset(f"there is no data at {path}", fix="Run the task that produces it first, or check the path")
    if wanted is not None:
        raise _without_keys()
    return reader.load(_location(current))


def _partitions(
    asset: Asset, reader: DataFrameReader, path: Path, wanted: list[str] | None, all_of_them: bool
) -> DataFrame:
    layout = PartitionedLayout(path)
    if wanted is None and not all_of_them:
        wanted = keys_of_run(asset, layout.keys)
    folders = layout.current(layout.keys() if wanted is None else wanted)
    if not folders:
        raise UnknownAsset(
            f"there is no data at {path} for the keys that this run is about",
            fix="Run the flow that produces it for them, or read with all_partitions=True",
        )
    based = reader.option("basePath", f"file:{layout.store}")
    return with_text_keys(based, [_location(folder) for folder in folders]).drop(VERSION_COLUMN)


def _remote(asset: Asset, reader: DataFrameReader, wanted: list[str] | None, all_of_them: bool) -> DataFrame:
    found = with_text_keys(reader, [asset.uri])
    if KEY_COLUMN not in found.columns:
        if wanted is not None:
            raise _without_keys()
        return found
    if wanted is None and not all_of_them:
        wanted = keys_of_run(asset, lambda: [row[0] for row in found.select(KEY_COLUMN).distinct().collect()])
    return found if wanted is None else found.where(found[KEY_COLUMN].isin(wanted))


def _without_keys() -> InvalidCall:
    return InvalidCall(
        "partition_keys are given, and the data is not in partitions",
        fix="Leave them out, or publish it with partition_key=",
    )


def _location(folder: Path) -> str:
    return f"file:{str(folder).translate(_GLOB)}"
