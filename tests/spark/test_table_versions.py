"""The snapshots of Delta and Iceberg tables, as their connectors tell them to Spark."""

from __future__ import annotations

from typing import Any

from assetflow.spark.data_files import table_version


class Session:
    """A Spark session that answers each question about a table, and notes what was asked."""

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.asked: list[str] = []

    @property
    def read(self) -> Session:
        return self

    def format(self, kind: str) -> Session:
        return self.sql(kind)

    def load(self, place: str) -> Session:
        return self.sql(place)

    def sql(self, statement: str) -> Session:
        self.asked.append(statement)
        return self

    def orderBy(self, column: str, *, ascending: bool) -> Session:  # noqa: N802 (Spark's name)
        return self.sql(f"by {column} {ascending}")

    def limit(self, count: int) -> Session:
        return self.sql(f"limit {count}")

    def select(self, column: str) -> Session:
        self.column = column
        return self

    def collect(self) -> list[tuple[str]]:
        return [(self.answers[self.column],)]


def test_rule_8_2_the_version_of_a_delta_table_names_the_table_too() -> None:
    spark: Any = Session(id="ab", version="7")
    assert table_version(spark, "s3a://lake/t", "delta") == "ab-7"
    assert spark.asked == ["DESCRIBE DETAIL delta.`s3a://lake/t`", "DESCRIBE HISTORY delta.`s3a://lake/t` LIMIT 1"]


def test_rule_8_2_the_version_of_an_iceberg_table_is_its_newest_snapshot() -> None:
    spark: Any = Session(snapshot_id="8123")
    assert table_version(spark, "s3a://lake/t", "iceberg") == "8123"
    assert spark.asked == ["iceberg", "s3a://lake/t#snapshots", "by committed_at False", "limit 1"]
