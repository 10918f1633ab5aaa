"""What is wrong with schedules, found without a server: what the text of a file says, and the checks of schedules.

The checks are of one schedule, of keys, and of assets over all flows. Contract 11.1 to 11.3.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from types import FunctionType
from typing import Literal, cast

from assetflow.core.grouping import grouped
from assetflow.core.partitions import (
    AllowedKeyMapper,
    FixedKeyMapper,
    PartitionMapper,
    RollupMapper,
    StaticMapper,
    TemporalMapper,
)
from assetflow.core.shapes import shape
from assetflow.core.time.timetables import CronPartitionTimetable
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.conditions import Condition, Leaf, Token, fold_condition
from assetflow.core.wire.declarations import FlowDeclaration, resolved, uris_of_names
from assetflow.errors import AssetflowError, MappingError

Level = Literal["error", "warning", "note"]
# The similarity, at most 1, from which one name may be a typing error for another.
_ALIKE = 0.85


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


@dataclass(frozen=True)
class Assets:
    """The assets of some flows.

    Parameters:
        external: patterns of URIs and names that something outside of the flows updates.
        deployed: URIs and names that a ledger knows.
    """

    flows: Sequence[SeenFlow]
    external: Collection[str] = ()
    deployed: Collection[str] = ()

    @cached_property
    def _uris(self) -> Mapping[str, str]:
        return uris_of_names(flow.declaration for flow in self.flows)

    @cached_property
    def makers(self) -> Mapping[Token, Sequence[SeenFlow]]:
        """The flows that update each asset and alias."""
        return grouped((token, flow) for flow in self.flows for token in self._made_by(flow))

    def _made_by(self, flow: SeenFlow) -> Iterable[Token]:
        return dict.fromkeys(resolved(outlet.token, self._uris) for outlet in flow.declaration.produces)

    @cached_property
    def _watched(self) -> frozenset[Token]:
        assets = (asset for flow in self.flows for asset in flow.declaration.assets)
        return frozenset(asset.token for asset in assets if asset.watchers)

    def check(self) -> Iterator[Finding]:
        """Find assets that nobody updates, that several flows update, and aliases that nobody uses."""
        for flow in self.flows:
            yield from self._check_sources(flow)
        for token, makers in self.makers.items():
            if token.kind == "alias" and token not in self._used:
                message = f"it updates the alias {token.value!r}, which no flow is scheduled on or reads"
                yield makers[0].finding("AF013", message, "Schedule a flow on it, or leave it out of the outlets")
            for maker in makers[1:] if token.kind != "alias" else ():
                message = f"it updates {token.value}, and so does {makers[0].name} ({makers[0].file})"
                yield maker.finding("AF008", message, "Let one flow update it; if both are meant, ignore AF008")

    @cached_property
    def _used(self) -> frozenset[Token]:
        declared = [flow.declaration for flow in self.flows]
        read = {outlet.token for each in declared for outlet in each.reads if isinstance(outlet, AssetAlias)}
        return frozenset(read).union(*(each.options.schedule.tokens for each in declared))

    def _check_sources(self, flow: SeenFlow) -> Iterator[Finding]:
        schedule = flow.declaration.options.schedule
        named = schedule.tokens if schedule.keeping is None else schedule.keeping.start_tokens
        for token in sorted(named):
            known = resolved(token, self._uris)
            is_external = any(
                fnmatchcase(label, each) for label in (token.value, known.value) for each in self.external
            )
            if known in self.makers or known in self._watched or is_external:
                continue
            what = {"uri": "the asset", "name": "an asset called", "alias": "the alias"}[token.kind]
            message = f"it is scheduled on {what} {token.value}, which no flow here updates{self._meant(token)}"
            yield flow.finding("AF004", message, f'Correct the name, or list it as external = ["{token.value}"]')

    def _meant(self, token: Token) -> str:
        made = {each.value for each in self.makers if (each.kind == "alias") == (token.kind == "alias")}
        outlets = (each for flow in self.flows for each in flow.declaration.produces if isinstance(each, Asset))
        names = {each.name for each in outlets} if token.kind == "name" else set[str]()
        near = get_close_matches(token.value, sorted({*made, *names, *self.deployed} - {token.value}), 1, _ALIKE)
        return f". Did you mean {near[0]}?" if near else ""


# Larger conditions are made by a program, and comparing all their branches takes long.
MOST_NODES = 300


def check_condition(flow: SeenFlow) -> Iterator[Finding]:
    """Find a condition that can never hold, or branches of an OR that change nothing."""
    condition = flow.declaration.options.schedule.condition
    if condition is None:
        return
    can_hold = fold_condition(condition, lambda _: True, lambda gate, members: sum(members) >= gate.needed)
    if not can_hold or not condition.tokens:
        message = "its condition can never hold: a part of it names no asset"
        yield flow.finding("AF006", message, "Name assets that somebody updates")
    if len(condition.postfix) <= MOST_NODES:
        for useless, other in useless_branches(condition):
            yield flow.finding(
                "AF007",
                f"in an OR, {useless.describe()} changes nothing: {other.describe()} holds whenever it does",
                "Leave it out, or write & where both are needed",
            )


def useless_branches(condition: Condition) -> Iterator[tuple[Condition, Condition]]:
    """Yield the branches of ORs that imply another branch, each with that one."""
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        members = cast("tuple[Condition, ...]", tuple(node.members))
        waiting += members
        if node.gate is None or node.gate.kind != "any":
            continue
        for place, branch in enumerate(members):
            # Of two that imply each other, the later one is useless.
            others = (*members[:place], *(each for each in members[place + 1 :] if not implies(each, branch)))
            if (other := next((each for each in others if implies(branch, each)), None)) is not None:
                yield branch, other


def implies(one: Condition, other: Condition) -> bool:
    """Return True if the second condition certainly holds whenever the first one does."""
    if one == other or (isinstance(one, Leaf) and isinstance(other, Leaf) and one.token == other.token):
        return True
    gate = other.gate
    if gate is not None and not gate.is_time_gate and gate.kind != "times":
        held = sum(implies(one, cast("Condition", member)) for member in other.members)
        if held >= gate.needed:
            return True
    return _follows_from_members(one, other)


def _follows_from_members(one: Condition, other: Condition) -> bool:
    gate, members = one.gate, cast("tuple[Condition, ...]", tuple(one.members))
    if gate is None or not members:
        return False
    if gate.kind == "all":
        return any(implies(member, other) for member in members)
    if gate.kind in ("any", "at_least"):
        return all(implies(member, other) for member in members)
    if other.gate is not None and other.gate.kind == gate.kind and gate.kind in ("times", "within"):
        wider = cast("int", other.gate.argument) <= cast("int", gate.argument)
        if gate.kind == "within":
            wider = cast("timedelta", gate.argument) <= cast("timedelta", other.gate.argument)
        return wider and implies(members[0], cast("Condition", other.members[0]))
    # What holds within a stretch of time, or several times, also holds without that.
    return implies(members[0], other)


def check_waits(flow: SeenFlow) -> Iterator[Finding]:
    """Find a wait for more updates that may go on for ever."""
    intake, deadline = flow.declaration.options.intake, flow.declaration.options.deadline
    if intake.waits_for_more and intake.max_wait is None and (deadline is None or deadline.then == "alert"):
        what = "debounce waits as long as updates keep coming" if intake.debounce else "min_events waits for ever"
        message = f"{what}, and no max_wait ends the wait"
        yield flow.finding("AF014", message, "Give max_wait, or a deadline with on_deadline")


def check_mappers(flow: SeenFlow) -> Iterator[Finding]:
    """Find two assets that are needed together and whose mappers have no target key in common."""
    schedule = flow.declaration.options.schedule
    if schedule.condition is None or schedule.partitioning is None:
        return
    needed = sorted(schedule.condition.needed_uris)
    mappers = [(uri, schedule.partitioning.mapper_for(frozenset((Token("uri", uri),)))) for uri in needed]
    for (one, its), (other, others) in combinations(mappers, 2):
        if not may_meet(its, others):
            message = f"no key of {one} ({its.describe()}) ever meets one of {other} ({others.describe()})"
            yield flow.finding("AF010", message, "Give both mappers the same period and output_format")


def may_meet(one: PartitionMapper, other: PartitionMapper) -> bool:
    """Return False if two mappers certainly have no target key in common."""
    one, other = _target_mapper(one), _target_mapper(other)
    keys, others = _target_keys(one), _target_keys(other)
    if keys is None or others is None or not keys or not others:
        return True
    return any(_has(other, key, others) for key in keys) or any(_has(one, key, keys) for key in others)


def _target_mapper(mapper: PartitionMapper) -> PartitionMapper:
    return mapper.upstream_mapper if isinstance(mapper, RollupMapper) else mapper


def _target_keys(mapper: PartitionMapper) -> Sequence[str] | None:
    """Return target keys of a mapper: all it has, or an example of times; `None` if any text may be one."""
    match mapper:
        case TemporalMapper():
            return mapper.sample_targets()
        case FixedKeyMapper():
            return (mapper.downstream_key,)
        case AllowedKeyMapper():
            return mapper.allowed_keys
        case StaticMapper():
            return [key for _, targets in mapper.table for key in targets]
        case _:
            return None


def _has(mapper: PartitionMapper, key: str, keys: Sequence[str]) -> bool:
    """Return True if a text is a target key of a mapper."""
    if not isinstance(mapper, TemporalMapper):
        return key in keys
    try:
        mapper.read_target(key)
    except MappingError:
        return False
    return True


def check_formats(flows: Sequence[SeenFlow]) -> Iterator[Finding]:
    """Find flows that read the keys of an asset in another format than those before them."""
    known: dict[Token, tuple[str, SeenFlow]] = {}
    for flow in flows:
        for token, written in _formats(flow):
            first, other = known.setdefault(token, (written, flow))
            if first != written:
                message = f"keys of {token.value} have the format {written!r} here, and {first!r} in {other.name}"
                yield flow.finding("AF011", message, "Write the format of the keys, in input_format or key_format")


def _formats(flow: SeenFlow) -> Iterator[tuple[Token, str]]:
    """Yield the assets whose keys the flow writes or reads as times, each with the format."""
    schedule = flow.declaration.options.schedule
    if isinstance(schedule.timetable, CronPartitionTimetable):
        written = schedule.timetable.key_format
        yield from ((each.token, written) for each in flow.declaration.produces if isinstance(each, Asset))
    for token in sorted(schedule.tokens) if schedule.partitioning is not None else ():
        assert schedule.partitioning is not None
        mapper = _target_mapper(schedule.partitioning.mapper_for(frozenset((token,))))
        if isinstance(mapper, TemporalMapper):
            yield token, mapper.input_format


def lint(
    flows: Sequence[SeenFlow], external: Collection[str] = (), deployed: Collection[str] = ()
) -> Iterator[Finding]:
    """Yield what is wrong with the schedules of flows. Contract 11.1.

    Parameters:
        external: patterns of URIs and names that something outside of the flows updates.
        deployed: URIs and names that a ledger knows; they only help to say what was meant.
    """
    flows = sorted(flows, key=lambda flow: flow.name)
    for flow in flows:
        yield from check_condition(flow)
        yield from check_mappers(flow)
        yield from check_waits(flow)
    yield from Assets(flows, external, deployed).check()
    yield from check_formats(flows)
