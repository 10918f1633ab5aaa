"""Lint a project, and compare its flows with what is deployed: both import the flows. Contract 11.1 to 11.5."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FunctionType, MappingProxyType
from typing import cast

from assetflow.core.compare import CURSOR, Change, Comparison, DeployedFlow, ShownDiff, compare
from assetflow.core.lint import CHECKS, Finding, SeenFlow, Source, lint
from assetflow.core.rules.state import State
from assetflow.core.shapes import as_json
from assetflow.core.values.words import at
from assetflow.core.wire.declarations import declaration_from_text
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import InvalidCall, InvalidProject, InvalidSettings
from assetflow.evaluator.consumers.reconcile import WatcherNames, find_cycles, seldom_run
from assetflow.evaluator.consumers.registry import left_behind
from assetflow.evaluator.process.binding import CURSOR as PRUNED
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.reader import Reader
from assetflow.stack.flow_files import FILE, Plan, load, plan_of, read_project, shown_path

_CONFIG = "pyproject.toml, [tool.assetflow.lint]"


@dataclass(frozen=True)
class LintConfig:
    """What `[tool.assetflow.lint]` in `pyproject.toml` says.

    Attributes:
        paths: the files and folders to look at, from the folder of `pyproject.toml`.
        ignore: the codes to leave out.
        external: patterns of URIs and names that something outside of the flows updates.
    """

    paths: Sequence[str] = ()
    ignore: Sequence[str] = ()
    external: Sequence[str] = ()

    @classmethod
    def read(cls, folder: Path) -> LintConfig:
        """Read the config of a folder; without one, everything has its default.

        Raises:
            InvalidSettings: the file is not TOML, or the table has an unknown key, a value that is not a list, or an
                unknown code.
        """
        file = folder / "pyproject.toml"
        try:
            text = file.read_text(encoding="utf-8") if file.exists() else ""
            given = cast("Mapping[str, object]", dict(tomllib.loads(text).get("tool", {}).get("assetflow", {})["lint"]))
        except KeyError:
            return cls()
        except (AttributeError, OSError, TypeError, ValueError) as error:
            raise InvalidSettings(f"cannot be read: {error}", where=str(file), fix="Write it as TOML") from error
        for key, value in given.items():
            if key not in cls.__dataclass_fields__:
                known = ", ".join(cls.__dataclass_fields__)
                raise InvalidSettings(f"unknown key {key!r}", where=_CONFIG, fix=f"Known are {known}")
            if not isinstance(value, list) or not all(isinstance(each, str) for each in cast("list[object]", value)):
                raise InvalidSettings(f"{key} is {value!r}", where=_CONFIG, fix=f'Write a list of texts: {key} = ["…"]')
        config = cls(**cast("dict[str, list[str]]", given))
        check_codes(config.ignore, _CONFIG)
        return config


def check_codes(codes: Collection[str], where: str) -> None:
    """Refuse codes that there are not.

    Raises:
        InvalidSettings: there is one.
    """
    for code in codes:
        if code not in CHECKS:
            raise InvalidSettings(f"there is no check {code!r}", where=where, fix=f"Known are {', '.join(CHECKS)}")


def project_files(folder: Path) -> list[Path]:
    """Return the files that the deployments of `prefect.yaml` are in.

    Raises:
        InvalidProject: there is no `prefect.yaml`, or it is damaged.
    """
    if not (folder / FILE).exists():
        fix = 'Name files or folders, or write paths = ["flows"] into [tool.assetflow.lint] of pyproject.toml'
        raise InvalidProject(f"there is no {FILE} here, and no file is named", where=str(folder), fix=fix)
    return list(dict.fromkeys(folder / each.file for each in read_project(folder, checked=False).deployments))


def lint_files(places: Sequence[Path], config: LintConfig, deployed: Collection[str] = ()) -> list[Finding]:
    """Return what is wrong in files, in their order, without what the config or a comment ignores.

    Parameters:
        deployed: URIs and names that a ledger knows.

    Raises:
        InvalidProject: the file or folder does not exist, or `prefect.yaml` is damaged.
    """
    loaded = load(places)
    sources = {source.file: source for file in loaded.files if (source := _source(file)) is not None}
    found = {*loaded.findings, *lint(loaded.flows, config.external, deployed)}
    found |= {*_checks_of_deploys(loaded.flows, loaded.files)}
    found |= {each for flow in loaded.flows for each in _undeclared(flow, sources)}
    found |= {each for source in sources.values() for each in source.crons_without_zone()}
    kept = (each for each in found if each.code not in config.ignore)
    shown = (each for each in kept if each.file not in sources or not sources[each.file].ignores(each))
    return sorted(shown, key=lambda each: (each.file, each.line, each.code, each.message))


def _source(file: Path) -> Source | None:
    try:
        return Source(shown_path(file), file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return None


def _checks_of_deploys(flows: Sequence[SeenFlow], files: Collection[Path]) -> Iterator[Finding]:
    """Make the checks of a deploy: those of each deployment of `prefect.yaml`, and those over all flows."""
    by_name = {flow.name: flow for flow in flows}
    declarations = {name: flow.declaration for name, flow in by_name.items()}
    for cycle in find_cycles(declarations):
        fix = "Take one of the assets out of a schedule, or schedule one of the flows on times"
        yield by_name[str(cycle.path[0])].finding("AF005", str(cycle), fix)
    for name, sentence in seldom_run(declarations).items():
        yield Finding("AF003", by_name[name].file, by_name[name].line, sentence, "")
    now = datetime.now(UTC)
    wanted = {each.id: each for each in (Deployed.of(name, each, now) for name, each in declarations.items())}
    names = WatcherNames(wanted)
    refused = {each.name: error for each in wanted.values() if (error := names.check(each)) is not None}
    refused |= {each.name.partition("/")[0]: each.problem for each in _planned(files) if each.problem is not None}
    for name in refused.keys() & by_name.keys():
        yield by_name[name].refused(refused[name].message, refused[name].fix)
    for change in compare(State(), (), list(wanted.values()), now).consumers:
        if change.refused:
            yield by_name[change.consumer].refused(change.refused, change.fix)


def _planned(files: Collection[Path]) -> Sequence[Deployed]:
    """Return the deployments of `prefect.yaml`, if there is one, whose flows are in these files."""
    here = Path.cwd()
    return plan_of(here, {file.resolve() for file in files}).deployments if (here / FILE).exists() else ()


def _undeclared(flow: SeenFlow, sources: Mapping[str, Source]) -> Iterator[Finding]:
    """Find what the functions of a flow read by a constant and the flow does not declare."""
    from assetflow.authoring.discovery import reached

    declaration = flow.declaration
    known = {outlet.token for outlet in (*declaration.produces, *declaration.reads, *declaration.assets)}
    known |= declaration.options.schedule.tokens
    for function in (each for each in reached(flow.function) if isinstance(each, FunctionType)):
        code = function.__code__
        source = sources.get(shown_path(Path(code.co_filename)))
        if source is None:
            continue
        own = dict.fromkeys((*code.co_varnames, *code.co_freevars))
        names = MappingProxyType({**function.__globals__, **own})
        for line, token in source.reads(code.co_firstlineno, names.get):
            if token not in known:
                message = f"{flow.name} reads {token.value}, and neither declares it nor is scheduled on it"
                fix = "Add it to the inlets of the task, or to reads= of the flow"
                yield Finding("AF009", source.file, line, message, fix)


def of_files(places: Iterable[Path], deployed: Iterable[DeployedFlow], now: datetime) -> Plan:
    """Return the flows of files, each for all of its deployments, or as a new one; other deployments stay.

    Raises:
        InvalidProject: the file or folder does not exist.
    """
    loaded = load(places)
    names = [each.name for each in deployed]
    flows = [
        Deployed.of(name, each.declaration, now)
        for each in loaded.flows
        for name in [known for known in names if known.partition("/")[0] == each.name] or [each.name]
    ]
    problems = {each.file: each.message for each in loaded.findings if each.code == "AF001"}
    return Plan(flows, problems, is_whole=False)


def diff(
    reader: Reader, plan: Plan, deployed: Sequence[DeployedFlow], now: datetime, since: datetime | None = None
) -> Comparison:
    """Return what a deploy of a project would change.

    Parameters:
        since: replay what was recorded since then.

    Raises:
        InvalidCall: what was recorded then is not kept any more.
        LedgerError: the ledger cannot be read.
    """
    if since is not None:
        _check_kept(reader, since)
    names = {each.name for each in plan.deployments}
    keep = () if plan.is_whole else [each.name for each in deployed if each.name not in names]
    renamed = _renamed(deployed, plan, now) if plan.is_whole else {}
    found = reader.comparing.deploy(deployed, plan.deployments, now, renamed=renamed, keep=keep)
    found = replace(found, problems=plan.problems)
    if since is None:
        return found
    consumers = {each.name: each.consumer for each in deployed}
    options = {each.name: each.options for each in plan.deployments}
    changes = [
        Change(each.consumer, consumers.get(each.was or each.consumer), options.get(each.consumer))
        for each in found.consumers
        if each.kind != "refused"
    ]
    return replace(found, replayed=reader.comparing.replayed(changes, since, now))


def _check_kept(reader: Reader, since: datetime) -> None:
    pruned, floor = reader.cursor(PRUNED), reader.cursor("floor")
    begins = next((datetime.fromisoformat(str(each)) for each in (pruned, floor) if each), reader.created)
    if since < begins:
        raise InvalidCall(
            f"the ledger has what was recorded since {at(begins)}, and --replay begins at {at(since)}",
            where="--replay",
            fix="Give a shorter time",
        )


def left_over(reader: Reader, plan: Plan, now: datetime) -> dict[str, str]:
    """Return the consumers that a project no longer deploys, each with its new name or an empty text.

    Raises:
        InvalidProject: a flow of the project cannot be read, so that nobody can tell what is left over.
        LedgerError: the ledger cannot be read.
    """
    for where, words in plan.problems.items():
        raise InvalidProject(words, where=where, fix="Correct it; until then, nothing counts as left over")
    found = diff(reader, plan, reader.comparing.deployed(), now)
    gone = [each for each in found.consumers if each.kind in ("removed", "renamed")]
    return {each.was or each.consumer: each.consumer if each.was else "" for each in gone}


def _renamed(deployed: Sequence[DeployedFlow], plan: Plan, now: datetime) -> dict[str, str]:
    """Return the new names of deployments that have another name now, each with the old one.

    The check is the evaluator's; the ledger does not know entrypoints, so all count as the same.
    """
    known, names = {each.name for each in deployed}, {each.name for each in plan.deployments}
    same = {"entrypoint": "same", "parameters": ""}
    new = {each.text: replace(each, created=now, **same) for each in plan.deployments if each.name not in known}
    before = now - timedelta(days=1)
    gone = [each for each in deployed if each.name not in names and each.text in new]
    old = [replace(Deployed.of(each.name, declaration_from_text(each.text), before), **same) for each in gone]
    left = left_behind([*new.values(), *old])
    return {new[each.text].name: each.name for each in gone if each.name in left}


def keep(ledger: Ledger, shown: ShownDiff) -> None:
    """Keep a comparison in the ledger, for the page that shows the last one."""
    ledger.writer.set_cursor(CURSOR, as_json(shown))
