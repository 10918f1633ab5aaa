"""Read the data of an asset, or of some of its partitions, in one version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assetflow.authoring.past_events.reading import keys_of_run
from assetflow.core.values.assets import Asset
from assetflow.errors import AssetflowError, InvalidCall, ReadFailed, UnknownAsset
from assetflow.spark.layout import DatasetLayout, schema_of
from assetflow.spark.partitioned import KEY_COLUMN, VERSION_COLUMN, PartitionedLayout, with_text_keys
from assetflow.spark.schemas import SchemaStore, united, with_all_columns
from assetflow.spark.session import get_session
from assetflow.spark.watch import reason_of
from assetflow.spark.writes import asset_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

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

    It has all columns that its partitions and appended parts have, with null where a part lacks one, and with a type
    that holds the values of all parts. The schema comes from the publish; for data that something else wrote, and at
    other places, Spark looks into all files (`options={"mergeSchema": "false"}`: into one).

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
        ReadFailed: Spark cannot read the data, or no type holds the values of a column in all partitions.
        InvalidCall: the dataset has no partitions and `partition_keys` is given; or `all_partitions` is given too.
    """
    if partition_keys is not None and (all_partitions or isinstance(partition_keys, str)):
        raise InvalidCall(
            f"partition_keys={partition_keys!r} is not a list of keys, or is given with all_partitions",
            where=asset.uri,
            fix='Give partition_keys=["2026-11-20"], or all_partitions=True',
        )
    wanted = None if partition_keys is None else list(dict.fromkeys(partition_keys))
    session = spark or get_session()
    path = asset_path(asset)
    from py4j.protocol import Py4JError  # pyright: ignore[reportMissingTypeStubs]
    from pyspark.errors import PySparkException

    try:
        if path is None:
            reader = with_all_columns(session.read.format(format), options or {})
            return _remote(asset, reader, wanted, all_partitions)
        data = _Local(asset, path, session, format, options or {})
        try:
            return _looked_at(data.load(wanted, all_partitions))
        except PySparkException:
            # If others publish very often, the version may be deleted before Spark lists its files.
            return _looked_at(data.load(wanted, all_partitions))
    except AssetflowError as error:
        raise error if error.where else error.at(asset.uri) from error
    except (PySparkException, Py4JError) as error:
        raise ReadFailed(
            f"could not be read: {reason_of(error)}",
            where=asset.uri,
            fix="Read the cause, and check format and options",
        ) from error


@dataclass(frozen=True, slots=True)
class _Local:
    """A dataset on a local path, and how to read it."""

    asset: Asset
    path: Path
    session: SparkSession
    format: str
    options: Mapping[str, str]

    @property
    def reader(self) -> DataFrameReader:
        return self.session.read.format(self.format).options(**self.options)

    def load(self, wanted: list[str] | None, all_of_them: bool) -> DataFrame:
        if PartitionedLayout(self.path).is_there:
            return self._partitions(wanted, all_of_them)
        current = DatasetLayout(self.path).current()
        if current is None:
            raise UnknownAsset(
                f"there is no data at {self.path}", fix="Run the task that produces it first, or check the path"
            )
        if wanted is not None:
            raise _without_keys()
        if not schema_of(current):
            return with_all_columns(self.reader, self.options).load(_location(current))
        return self.reader.schema(SchemaStore(self.path).get(schema_of(current))).load(_location(current))

    def _partitions(self, wanted: list[str] | None, all_of_them: bool) -> DataFrame:
        layout = PartitionedLayout(self.path)
        if wanted is None and not all_of_them:
            wanted = keys_of_run(self.asset, layout.keys)
        folders = layout.current(layout.keys() if wanted is None else wanted)
        # Without one partition, the dataset has the columns of what was published without rows.
        schemas = self._schemas(folders) if folders or wanted is not None else SchemaStore(self.path).all()
        if not schemas:
            raise UnknownAsset(
                f"there is no data at {self.path} for the keys that this run is about",
                fix="Run the flow that produces it for them, or read with all_partitions=True",
            )
        schema = united(schemas, ReadFailed, self.format).add(KEY_COLUMN, "string")
        if not folders:
            return cast(Any, self.session).createDataFrame([], schema)
        based = self.reader.option("basePath", f"file:{layout.store}").schema(schema)
        return based.load([_location(folder) for folder in folders.values()]).drop(VERSION_COLUMN)

    def _schemas(self, folders: Mapping[str, Path]) -> dict[str, StructType]:
        """Return each schema of these partitions once, by the first key that has it."""
        store = SchemaStore(self.path)
        keys: dict[str, str] = {}
        for key, folder in folders.items():
            keys.setdefault(schema_of(folder), key)
        return {
            f"partition {key}": store.get(name) if name else self.reader.load(_location(folders[key])).schema
            for name, key in keys.items()
        }


def _looked_at(frame: DataFrame) -> DataFrame:
    # A Connect server looks at data only when it is asked for something.
    _ = frame.schema
    return frame


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
