"""Checks of the data of an asset, declared on the task that makes it. Contract chapter 12.

Nothing here needs a session: `assetflow.spark.checking` makes the checks, on data that a task has staged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args, overload

from assetflow.authoring.metadata import to_outlet
from assetflow.core.values.assets import Asset, AssetAlias, Outlet
from assetflow.core.values.conditions import AssetLike, Token
from assetflow.core.values.events import Severity
from assetflow.errors import InvalidCheck, InvalidFlow, not_a

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from assetflow.spark.data_files import FileFacts

Rule = Callable[["DataFrame"], object]
Told = Callable[["FileFacts"], int | None]


def _nothing(_: FileFacts) -> None:
    """Say that only the rows can tell."""


@dataclass(frozen=True, slots=True)
class Check:
    """A rule that the new data of an asset has to keep before anybody sees it.

    `at_least`, `no_nulls`, `unique`, `values`, `bounds` and `schema` make one, and `check` turns a function into one.

    >>> from assetflow.checks import Check, no_nulls
    >>> isinstance(no_nulls("id"), Check)
    True

    Contract 12.1.

    Attributes:
        name: names the check among those of its asset.
        wanted: the rule, in words.
        severity: "error" holds the data back, "warn" only warns.
        function: the function that looks at the data; `None` for a check that counts.
        total: returns the aggregate that counts, over all rows.
        told: returns what it would count from what the files say, `None` if only their rows can tell.
        breaks: returns the condition that is true for a row that breaks the rule.
        least, most: the bounds of the number that is counted, or that the function returns.
    """

    name: str
    wanted: str
    severity: Severity = "error"
    function: Rule | None = None
    total: Callable[[], Column] | None = None
    breaks: Callable[[], Column] | None = None
    told: Told = _nothing
    least: float | None = None
    most: float | None = None

    def __post_init__(self) -> None:
        if self.severity not in get_args(Severity):
            raise InvalidCheck(
                f"severity={self.severity!r} is not a severity", where=self.name, fix='Write "error" or "warn"'
            )


def at_least(rows: int, *, severity: Severity = "error") -> Check:
    """Return the check that the data has at least so many rows.

    >>> from assetflow.checks import at_least
    >>> at_least(1).wanted
    'at least 1 row'

    Parameters:
        rows: the number of rows, at least 1.
        severity: "error" holds the data back, "warn" only warns.

    Raises:
        InvalidCheck: `rows` is not a whole number above zero, or the severity is not one.
    """
    if isinstance(cast("object", rows), bool) or not isinstance(cast("object", rows), int) or rows < 1:
        raise InvalidCheck(f"at_least({rows!r}) is not a number of rows", fix="Write at_least(1)")
    return Check(
        "at_least",
        f"at least {rows:,} row{'s' * (rows > 1)}",
        severity,
        total=_rows,
        told=lambda files: files.rows,
        least=rows,
    )


def no_nulls(*columns: str, severity: Severity = "error") -> Check:
    """Return the check that none of these columns has a null.

    >>> from assetflow.checks import no_nulls
    >>> no_nulls("id", "state").name
    'no_nulls(id, state)'

    Parameters:
        columns: the names of the columns.
        severity: "error" holds the data back, "warn" only warns.

    Raises:
        InvalidCheck: no column is named, or the severity is not one.
    """
    named = _named("no_nulls", columns)

    def has_null() -> Column:
        from pyspark.sql.functions import col

        found = col(columns[0]).isNull()
        for each in columns[1:]:
            found |= col(each).isNull()
        return found

    return _rows_keep(
        f"no_nulls({named})", f"no nulls in {named}", severity, has_null, lambda files: files.has_no_nulls(columns)
    )


def values(column: str, allowed: Collection[object], *, severity: Severity = "error") -> Check:
    """Return the check that a column has only these values. A null is not a value: `no_nulls` looks for it.

    >>> from assetflow.checks import values
    >>> values("state", {"open", "paid"}).wanted
    "state is one of 'open', 'paid'"

    Parameters:
        column: the name of the column.
        allowed: the values that it may have.
        severity: "error" holds the data back, "warn" only warns.

    Raises:
        InvalidCheck: there are no values, one of them is `None`, or the severity is not one.
    """
    _named("values", (column,))
    found = [] if isinstance(allowed, str) else sorted(allowed, key=repr)
    if not found or None in found:
        raise InvalidCheck(
            f"values({column!r}, ...) needs a set of values, without None",
            fix=f'Write values({column!r}, {{"a", "b"}})',
        )

    def is_other() -> Column:
        from pyspark.sql.functions import col

        return ~col(column).isin(found)

    wanted = f"{column} is one of {', '.join(map(repr, found))}"
    return _rows_keep(f"values({column})", wanted, severity, is_other, lambda files: files.has_only(column, found))


def bounds(column: str, at_least: Any = None, at_most: Any = None, *, severity: Severity = "error") -> Check:
    """Return the check that the values of a column lie between two bounds, which count as inside. Nulls do not count.

    >>> from assetflow.checks import bounds
    >>> bounds("amount", 0, 1_000_000).wanted
    'amount is at least 0 and at most 1000000'

    Parameters:
        column: the name of the column.
        at_least, at_most: numbers, dates, times or texts; `None` for no bound.
        severity: "error" holds the data back, "warn" only warns.

    Raises:
        InvalidCheck: there is no bound, or the severity is not one.
    """
    _named("bounds", (column,))

    def is_outside() -> Column:
        from pyspark.sql.functions import col, lit

        below = lit(False) if at_least is None else col(column) < at_least
        return below if at_most is None else below | (col(column) > at_most)

    wanted = f"{column} is {_range(at_least, at_most, column)}"
    return _rows_keep(
        f"bounds({column})", wanted, severity, is_outside, lambda files: files.lies_within(column, at_least, at_most)
    )


def unique(*columns: str, severity: Severity = "error") -> Check:
    """Return the check that no two rows have the same values in these columns. Two nulls are the same value.

    It costs one more query over the data.

    >>> from assetflow.checks import unique
    >>> unique("shop", "order").wanted
    'no two rows with the same shop, order'

    Parameters:
        columns: the names of the columns.
        severity: "error" holds the data back, "warn" only warns.

    Raises:
        InvalidCheck: no column is named, or the severity is not one.
    """
    named = _named("unique", columns)

    def repeated() -> Column:
        from pyspark.sql.functions import count_distinct, struct

        return _rows() - count_distinct(struct(*columns))

    wanted = f"no two rows with the same {named}"
    return Check(f"unique({named})", wanted, severity, total=repeated, most=0)


def schema(wanted: str | StructType, *, severity: Severity = "error") -> Check:
    """Return the check that the data has these columns with these types and no others, in whatever order.

    >>> from assetflow.checks import schema
    >>> schema("id BIGINT, state STRING").name
    'schema'

    Parameters:
        wanted: the columns as Spark's DDL, or a `StructType`. Whether they may be null does not count.
        severity: "error" holds the data back, "warn" only warns.

    Raises:
        InvalidCheck: the severity is not one.
    """

    def differences(df: DataFrame) -> list[str]:
        session: Any = df.sparkSession
        expected: StructType = session.createDataFrame([], wanted).schema if isinstance(wanted, str) else wanted
        there, due = (
            {each.name.lower(): each.dataType.simpleString() for each in columns} for columns in (df.schema, expected)
        )
        missing = [f"{name} {kind} is missing" for name, kind in due.items() if name not in there]
        others = [
            f"{name} is {there[name]}, not {due[name]}" for name in due if due[name] != there.get(name, due[name])
        ]
        return [*missing, *others, *(f"{name} {kind} is there too" for name, kind in there.items() if name not in due)]

    words = wanted if isinstance(wanted, str) else wanted.simpleString()
    return Check("schema", words, severity, function=differences)


def pandera_schema(schema: Any, *, severity: Severity = "error") -> Check:
    """Return the check that the data keeps a schema of `pandera.pyspark`.

    >>> from assetflow.checks import pandera_schema
    >>> import pandera.pyspark as pa
    >>> from pyspark.sql.types import LongType
    >>> pandera_schema(pa.DataFrameSchema({"id": pa.Column(LongType(), pa.Check.gt(0))}, name="orders")).name
    'orders'

    Parameters:
        schema: a `DataFrameSchema` or a `DataFrameModel`.
        severity: "error" holds the data back, "warn" only warns.

    Raises:
        InvalidCheck: `schema` is neither, or the severity is not one.
    """
    name = getattr(schema, "name", None) or getattr(schema, "__name__", None) or "pandera"
    if not callable(getattr(schema, "validate", None)):
        raise InvalidCheck(f"{schema!r} is not a schema of pandera", fix="Give a DataFrameSchema or a DataFrameModel")

    def broken(df: DataFrame) -> list[str]:
        kinds: dict[str, dict[str, list[dict[str, str]]]] = schema.validate(df).pandera.errors or {}
        return [each["error"] for reasons in kinds.values() for errors in reasons.values() for each in errors]

    return Check(str(name), f"the schema {name}", severity, function=broken)


@overload
def check(fn: Rule, /) -> Check: ...
@overload
def check(
    *, severity: Severity = "error", at_least: float | None = None, at_most: float | None = None
) -> Callable[[Rule], Check]: ...
def check(
    fn: Rule | None = None,
    /,
    *,
    severity: Severity = "error",
    at_least: float | None = None,
    at_most: float | None = None,
) -> Check | Callable[[Rule], Check]:
    """Turn a function that looks at a DataFrame into a check.

    >>> from assetflow.checks import check
    >>> @check(severity="warn")
    ... def amounts_are_sane(df):
    ...     return df.filter("amount > 1e6").count() == 0
    >>> amounts_are_sane.name
    'amounts_are_sane'

    The function gets the new data, as it will be read, and returns True if it is good. It may also return a number
    (with `at_least` or `at_most`), a DataFrame of the rows that break the rule, or a list of texts that say what is
    wrong. A function that raises has failed, whatever the severity. Its first line of documentation says what is
    wanted. Contract 12.3.

    Parameters:
        fn: the function, if the decorator has no options.
        severity: "error" holds the data back, "warn" only warns.
        at_least, at_most: the bounds of the number that the function returns.

    Raises:
        InvalidCheck: `fn` is not a function of one argument, or is `async`; or the severity is not one.
    """
    made = partial(_as_check, severity=severity, at_least=at_least, at_most=at_most)
    return made if fn is None else made(fn)


def _as_check(fn: Rule, severity: Severity, at_least: float | None, at_most: float | None) -> Check:
    name = getattr(fn, "__name__", repr(fn))
    try:
        inspect.signature(fn).bind(None)
    except (TypeError, ValueError) as error:
        raise InvalidCheck(
            "a check is a function of one argument, the DataFrame", where=name, fix=f"Write def {name}(df)"
        ) from error
    if inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn):
        raise InvalidCheck("a check neither waits nor yields", where=name, fix=f"Write def {name}(df), with a return")
    bounded = at_least is not None or at_most is not None
    wanted = (inspect.getdoc(fn) or "").partition("\n")[0].rstrip(".")
    wanted = wanted or (_range(at_least, at_most, name) if bounded else f"{name.replace('_', ' ')}")
    return Check(name, wanted, severity, function=fn, least=at_least, most=at_most)


def _rows() -> Column:
    from pyspark.sql.functions import count, lit

    return count(lit(1))


def _rows_keep(
    name: str,
    wanted: str,
    severity: Severity,
    breaks: Callable[[], Column],
    is_kept: Callable[[FileFacts], bool] = lambda _: False,
) -> Check:
    """Return the check that no row breaks a rule.

    Parameters:
        is_kept: returns True if what the files say shows that no row does.
    """

    def broken() -> Column:
        from pyspark.sql.functions import count_if

        return count_if(breaks())

    def told(files: FileFacts) -> int | None:
        return 0 if is_kept(files) else None

    return Check(name, wanted, severity, total=broken, breaks=breaks, told=told, most=0)


def _named(name: str, columns: Sequence[str]) -> str:
    if not columns or not all(isinstance(cast("object", each), str) and each.strip() for each in columns):
        raise InvalidCheck(f"{name} needs the names of columns", fix=f'Write {name}("id", ...)')
    return ", ".join(columns)


def _range(least: object, most: object, where: str) -> str:
    if least is None and most is None:
        raise InvalidCheck("there is no bound", where=where, fix="Give at_least, at_most, or both")
    told = [] if least is None else [f"at least {least}"]
    return " and ".join(told if most is None else [*told, f"at most {most}"])


# The value of `checks=`: for each outlet a check or several.
Checks = Mapping[Outlet | AssetLike, Check | Sequence[Check]]


@dataclass(frozen=True, slots=True)
class DeclaredChecks:
    """The checks of a task's outlets, and where to keep data that fails one.

    Parameters:
        of: the checks of each outlet, by its token.
        keep_failed: the folder for data that a check has held back; `None` deletes it.
    """

    of: Mapping[Token, Sequence[Check]] = field(default_factory=dict[Token, "Sequence[Check]"])
    keep_failed: Path | None = None


UNCHECKED = DeclaredChecks()


def read_checks(checks: Checks | None, outlets: Collection[Outlet], keep_failed: str | Path | None) -> DeclaredChecks:
    """Return the values of `checks=` and `keep_failed=`.

    Raises:
        InvalidCheck: a check is not one, has the name of another, or is not of an outlet with a URI; or the place of
            its asset has no staging, and its severity is "error".
    """
    if checks is None:
        return UNCHECKED
    if not isinstance(cast("object", checks), Mapping):
        raise InvalidCheck(f"checks={checks!r} names no outlets", fix="Write checks={orders: [at_least(1)]}")
    named = {each.token for each in outlets if not isinstance(each, AssetAlias)}
    found: dict[Token, Sequence[Check]] = {}
    for outlet, given in checks.items():
        token = _token(outlet)
        if token.kind != "uri" or token not in named:
            raise InvalidCheck(
                "checks= names something that is not an outlet with a URI",
                where=token.value,
                fix="Use an Asset of outlets= as the key",
            )
        found[token] = _checked([given] if isinstance(given, Check) else given, token.value)
    return DeclaredChecks(found, None if keep_failed is None else Path(keep_failed).absolute())


def _token(outlet: object) -> Token:
    try:
        return to_outlet(outlet).token
    except InvalidFlow as error:
        raise InvalidCheck(error.message, where="checks=", fix=error.fix) from error


def _checked(checks: Sequence[object], uri: str) -> tuple[Check, ...]:
    from assetflow.spark.writes import place_beside

    names: set[str] = set()
    is_staged = place_beside(Asset(uri)) is not None
    for each in checks:
        if not isinstance(each, Check):
            raise not_a(InvalidCheck, each, "a check", "Decorate the function with @check", where=uri)
        if each.name in names:
            raise InvalidCheck(f"two checks are named {each.name}", where=uri, fix="Rename one, or make them one")
        if each.severity == "error" and not is_staged:
            raise InvalidCheck(
                f"{each.name} cannot hold data back: there is no folder beside it in which Spark can stage data",
                where=uri,
                fix='Write severity="warn": then it is made after the write',
                rule="12.4",
            )
        names.add(each.name)
    return tuple(cast("Sequence[Check]", checks))
