"""`assetflow consumers`: list, pause and resume the deployments that are scheduled on assets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import cyclopts
from cyclopts import Parameter
from rich.text import Text

from assetflow.cli.layouts import failing_lines, runs_table
from assetflow.cli.output import empty_message, lists, reads, rows, show, tell, text, time_cell
from assetflow.cli.values import AsJson
from assetflow.core.shapes import as_json
from assetflow.core.values.words import count, some
from assetflow.core.wire.deployments import Deployed, RefusedDeployment, fingerprint
from assetflow.errors import InvalidSchedule, LedgerError, PrefectUnreachable, TimedOut, UnknownConsumer
from assetflow.ledger.read.explanations import consumer_explanation
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter, ConsumerRecord
from assetflow.operations.installation import open_prefect
from assetflow.operations.lookup import find_consumer, list_by_id, switch
from assetflow.operations.needs import list_runs

if TYPE_CHECKING:
    from assetflow.prefect_io.deployments import Deployments

_RUNS = 10
_NONE_YET = "No consumers yet: deploy a flow that is scheduled on assets."

app = cyclopts.App(name="consumers", help="Consumers: deployments that are scheduled on assets.")


@app.command
@lists
@reads
def ls(
    reader: Reader,
    /,
    *,
    paused: Annotated[bool | None, Parameter(negative="--no-paused")] = None,
    held: Annotated[bool | None, Parameter(negative="--no-held")] = None,
    active: Annotated[bool | None, Parameter(negative="--no-active")] = None,
    wide: bool = False,
    json: AsJson = False,
) -> None:
    """List the consumers: what each runs on, how far its condition is, and its last decision.

    Parameters
    ----------
    paused
        List only consumers whose automation is switched off; with --no-paused, only the others.
    held
        List only consumers whose deployment is paused; with --no-held, only the others.
    active
        List only consumers that are neither paused nor held; with --no-active, only the others.
    wide
        Show all columns, and conditions in full, however wide the terminal is.
    """
    now = datetime.now(UTC)
    wanted = ConsumerFilter(paused=paused, held=held, active=active)
    listed = list_by_id(reader, wanted, now)
    none = "No such consumers." if wanted != ConsumerFilter() else _NONE_YET
    empty = empty_message(reader, none)
    refusals = reader.refused_deployments()
    cells = (
        (
            text(each.name),
            text(each.condition),
            text(each.state),
            each.paused,
            time_cell(each.last.made if each.last else None),
        )
        for each in listed
    )
    spare = ("last decision", "runs on")
    parts = (
        rows(
            ("consumer", "runs on", "condition", "paused", "last decision"), cells, empty=empty, spare=spare, wide=wide
        ),
        *map(_refusal, refusals),
    )
    tell([each.shown() for each in listed], *parts, json=json, wide=wide)


@app.command(name="show")
@reads
def show_consumer(reader: Reader, name: str, /, *, json: AsJson = False) -> None:
    """Show one consumer: what it runs on, how far its condition is, and how its last runs ended.

    Parameters
    ----------
    name
        The consumer: flow/deployment, its id, or a flow with one consumer.
    """
    record = find_consumer(reader, name)
    (found,) = reader.consumers.overviews([record])
    runs = list_runs(reader, flow=found.name, limit=_RUNS)
    told = consumer_explanation(reader, record, datetime.now(UTC))
    found = replace(found, plan=told.plan)
    about = [
        text(found.name, "bold"),
        text(f"runs {'on ' if record.consumer.schedule.tokens else ''}{found.condition}"),
        text(f"state: {found.state}"),
    ]
    notes = [*failing_lines(told.failing), *(text(each, "yellow") for each in told.notes)]
    paused = [Text.assemble("stopped: ", found.paused)] if found.paused else []
    parts = (*about, *paused, *notes, Text(), runs_table(runs, empty="No run of it has ended yet."))
    tell(as_json(found.shown()) | {"runs": runs}, *parts, json=json)


@app.command
@reads
def refused(reader: Reader, /, *, json: AsJson = False) -> int:
    """List the deployments whose schedules cannot be used, with the reasons. Exits with 1 if there is one.

    A consumer that was there before such a deploy stays as it was."""
    found = reader.refused_deployments()
    empty = empty_message(reader, "No deployment is refused.")
    tell(found, *(map(_refusal, found) if found else [text(empty)]), json=json)
    return int(bool(found))


@app.command
def wait(*names: str, timeout: float = 60.0) -> None:
    """Wait until the ledger has every schedule, pause and removal of the deployments in Prefect.

    Parameters
    ----------
    names
        Wait for these deployments only, each as flow/deployment.
    timeout
        Fail after this many seconds.
    """
    asyncio.run(wait_until_known(names, timeout))


@app.command
def pause(name: str) -> None:
    """Pause a consumer, as the switch of its automation in Prefect does.

    Parameters
    ----------
    name
        The consumer: flow/deployment, its id, or a flow with one consumer.
    """
    show(Text.assemble("paused ", text(_switch(name, paused=True))))


@app.command
def resume(name: str) -> None:
    """Resume a paused consumer.

    Parameters
    ----------
    name
        The consumer: flow/deployment, its id, or a flow with one consumer.
    """
    show(Text.assemble("resumed ", text(_switch(name, paused=False))))


@app.command
def prune(*names: str, yes: bool = False) -> None:
    """Show the consumers that prefect.yaml no longer deploys; with --yes, delete their deployments in Prefect.

    Their queues end with them, and their runs and decisions stay. Consumers of other projects count too: name those
    that you mean.

    Parameters
    ----------
    names
        Only these consumers, each as flow/deployment.
    yes
        Delete the deployments.
    """
    # Import only here what imports Prefect: `--help` does not need it.
    from assetflow.stack.flow_files import plan_of
    from assetflow.stack.linting import left_over

    with Reader.open() as reader:
        found = left_over(reader, plan_of(Path.cwd()), datetime.now(UTC))
        if unknown := [name for name in names if name not in found]:
            raise UnknownConsumer(
                f"prefect.yaml still deploys {some(unknown)}, or nobody ever did",
                fix="`assetflow consumers prune` shows what is left over",
            )
        chosen = [find_consumer(reader, name).consumer for name in names or found]
    if yes:
        asyncio.run(_delete([each.deployment_id for each in chosen]))
    for name in (each.name for each in chosen):
        renamed = f", which is {found[name]} now" if found[name] else ""
        show(text(f"{'deleted' if yes else 'left over:'} {name}{renamed}"))
    if not chosen:
        show(text("Nothing is left over."))
    elif not yes:
        show(text(f"Delete {count(len(chosen), 'deployment')} with --yes; the queues end with them."))


async def _delete(deployments: Sequence[UUID]) -> None:
    async with open_prefect() as api:
        for each in deployments:
            await api.delete(f"/deployments/{each}")


def _refusal(refused: RefusedDeployment) -> Text:
    return Text.assemble(("refused: ", "red"), text(refused.words))


def _switch(name: str, *, paused: bool) -> str:
    with Reader.open() as reader:
        record = find_consumer(reader, name)
    asyncio.run(switch(open_prefect, record, paused=paused))
    return record.consumer.name


SECONDS_BETWEEN_LOOKS = 0.3
# The evaluator stores what it refuses after all that it accepts.
SECONDS_TO_BE_SURE = 2.0


async def wait_until_known(names: Sequence[str] = (), seconds: float = 60.0) -> None:
    """Wait until the ledger matches the deployments in Prefect.

    Parameters:
        names: the deployments to wait for, each as `flow/deployment`; all of them if empty.
        seconds: how long to wait.

    Raises:
        TimedOut: some deployments, which the error names, are not in the ledger yet; perhaps no evaluator is running.
        PrefectUnreachable: Prefect did not answer in all that time.
        InvalidSchedule: the schedule of a deployment that is waited for cannot be used.
    """
    # Import the HTTP client only here: `ls` and `--help` do not need it.
    from assetflow.prefect_io.deployments import Deployments
    from assetflow.prefect_io.rest import prefect_api

    deadline = monotonic() + seconds
    deployed: dict[UUID, Deployed] = {}
    refused: RefusedDeployment | None = None
    since = monotonic()
    async with prefect_api() as api:
        deployments = Deployments(api)
        while True:
            try:
                await _look(deployments, deployed)
                records, refusals = _read_ledger()
                missing = _not_in_step(deployed, records, names)
                if not missing:
                    return
                before, refused = refused, _refused(missing, deployed, records, refusals)
                since = since if refused == before else monotonic()
                if refused is not None and monotonic() - since > SECONDS_TO_BE_SURE:
                    raise InvalidSchedule(refused.error, where=refused.where, fix=refused.fix, rule=refused.rule)
            except PrefectUnreachable:
                # Prefect may be starting, or busy.
                if monotonic() > deadline:
                    raise
            else:
                if monotonic() > deadline:
                    raise _too_late(missing, deployed, seconds)
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)


async def _look(deployments: Deployments, deployed: dict[UUID, Deployed]) -> None:
    changes = await deployments.changes()
    deployed.update({each.id: each for each in changes.changed})
    for each in changes.gone:
        deployed.pop(each, None)


def _not_in_step(
    deployed: Mapping[UUID, Deployed], records: Sequence[ConsumerRecord], names: Sequence[str]
) -> list[str]:
    known = {each.consumer.deployment_id: each for each in records}
    found = {each.name: each for each in deployed.values()}
    for name in names:
        if name in found and (problem := found[name].problem):
            raise problem
    chosen = [found[name] for name in names if name in found] if names else [*found.values()]
    waiting = [each.name for each in chosen if each.options.takes_part and not _in_step(each, known.get(each.id))]
    # A deployment with a problem keeps the consumer that it had.
    stays = {each.id for each in chosen if each.options.takes_part or each.problem}
    left = [each.consumer.name for each in records if each.consumer.deployment_id not in stays]
    unknown = [name for name in names if name not in found]
    return [*waiting, *(name for name in left if not names or name in names), *unknown]


def _in_step(deployed: Deployed, record: ConsumerRecord | None) -> bool:
    return (
        record is not None
        and record.declaration == deployed.text
        and record.consumer.held == deployed.held
        and (record.automation_id is not None or not deployed.is_scheduled)
    )


def _refused(
    missing: Sequence[str],
    deployed: Mapping[UUID, Deployed],
    records: Sequence[ConsumerRecord],
    refusals: Sequence[RefusedDeployment],
) -> RefusedDeployment | None:
    """Return a refusal of a deployment that is waited for, once the evaluator has seen what is deployed now."""
    known = {each.consumer.deployment_id: each for each in records}
    refused = {each.deployment_id: each for each in refusals if _is_of_now(each, deployed)}
    open_ones = [each for each in deployed.values() if each.options.takes_part and each.id not in refused]
    if not all(_in_step(each, known.get(each.id)) for each in open_ones):
        # It may be accepted beside what changes.
        return None
    return next((each for each in refused.values() if each.name in missing), None)


def _is_of_now(refused: RefusedDeployment, deployed: Mapping[UUID, Deployed]) -> bool:
    now = deployed.get(refused.deployment_id)
    return now is not None and fingerprint(now.text) == refused.declared


def _read_ledger() -> tuple[list[ConsumerRecord], list[RefusedDeployment]]:
    try:
        with Reader.open() as reader:
            return reader.consumers.all(), reader.refused_deployments()
    except LedgerError:
        # The evaluator may still be creating the ledger; if none does, the wait times out.
        return [], []


def _too_late(missing: Sequence[str], deployed: Mapping[UUID, Deployed], seconds: float) -> TimedOut:
    names = {each.name for each in deployed.values()}
    absent = [name for name in missing if name not in names]
    listed = some(missing)
    if absent == [*missing]:
        return TimedOut(
            f"after {seconds:g} s there is no deployment {listed}", fix="`prefect deployment ls` lists them"
        )
    return TimedOut(
        f"after {seconds:g} s the ledger does not know yet: {listed}",
        fix="Check that an evaluator is running (`assetflow evaluator start`). "
        "`assetflow consumers refused` lists the schedules that it refuses",
    )
