"""Compare the flows of a project with what is deployed: import them, and deploy them in memory. Contract 11.4, 11.5."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from assetflow.core.compare import CURSOR, Change, Comparison, DeployedFlow, ShownDiff
from assetflow.core.shapes import as_json
from assetflow.core.values.words import at
from assetflow.core.wire.declarations import declaration_from_text
from assetflow.core.wire.deployments import Deployed
from assetflow.errors import InvalidCall, InvalidProject
from assetflow.evaluator.consumers.registry import left_behind
from assetflow.evaluator.process.prune import CURSOR as PRUNED
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.reader import Reader
from assetflow.stack.flow_files import Plan, load


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
