"""The layout of a dataset with partitions on disk: each partition is published on its own, like a dataset.

    /lake/weather                                 a link to the folder of partitions: what readers read
    /lake/weather.versions/
        partitions/key=2026-11-20T05              a link to the current version of this partition
        store/key=2026-11-20T05/                  what `layout.py` says of a dataset: versions, lock, staging
            _version=000002~<schema>-<task run>/

A partition becomes visible by one rename of its link; no other one is touched, locked or waited for. Spark, and
whatever else knows Hive's directories, sees the key as the column `key`. Behind the links the directory of a version is
named like a column too, so that Spark finds `key` above it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote
from uuid import uuid4

from assetflow.core.partitions import check_key
from assetflow.errors import InvalidCall, PublishFailed, UnknownAsset
from assetflow.spark.data_files import parquet_rows
from assetflow.spark.layout import DatasetLayout, sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader


KEY_COLUMN = "key"
VERSION_COLUMN = "_version"
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_LONGEST_NAME = 255
_PLAIN = frozenset(" -_.~+,@")


@dataclass(frozen=True, slots=True)
class PartitionedLayout:
    """The directory layout of one dataset with partitions.

    Parameters:
        path: the absolute path of the dataset, the one that readers use.
    """

    path: Path

    @property
    def partitions_folder(self) -> Path:
        return _folder(self.path) / "partitions"

    @property
    def store(self) -> Path:
        return _folder(self.path) / "store"

    @property
    def is_there(self) -> bool:
        """True if the dataset has partitions."""
        return self.path.is_symlink() and self.path.readlink() == _target(self.path)

    def check(self) -> None:
        """Check that the path is free, or holds partitions.

        Raises:
            PublishFailed: the path holds data that is not in partitions.
        """
        if not self.is_there and (self.path.is_symlink() or self.path.exists()):
            raise PublishFailed(
                f"{self.path} holds data that is not in partitions, so a partition cannot be added",
                fix="Move it away, or give the asset a path of its own",
            )

    def show(self) -> None:
        """Make the partitions visible under the dataset's path. Raises the same errors as `check`."""
        if self.is_there:
            return
        with DatasetLayout(self.path).lock():
            self.check()
            link = _folder(self.path) / f".link-{uuid4().hex[:8]}"
            link.symlink_to(_target(self.path))
            link.replace(self.path)
            sync(self.path.parent)

    def of(self, key: str) -> DatasetLayout:
        """Return the layout of one partition.

        Raises:
            InvalidEvent: the text is not a valid partition key. Contract 2.5.
            PublishFailed: it does not fit into the name of a directory.
        """
        name = directory_of(key)
        self.partitions_folder.mkdir(parents=True, exist_ok=True)
        return DatasetLayout(self.partitions_folder / name, self.store / name, f"{VERSION_COLUMN}=")

    def keys(self) -> list[str]:
        """Return the keys that have data now, sorted."""
        with suppress(FileNotFoundError):
            names = [each.name for each in self.partitions_folder.iterdir()]
            return sorted(key_of(name) for name in names if name.startswith(f"{KEY_COLUMN}="))
        return []

    def current(self, keys: Collection[str]) -> dict[str, Path]:
        """Return the directories of the current versions of these partitions, by key.

        Raises:
            UnknownAsset: one of the partitions has no data.
        """
        found = {key: self.partitions_folder / directory_of(key) for key in keys}
        missing = [key for key, link in found.items() if not link.exists()]
        if missing:
            shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            raise UnknownAsset(
                f"there is no data at {self.path} for {shown}",
                fix="Run the flow that produces it for these keys; `assetflow partitions gaps` shows what is missing",
            )
        return {key: link.resolve() for key, link in found.items()}


def refuse_partitions(path: Path) -> None:
    """Check that a dataset has no partitions, so that it can be replaced as a whole.

    Raises:
        PublishFailed: it has partitions.
    """
    if PartitionedLayout(path).is_there:
        raise PublishFailed(
            f"{path} is in partitions, and neither the write nor the run has a key",
            fix="Run the flow with a partition_key, or give one: publish(df, asset, partition_key=...)",
        )


def directory_of(key: str) -> str:
    """Return the name of a partition's directory, as Hive and Spark write it.

    Raises:
        InvalidEvent: the text is not a valid partition key. Contract 2.5.
        PublishFailed: the name would be longer than file systems allow.
    """
    value = "".join(map(_escaped, check_key(key)))
    if value == NO_VALUE:
        value = f"%5F{value[1:]}"
    name = f"{KEY_COLUMN}={value}"
    if len(name.encode()) > _LONGEST_NAME:
        raise PublishFailed(
            f"the partition key {key[:40]!r}… needs a directory name of {len(name.encode())} bytes, "
            f"file systems allow {_LONGEST_NAME}",
            fix="Use shorter keys, or keys of letters, digits, '-' and '_'",
        )
    return name


def key_of(directory: str) -> str:
    """Return the key of a partition's directory."""
    return unquote(directory.partition("=")[2])


def _escaped(character: str) -> str:
    plain = character.isalnum() or character in _PLAIN or not character.isascii()
    return character if plain else f"%{ord(character):02X}"


def _folder(path: Path) -> Path:
    return DatasetLayout(path).versions_folder


def _target(path: Path) -> Path:
    return Path(_folder(path).name) / "partitions"


def check_columns(columns: Sequence[str], key: str | None, column: str | None) -> None:
    """Check that a DataFrame can get the column `key`.

    Parameters:
        columns: the columns of the DataFrame.
        key: the one key of all rows.
        column: the column with the key of each row.

    Raises:
        InvalidCall: both are given.
        PublishFailed: the DataFrame does not have this column, or has another one that is called `key`.
    """
    if key is not None and column is not None:
        raise InvalidCall("partition_key and partition_column cannot be given together", fix="Give one of them")
    names = [name.lower() for name in columns]
    if column is not None and column.lower() not in names:
        raise PublishFailed(
            f"there is no column {column!r} with the partition keys", fix=f"The columns are {', '.join(columns)}"
        )
    if KEY_COLUMN in names and (column or "").lower() != KEY_COLUMN:
        raise PublishFailed(
            f"the data has a column {KEY_COLUMN!r}, which is the name of the column with the partition key",
            fix=f"Rename it, drop it, or use it as the key: publish(..., partition_column={KEY_COLUMN!r})",
        )


def with_key(df: DataFrame, key: str | None, column: str | None) -> DataFrame:
    """Return the DataFrame with the column `key`, which holds text."""
    from pyspark.sql import functions as f

    return df.withColumn(KEY_COLUMN, f.lit(key) if column is None else f.col(column).cast("string"))


def folders_by_key(folder: Path) -> dict[str, Path]:
    """Return the directories of the partitions that Spark wrote, by key.

    Raises:
        PublishFailed: some rows have no key.
        InvalidEvent: a key breaks contract 2.5.
    """
    names = sorted(each.name for each in folder.iterdir() if each.name.startswith(f"{KEY_COLUMN}="))
    if f"{KEY_COLUMN}={NO_VALUE}" in names:
        raise _rows_without_key()
    return {check_key(key_of(name)): folder / name for name in names}


def count_by_key(data: DataFrame) -> dict[str, int]:
    """Return the number of rows of each key in a DataFrame with the column `key`.

    Raises as `folders_by_key`.
    """
    rows: dict[str | None, int] = {row[0]: row[1] for row in data.groupBy(KEY_COLUMN).count().collect()}
    if None in rows:
        raise _rows_without_key()
    return {check_key(key): rows[key] for key in sorted(filter(None, rows))}


def _rows_without_key() -> PublishFailed:
    return PublishFailed("some rows have no partition key", fix="Fill the column with keys, or drop these rows")


def rows_by_key(
    df: DataFrame,
    folder: Path,
    format: str,  # noqa: A002 (Spark's name for it)
    options: Mapping[str, str],
    column: str | None,
) -> dict[str, int]:
    """Return the number of rows written for each key, counted in the files, so that `df` is computed once."""
    if format == "parquet":
        return {key: parquet_rows(df.sparkSession, place) for key, place in folders_by_key(folder).items()}
    schema = with_key(df, None, column).schema
    written = df.sparkSession.read.format(format).options(**options).schema(schema).load(f"file:{folder}")
    return {row[0]: row[1] for row in written.groupBy(KEY_COLUMN).count().collect()}


def with_text_keys(reader: DataFrameReader, locations: list[str]) -> DataFrame:
    """Read the data at these places, with the column `key`, if there is one, as text: Spark would guess a type."""
    from pyspark.sql.types import StringType, StructField, StructType

    found = reader.load(locations)
    fields = found.schema.fields
    if all(field.name != KEY_COLUMN or isinstance(field.dataType, StringType) for field in fields):
        return found
    texts = [StructField(KEY_COLUMN, StringType()) if field.name == KEY_COLUMN else field for field in fields]
    return reader.schema(StructType(texts)).load(locations)
