"""The data files that Spark wrote: measured, named after their attempt, carried over by an append.

An append makes a new version too: the files of the current one (as hard links, without copying) and the new ones. Every
published file has the task run and the attempt in its name. An attempt that appends leaves out the files of earlier
attempts of the same task run, even if others have appended in between, so that a retry does not add rows twice.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote
from uuid import uuid4

from prefect.context import TaskRunContext

from assetflow.authoring.recording import current_recording

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def observe_rows(df: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """Have Spark count the rows of `df` while it writes them.

    Returns:
        The DataFrame to write, once and as the last step, and a function that returns the number of rows. Call it only
        after the write succeeded: it waits for the write.
    """
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    observation = Observation()
    observed = df.observe(observation, count(lit(1)).alias("rows"))
    return observed, lambda: int(observation.get.get("rows") or 0)


def measure_folder(folder: Path) -> dict[str, int | float]:
    """Return the bytes and the number of the data files in a directory that Spark wrote, without its markers."""
    sizes = [file.stat().st_size for file in data_files(folder)]
    return {"bytes": sum(sizes), "files": len(sizes)}


def parquet_rows(spark: SparkSession, folder: Path) -> int:
    """Return the number of rows in the Parquet files of a directory that Spark wrote, from their footers."""
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingTypeStubs]

    footer = cast("Callable[[Path], Any]", parquet.read_metadata)  # pyright: ignore[reportUnknownMemberType]
    try:
        return sum(footer(file).num_rows for file in data_files(folder))
    except OSError:
        # Footers can be encrypted; Spark has the keys.
        return spark.read.parquet(f"file:{folder}").count()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What the footers and dictionaries of Parquet files say about their rows, without a look at the rows.

    Parameters:
        rows: the number of rows.
        columns: of each column, what its chunks say: the number of rows and nulls, the least and the greatest value. A
            column about which a chunk says nothing is missing.
        footers: the footer of each file.
    """

    rows: int
    columns: Mapping[str, Sequence[tuple[int, int, Any, Any]]]
    footers: Mapping[Path, Any]

    def has_no_nulls(self, columns: Iterable[str]) -> bool:
        """Return True if the footers show that there is no null in these columns."""
        known = [self.columns.get(each) for each in columns]
        return all(chunks is not None and not any(nulls for _, nulls, *_ in chunks) for chunks in known)

    def lies_within(self, column: str, least: Any, most: Any) -> bool:
        """Return True if the footers show that all values of a column lie between two bounds, `None` for none."""
        chunks = self.columns.get(column)
        ends = [(low, high) for rows, nulls, low, high in chunks or () if nulls < rows]
        try:
            # Where a chunk has a NaN, its greatest value is NaN, which is not within.
            above = least is None or all(low >= least for low, _ in ends)
            return chunks is not None and above and (most is None or all(high <= most for _, high in ends))
        except TypeError:
            # The least and the greatest value are None, or of another type.
            return False

    def has_only(self, column: str, allowed: Collection[object]) -> bool:
        """Return True if the dictionaries of a column of texts show that it has no other values than these."""
        # A number among the values makes Spark compare numbers.
        if not self.rows or not all(isinstance(each, str) for each in allowed):
            return False
        found = (_dictionary_of(file, footer, column) for file, footer in self.footers.items())
        return all(each is not None and each <= set(allowed) for each in found)

    @staticmethod
    def of(folder: Path) -> FileFacts | None:
        """Return what the files in a directory say, `None` if they cannot be read here."""
        import pyarrow.parquet as parquet  # pyright: ignore[reportMissingTypeStubs]

        footer = cast("Callable[[Path], Any]", parquet.read_metadata)  # pyright: ignore[reportUnknownMemberType]
        try:
            footers = {file: footer(file) for file in data_files(folder)}
        except OSError:
            # Footers can be encrypted.
            return None
        columns: dict[str, list[tuple[int, int, Any, Any]]] = {}
        silent: set[str] = set()
        for found in footers.values():
            for at in range(found.num_columns):
                columns.setdefault(found.schema.column(at).path, [])
            for group in map(found.row_group, range(found.num_row_groups)):
                for chunk in map(group.column, range(group.num_columns)):
                    said = chunk.statistics if chunk.is_stats_set else None
                    if said is None or not said.has_null_count:
                        silent.add(chunk.path_in_schema)
                    else:
                        low, high = (said.min, said.max) if said.has_min_max else (None, None)
                        columns[chunk.path_in_schema].append((group.num_rows, said.null_count, low, high))
        told = {name: chunks for name, chunks in columns.items() if name not in silent}
        return FileFacts(sum(found.num_rows for found in footers.values()), told, footers)


def _dictionary_of(file: Path, footer: Any, column: str) -> set[object] | None:
    """Return the texts in the dictionaries of a column in a Parquet file; `None` if a part of it has no dictionary."""
    import pyarrow.parquet as parquet  # pyright: ignore[reportMissingTypeStubs]

    groups = range(footer.num_row_groups)
    columns = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
    encodings = [footer.row_group(group).column(columns[column]).encodings for group in groups if column in columns]
    if column not in columns or not all("PLAIN_DICTIONARY" in each and "PLAIN" not in each for each in encodings):
        return None
    texts: set[object] = set()
    try:
        source: Any = parquet.ParquetFile(file, metadata=footer, read_dictionary=[column])
        for group in groups:
            # With the first row, the whole dictionary is read.
            batches = source.iter_batches(1, [group], [column])
            first: Any = next((batch.column(0) for batch in batches), None)
            if not hasattr(first, "dictionary"):
                return None
            texts |= set(first.dictionary.to_pylist())
    except OSError:
        # Columns can be encrypted.
        return None
    return texts


def data_files(folder: Path, *, checksums: bool = False) -> Iterator[Path]:
    """Yield the data files in a directory that Spark wrote, without markers such as `_SUCCESS`.

    Parameters:
        checksums: also yield the checksums beside them, which are hidden files.
    """
    for place, _, names in os.walk(folder):
        for name in names:
            if not (name.removeprefix(".") if checksums else name).startswith(("_", ".")):
                yield Path(place, name)


TABLE = "table"
"""What `publish(data_version=...)` is given for the version of the table itself."""


def folder_version(folder: Path) -> str:
    """Return a hash of the names and sizes of the data files in a directory. No file is read."""
    return _hash(f"{file.relative_to(folder)} {file.stat().st_size}" for file in data_files(folder))


def table_version(spark: SparkSession, target: str, kind: str, folder: str = "") -> str:
    """Return the version of what is at a place that Spark wrote to. No data is read.

    Parameters:
        target: where Spark wrote.
        kind: Spark's name of the format. Delta and Iceberg have snapshots; of others a hash of the file names counts.
        folder: of the files only those in a directory of this name; "" for all.
    """
    if kind == "delta":
        (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").select("id").collect()
        (newest,) = spark.sql(f"DESCRIBE HISTORY delta.`{target}` LIMIT 1").select("version").collect()
        # A table that was dropped and created again begins at version 0.
        return f"{detail[0]}-{newest[0]}"
    if kind == "iceberg":
        snapshots = spark.read.format(kind).load(f"{target}#snapshots")
        (newest,) = snapshots.orderBy("committed_at", ascending=False).limit(1).select("snapshot_id").collect()
        return str(newest[0])
    files = spark.read.format(kind).load(target).inputFiles()
    return _hash(file for file in files if not folder or f"/{folder}/" in unquote(file))


def _hash(listing: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(listing)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AttemptId:
    """One attempt of a task run.

    Parameters:
        task_run: the id of the task run; outside of a task run a new id, so that nothing counts as a retry.
        number: the number of the attempt.
    """

    task_run: str
    number: int


def current_attempt() -> AttemptId:
    """Return the current attempt: of the task that records updates, else of Prefect's task run.

    A plain task inside a task that records updates counts as a part of it: on a retry it would get a new task run, and
    its data would be appended twice.
    """
    recording = current_recording()
    if recording is not None and recording.task_run_id:
        return AttemptId(recording.task_run_id, recording.attempt)
    context = TaskRunContext.get()
    if context is not None:
        return AttemptId(str(context.task_run.id), context.task_run.run_count)
    return AttemptId(str(uuid4()), 1)


def mark_files(folder: Path, attempt: AttemptId) -> None:
    """Write the attempt into the names of the data files in `folder`, and of the checksums beside them."""
    for file in list(data_files(folder, checksums=True)):
        hidden = "." if file.name.startswith(".") else ""
        file.rename(file.with_name(f"{hidden}{_mark(attempt)}{file.name[len(hidden) :]}"))


def carry_over(current: Path, folder: Path, attempt: AttemptId) -> None:
    """Link the files of the current version into the new one, except those of the task run's earlier attempts.

    Parameters:
        current: the directory of the current version.
        folder: the directory of the new version, in which the new files are marked.
        attempt: the attempt that appends.
    """
    for file in data_files(current, checksums=True):
        name = file.name.removeprefix(".")
        if name.startswith(_run_mark(attempt)) and not name.startswith(_mark(attempt)):
            continue
        target = folder / file.relative_to(current)
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(file, target)


def _mark(attempt: AttemptId) -> str:
    return f"{_run_mark(attempt)}{attempt.number}~"


def _run_mark(attempt: AttemptId) -> str:
    return f"{attempt.task_run}~"


def _link(file: Path, target: Path) -> None:
    try:
        target.hardlink_to(file)
    except PermissionError:  # a file system without hard links (vfat, some network mounts)
        shutil.copy2(file, target)
