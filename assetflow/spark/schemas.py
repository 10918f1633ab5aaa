"""The columns of published data: stored when it is published, and united by name when it is read.

The name of a version (`layout.py`) has the id of its schema, which is a file beside the versions. So a reader of many
partitions opens one file for each schema that they have, and no data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, cast

from assetflow.errors import AssetflowError
from assetflow.spark.layout import DatasetLayout, write_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader
    from pyspark.sql.types import DataType, StructType

_ID_LENGTH = 12
# What holds all values of a type, narrowest first.
_HOLD = {
    "ByteType": ("ShortType", "IntegerType", "LongType", "DoubleType"),
    "ShortType": ("IntegerType", "LongType", "DoubleType"),
    "IntegerType": ("LongType", "DoubleType"),
    "FloatType": ("DoubleType",),
}
# As many digits as Spark needs to read one of them as a decimal.
_DIGITS = {"ByteType": 10, "ShortType": 10, "IntegerType": 10, "LongType": 20}
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class SchemaStore:
    """The schemas of one dataset.

    Parameters:
        path: the absolute path of the dataset, the one that readers use.
    """

    path: Path

    def add(self, schema: StructType) -> str:
        """Store a schema, and return its id."""
        text = schema.json()
        name = hashlib.sha256(text.encode()).hexdigest()[:_ID_LENGTH]
        file = self._folder / f"{name}.json"
        if not file.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(file, text)
        return name

    def get(self, name: str) -> StructType:
        """Return the schema with this id."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads((self._folder / f"{name}.json").read_text()))

    def all(self) -> dict[str, StructType]:
        """Return all schemas by their ids."""
        return {each.stem: self.get(each.stem) for each in self._folder.glob("*.json")}

    @property
    def _folder(self) -> Path:
        return DatasetLayout(self.path).versions_folder / "schemas"


def united(schemas: Mapping[str, StructType], error: type[AssetflowError], kind: str) -> StructType:
    """Return one schema for data of several: all columns by name, each with a type that holds the values of all.

    Parameters:
        schemas: the schemas by the data that has them, as an error names it.
        error: the class of the error.
        kind: Spark's name of the format, which may know columns less well than Spark.

    Raises:
        `error`: no type holds the values that a column has everywhere, or columns differ that may not.
    """
    for (one, left), (other, right) in combinations(schemas.items(), 2):
        if not _finds_columns(kind, left.names, right.names):
            raise error(
                f"the columns are {', '.join(left.names)} in {one} and {', '.join(right.names)} in {other}, "
                f"and Spark finds columns of {kind} by their exact {'places' if kind == 'csv' else 'names'}",
                fix="Publish the same columns everywhere, or use Parquet",
            )
        try:
            _united(left, right)
        except _NothingHoldsBothError as conflict:
            column, first, second = conflict.args
            raise error(
                f"the column {column} is {first} in {one} and {second} in {other}, and no type holds both",
                fix="Publish one of them anew with the type of the other",
            ) from None
    return cast("StructType", reduce(_united, schemas.values(), next(iter(schemas.values()))))


def _finds_columns(kind: str, names: Sequence[str], others: Sequence[str]) -> bool:
    if kind == "csv":
        return names == others
    known = {name.lower(): name for name in names}
    return kind not in ("json", "xml") or all(known.get(each.lower(), each) == each for each in others)


def with_all_columns(reader: DataFrameReader, options: Mapping[str, str]) -> DataFrameReader:
    """Let Spark look for columns in all files, not in one of them, if files of the format know their columns."""
    return reader.options(**{"mergeSchema": "true", **options})


class _NothingHoldsBothError(Exception):
    """A column has two types. The arguments are its name and the types, as text."""


def _united(left: DataType, right: DataType, column: str = "") -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(left, StructType) and isinstance(right, StructType):
        return _united_fields(left, right, column)
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        return ArrayType(_united(left.elementType, right.elementType, column))
    if isinstance(left, MapType) and isinstance(right, MapType):
        keys = _united(left.keyType, right.keyType, column)
        return MapType(keys, _united(left.valueType, right.valueType, column))
    held = left if left == right else _holder(left, right)
    if held is None:
        raise _NothingHoldsBothError(column, left.simpleString(), right.simpleString())
    return held


def _united_fields(left: StructType, right: StructType, column: str) -> StructType:
    from pyspark.sql.types import StructField, StructType

    # As in Spark, names are equal in whatever case, unless a session lets them differ by it.
    exact = any(len({name.lower() for name in each.names}) < len(each.names) for each in (left, right))
    found: dict[str, StructField] = {}
    for field in (*left.fields, *right.fields):
        name = field.name if exact else field.name.lower()
        known = found.get(name, field)
        kind = _united(known.dataType, field.dataType, f"{column}.{known.name}".lstrip("."))
        found[name] = StructField(known.name, kind, True, known.metadata)
    return StructType(list(found.values()))


def _holder(left: DataType, right: DataType) -> DataType | None:
    """Return the narrowest type that Spark widens both of two types to without loss, or `None`."""
    from pyspark.sql import types

    names = type(left).__name__, type(right).__name__
    if "NullType" in names:
        return right if names[0] == "NullType" else left
    if "DecimalType" in names:
        return _decimal(left, right)
    chains = [(name, *_HOLD.get(name, ())) for name in names]
    common = next((each for each in chains[0] if each in chains[1]), None)
    return None if common is None else getattr(types, common)()


def _decimal(*both: DataType) -> DataType | None:
    from pyspark.sql.types import DecimalType

    whole = scale = 0
    for each in both:
        digits = each.precision - each.scale if isinstance(each, DecimalType) else _DIGITS.get(type(each).__name__, 99)
        whole, scale = max(whole, digits), max(scale, each.scale if isinstance(each, DecimalType) else 0)
    return DecimalType(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None
