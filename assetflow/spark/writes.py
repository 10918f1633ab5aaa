"""What `publish` is asked to write, and what it tells afterwards; and data that is staged as Parquet. Contract 12.4."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from assetflow.authoring.checks import Check
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import CheckResult
from assetflow.errors import AssetflowError, PublishFailed
from assetflow.spark.data_files import AttemptId
from assetflow.spark.watch import logger, reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["overwrite", "append"]
Metrics = dict[str, int | float]
Results = Mapping[str | None, Sequence[CheckResult]]
# Formats whose datasets are plain directories of files; formats with a log of their own protect themselves.
_FILE_FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
_DATABASES = frozenset({"mysql", "postgres"})


@dataclass(frozen=True, slots=True)
class Published:
    """The result of `publish` or of a `spark_task`; small, and safe to return from a task.

    >>> from assetflow import Asset, flow, spark_task
    >>> @spark_task(outlets=[Asset("file:///lake/orders")])
    ... def load(spark):
    ...     return spark.range(3)
    >>> @flow
    ... def produce() -> int:
    ...     return load().metrics["rows"]

    Attributes:
        asset: the asset.
        path: where readers find the data: the local path, or the URI.
        metrics: `rows` and `seconds` of this write, and on a local path also `bytes`, `files` and `schema`, a number
            that changes with the columns and types.
        partitions: the metrics of each partition key that was written; empty for a dataset without partitions.
        data_versions: the data version of each partition key, under `None` that of a dataset without partitions; empty
            if `publish` was asked for none.
        checks: what the checks found in each partition, under `None` in a dataset without partitions.
    """

    asset: Asset
    path: str
    metrics: Metrics = field(hash=False)
    partitions: Mapping[str, Metrics] = field(default_factory=dict[str, Metrics], hash=False)
    data_versions: Mapping[str | None, str] = field(default_factory=dict["str | None", str], hash=False)
    checks: Results = field(default_factory=dict["str | None", "Sequence[CheckResult]"], hash=False)


@dataclass(frozen=True, slots=True)
class Write:
    """The arguments of one call of `publish`, which explains them."""

    df: DataFrame
    asset: Asset
    mode: Mode = "overwrite"
    format: str = "parquet"
    partition_by: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    partition_key: str | None = None
    partition_column: str | None = None
    data_version: str | None = None
    checks: Sequence[Check] = ()
    keep_failed: Path | None = None

    @property
    def is_staged(self) -> bool:
        """True if the data is written beside the dataset, and becomes visible as a whole."""
        return asset_path(self.asset) is not None and self.format in _FILE_FORMATS

    @property
    def holds_back(self) -> bool:
        """True if a check can hold the data back."""
        return any(each.severity == "error" for each in self.checks)

    @property
    def is_keyed(self) -> bool:
        """True if it writes partitions instead of the whole dataset."""
        return self.partition_key is not None or self.partition_column is not None


def asset_path(asset: Asset) -> Path | None:
    """Return the local path of a `file:` URI (percent-decoded) or an absolute path, or `None` for other assets."""
    parts = urlsplit(asset.uri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    if asset.uri.startswith("/") and not asset.uri.startswith("//"):
        return Path(asset.uri)
    return None


def place_beside(asset: Asset) -> str | None:
    """Return the beginning of the URIs of folders beside an asset, or `None` if nothing can be staged there."""
    path, parts = asset_path(asset), urlsplit(asset.uri)
    if path is not None:
        return f"file:{path}.staging"
    has_folders = parts.scheme and parts.scheme not in _DATABASES and parts.path.strip("/") and not parts.query
    return f"{asset.uri}.staging" if has_folders else None


@contextmanager
def clear_errors(write: Write) -> Generator[None]:
    try:
        yield
    except AssetflowError as error:
        raise error if error.where else error.at(write.asset.uri) from error
    except Exception as error:
        protected = write.is_staged
        kept = "the old data is whole" if protected else "the data is as Spark left it"
        raise PublishFailed(
            f"could not be published ({kept}): {reason_of(error)}",
            where=write.asset.uri,
            fix="Read the cause; a retry is safe" if protected else "Read the cause",
        ) from error


@contextmanager
def staged_as_parquet(write: Write, beside: str, attempt: AttemptId) -> Generator[DataFrame]:
    """Write the data once into a folder that nobody reads, and delete it at the end of the block.

    It is the only table of a database of its own, because dropping a database is how Spark deletes files wherever it
    can write them, in a classic session and through Connect.

    Parameters:
        beside: the beginning of the folder's URI.
    """
    spark = write.df.sparkSession
    own = uuid4().hex
    database, place = f"spark_catalog.assetflow_{own}", f"{beside}-{attempt.task_run}-{attempt.number}-{own[:8]}"
    quoted = place.replace("\\", "\\\\").replace("'", "\\'")
    spark.sql(f"CREATE DATABASE {database} LOCATION '{quoted}'")
    try:
        write.df.write.format("parquet").saveAsTable(f"{database}.data")
        yield spark.read.table(f"{database}.data")
    finally:
        try:
            spark.sql(f"DROP DATABASE {database} CASCADE")
        except Exception as error:
            logger.warning("The staged data in %s could not be deleted: %s", place, reason_of(error))
