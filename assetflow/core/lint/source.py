"""What the text of a file says: which data its functions read, crons without a time zone, and what to ignore."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Literal, cast

from assetflow.core.shapes import shape
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.errors import AssetflowError

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Check:
    """A check of the lint: how grave its findings are, and what they say in general."""

    level: Level
    title: str


CHECKS = {
    "AF001": Check("error", "A file or a flow in it cannot be imported"),
    "AF002": Check("error", "A deploy would refuse the flow"),
    "AF003": Check("note", "A deploy would note something about the flow"),
    "AF004": Check("warning", "Nobody updates an asset or alias that a flow is scheduled on"),
    "AF005": Check("warning", "Flows start each other in a circle"),
    "AF006": Check("error", "A condition can never hold"),
    "AF007": Check("warning", "A branch of an OR is useless"),
    "AF008": Check("warning", "Two flows update one asset"),
    "AF009": Check("warning", "An input is read that is neither declared nor scheduled on"),
    "AF010": Check("error", "The mappers of two assets never give the same key"),
    "AF011": Check("warning", "Flows read the keys of one asset in different formats"),
    "AF012": Check("note", "A cron is written without a time zone"),
    "AF013": Check("note", "An alias is updated, and nobody uses it"),
    "AF014": Check("note", "A wait for more updates has no end"),
}


@dataclass(frozen=True)
class SeenFlow:
    """A flow as the lint sees it.

    Attributes:
        file: the path of its file, from the working directory if it is below that.
        line: the line where its definition begins.
        function: what was decorated.
    """

    name: str
    file: str
    line: int
    declaration: FlowDeclaration
    function: FunctionType

    def finding(self, code: str, message: str, fix: str) -> Finding:
        """Return a finding about the flow."""
        return Finding(code, self.file, self.line, f"{self.name}: {message}", fix)

    def refused(self, why: str, fix: str) -> Finding:
        """Return the finding that a deploy refuses the flow."""
        return self.finding("AF002", f"a deploy refuses it: {why}", fix)


@shape
class Finding:
    """One finding: what is wrong in a line of a file, and what to do about it."""

    code: str
    file: str
    line: int
    message: str
    fix: str
    level: Level = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", CHECKS[self.code].level)


# Returns the object that a name of a module stands for; `None` if there is none.
Lookup = Callable[[str], object]

_IGNORE = re.compile(r"#\s*assetflow:\s*ignore(?:=(?P<codes>[\w, ]+))?")
_READERS = frozenset({"csv", "json", "load", "orc", "parquet", "table", "text"})
_CRON = re.compile(r"@(daily|weekly|monthly|yearly)|\S+( \S+){4}")
# What takes a cron, each with the place of the cron and of the time zone among its arguments.
_WITH_ZONE = {"CronTriggerTimetable": (0, 1), "CronPartitionTimetable": (0, 1), "since": (0, None)}
_TEXTS = {
    "flow": "schedule",
    "asset": "schedule",
    "observe": "every",
    "AssetOrTimeSchedule": "timetable",
    "AssetAndTimeSchedule": "timetable",
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Source:
    """The text of a Python file."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._lines = text.splitlines()
        self._tree = ast.parse(text)

    @cached_property
    def _functions(self) -> dict[int, _Function]:
        """The functions, by the line where their definition, with its decorators, begins."""
        found = (node for node in ast.walk(self._tree) if isinstance(node, _Function))
        return {min(one.lineno for one in (each, *each.decorator_list)): each for each in found}

    def ignores(self, finding: Finding) -> bool:
        """Return True if a comment says to ignore a finding: in its line, or above the body of its function."""
        function = self._functions.get(finding.line)
        last = finding.line if function is None else max(finding.line, function.body[0].lineno - 1)
        comments = filter(None, map(_IGNORE.search, self._lines[finding.line - 1 : last]))
        given = [each["codes"] for each in comments]
        return any(codes is None or finding.code in re.split(r"[, ]+", codes) for codes in given)

    def reads(self, line: int, lookup: Lookup) -> Iterator[tuple[int, Token]]:
        """Yield what the function that begins in a line reads, each with its line: only what is written as a constant.

        Parameters:
            lookup: returns what a global name of the function stands for.
        """
        function = self._functions.get(line)
        for node in () if function is None else ast.walk(function):
            read = _what_is_read(node, lookup)
            token = None if read is None else _token_of(read, lookup)
            if token is not None and isinstance(node, ast.expr):
                yield node.lineno, token

    def crons_without_zone(self) -> Iterator[Finding]:
        """Find crons that name an hour, in a place where a time zone could stand."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call):
                for cron in _crons(node):
                    message = f"the cron {cron!r} has no time zone, so it is in UTC"
                    fix = f'Write CronTriggerTimetable({cron!r}, timezone="Europe/Berlin"), or "UTC" if that is meant'
                    yield Finding("AF012", self.file, node.lineno, message, fix)


def _crons(call: ast.Call) -> Iterator[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = {each.arg: each.value for each in call.keywords}
    texts = [given.get(_TEXTS.get(name, ""))]
    if name in _WITH_ZONE and "timezone" not in given:
        place, zone = _WITH_ZONE[name]
        if zone is None or len(call.args) <= zone:
            texts = [*call.args[place : place + 1], given.get("cron")]
    for text in texts:
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and _names_an_hour(text.value):
            yield text.value


def _names_an_hour(cron: str) -> bool:
    return _CRON.fullmatch(cron) is not None and (cron.startswith("@") or cron.split()[1] != "*")


def _what_is_read(node: ast.AST, lookup: Lookup) -> ast.expr | None:
    """Return what a call or a subscript reads: `read(x)`, `spark.read.parquet(x)`, `inlet_events[x]`."""
    if isinstance(node, ast.Subscript):
        return node.slice if isinstance(node.value, ast.Name) and node.value.id == "inlet_events" else None
    if not isinstance(node, ast.Call) or not node.args:
        return None
    called = _value(node.func, lookup)
    ours = getattr(called, "__name__", "") == "read" and getattr(called, "__module__", "").startswith("assetflow.")
    return node.args[0] if ours or _is_spark_reader(node.func) else None


def _is_spark_reader(called: ast.expr) -> bool:
    """Return True for `spark.read.parquet`, `spark.read.format("json").load` and the like."""
    if not isinstance(called, ast.Attribute) or called.attr not in _READERS:
        return False
    return any(isinstance(each, ast.Attribute) and each.attr == "read" for each in ast.walk(called.value))


def _token_of(read: ast.expr, lookup: Lookup) -> Token | None:
    """Return the token of a constant: a URI with a scheme, an asset of a module, or the `uri` of one."""
    if isinstance(read, ast.Constant) and isinstance(read.value, str) and "://" in read.value:
        with suppress(AssetflowError):
            return Asset(read.value).token
    owner = read.value if isinstance(read, ast.Attribute) and read.attr == "uri" else read
    token: object = getattr(_value(owner, lookup), "token", None)
    return token if isinstance(token, Token) else None


def _value(node: ast.expr, lookup: Lookup) -> object:
    """Return the object of a module that `name` or `module.name` stands for."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return cast("object", getattr(lookup(node.value.id), node.attr, None))
    return lookup(node.id) if isinstance(node, ast.Name) else None
