"""The column `key`, which holds the partition key of each row in data that Spark writes and reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assetflow.core.partitions import check_key
from assetflow.errors import InvalidCall, PublishFailed
from assetflow.spark.measure import parquet_rows
from assetflow.spark.partitioned import KEY_COLUMN, NO_VALUE, key_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader


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
        raise PublishFailed("some rows have no partition key", fix="Fill the column with keys, or drop these rows")
    return {check_key(key_of(name)): folder / name for name in names}


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
