"""Compare the flows of a project with what is deployed: import them, and deploy them in memory. Contract 11.4, 11.5."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast
from uuid import uuid4

from assetflow.core.compare import Change, Comparison, DeployedFlow, WantedFlow
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import at
from assetflow.core.wire.declarations import declaration_from_text, declaration_to_text
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import InvalidCall, InvalidFlow, InvalidProject
from assetflow.evaluator.consumers.registry import left_behind
from assetflow.evaluator.process.prune import CURSOR as PRUNED
from assetflow.ledger.read.reader import Reader
from assetflow.prefect_io.names import OFF_TAG
from assetflow.stack.flow_files import declaration_of, imported, load
from assetflow.stack.project import Deployment, read_project


@dataclass
class WantedFlows:
    """The deployments of a project.

    Attributes:
        problems: what could not be read, in sentences.
        are_all: whether what is missing among them would be removed.
    """

    flows: list[WantedFlow] = field(default_factory=list[WantedFlow])
    problems: list[str] = field(default_factory=list[str])
    are_all: bool = True


def of_project(folder: Path) -> WantedFlows:
    """Return the deployments of `prefect.yaml`. If one cannot be read, nothing counts as removed.

    Raises:
        InvalidProject: `prefect.yaml` does not exist, or is not valid.
    """
    project = read_project(folder, checked=False)
    found = WantedFlows()
    given = cast("list[Mapping[str, object]]", project.document["deployments"])
    for each, document in zip(project.deployments, given, strict=True):
        with redirect_stdout(sys.stderr):
            try:
                wanted = _wanted(folder, each)
            except InvalidFlow as error:
                found.problems.append(f"{error.where}: {error.message}")
                found.are_all = False
                continue
        if OFF_TAG in cast("list[str]", document.get("tags") or []):
            wanted = replace(wanted, declaration=replace(wanted.declaration, options=ConsumerOptions()))
        found.flows.append(wanted)
    return found


def _wanted(folder: Path, deployment: Deployment) -> WantedFlow:
    named, _, function = deployment.entrypoint.rpartition(":" if ":" in deployment.entrypoint else ".")
    file = named if named.endswith(".py") else f"{named.replace('.', '/')}.py"
    flow: object = getattr(imported(folder / file), function, None)
    name: object = getattr(flow, "name", None)
    if not isinstance(name, str):
        raise InvalidFlow(f"the file has no flow {function}", where=file, fix="Name a function with @flow")
    return WantedFlow(f"{name}/{deployment.name}", declaration_of(flow))


def of_files(places: Iterable[Path], deployed: Iterable[DeployedFlow]) -> WantedFlows:
    """Return the flows of files, each for all of its deployments, or as a new one; other deployments stay.

    Raises:
        InvalidProject: the file or folder does not exist.
    """
    loaded = load(places)
    names = [each.name for each in deployed]
    flows = [
        WantedFlow(name, each.seen.declaration)
        for each in loaded.flows
        for name in [known for known in names if known.partition("/")[0] == each.seen.name] or [each.seen.name]
    ]
    problems = [f"{each.file}: {each.message}" for each in loaded.findings if each.code == "AF001"]
    return WantedFlows(flows, problems, are_all=False)


def diff(
    reader: Reader,
    wanted: WantedFlows,
    deployed: Sequence[DeployedFlow],
    now: datetime,
    since: datetime | None = None,
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
    names = {each.name for each in wanted.flows}
    keep = () if wanted.are_all else [each.name for each in deployed if each.name not in names]
    renamed = _renamed(deployed, wanted.flows, keep, now)
    found = reader.comparing.deploy(deployed, wanted.flows, now, renamed=renamed, keep=keep)
    found = replace(found, problems=tuple(wanted.problems))
    if since is None:
        return found
    consumers, options = {each.name: each.consumer for each in deployed}, {each.name: each for each in wanted.flows}
    changes = [
        Change(
            each.name,
            consumers.get(each.was or each.name),
            None if each.kind == "removed" else options[each.name].declaration.options,
        )
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


def left_over(reader: Reader, wanted: WantedFlows, now: datetime) -> dict[str, str]:
    """Return the consumers that a project no longer deploys, each with its new name or an empty text.

    Raises:
        InvalidProject: a flow of the project cannot be read, so that nobody can tell what is left over.
        LedgerError: the ledger cannot be read.
    """
    if wanted.problems:
        raise InvalidProject(wanted.problems[0], fix="Correct it; until then, nothing counts as left over")
    found = diff(reader, wanted, reader.comparing.deployed(), now)
    gone = [each for each in found.consumers if each.kind in ("removed", "renamed")]
    return {each.was or each.name: each.name if each.was else "" for each in gone}


def _renamed(
    deployed: Sequence[DeployedFlow], wanted: Sequence[WantedFlow], keep: Collection[str], now: datetime
) -> dict[str, str]:
    """Return the new names of deployments that have another name now, each with the old one.

    The check is the evaluator's; the ledger does not know entrypoints, so all count as the same.
    """
    known, names = {each.name for each in deployed}, {each.name for each in wanted}
    new = [(each.name, each.declaration) for each in wanted if each.name not in known]
    gone = [each for each in deployed if each.name not in names and each.name not in keep and each.text]
    old = [(each.name, declaration_from_text(each.text)) for each in gone]
    groups = ((now, new), (now - timedelta(days=1), old))
    made = [
        Deployed(uuid4(), name, uuid4(), when, "same", when, text=declaration_to_text(declared), declaration=declared)
        for when, group in groups
        for name, declared in group
    ]
    successors = {declaration_to_text(declared): name for name, declared in new}
    left = left_behind(made)
    return {successors[each.text]: each.name for each in made if each.name in left and each.text in successors}
