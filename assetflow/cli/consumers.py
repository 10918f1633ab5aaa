"""`assetflow consumers`: list, pause and resume the deployments that are scheduled on assets."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from rich.text import Text

from assetflow.cli.output import empty_message, print_json, rows, show, table, text, time_cell
from assetflow.cli.watch import watchable
from assetflow.core.refused_deployments import RefusedDeployment
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerFilter
from assetflow.operations.consumers import list_by_id, switch_named
from assetflow.operations.installation import open_prefect

_NONE_YET = "No consumers yet: deploy a flow that is scheduled on assets."

app = cyclopts.App(name="consumers", help="Consumers: deployments that are scheduled on assets.")


@app.command
@watchable
def ls(
    *,
    paused: Annotated[bool | None, Parameter(negative="--no-paused")] = None,
    held: Annotated[bool | None, Parameter(negative="--no-held")] = None,
    active: Annotated[bool | None, Parameter(negative="--no-active")] = None,
    wide: bool = False,
    json: bool = False,
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
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        wanted = ConsumerFilter(paused=paused, held=held, active=active)
        listed = list_by_id(reader, wanted)
        none = "No such consumers." if wanted != ConsumerFilter() else _NONE_YET
        empty = empty_message(reader, none)
        refusals = reader.refused_deployments()
    if json:
        print_json([each.as_json() for each in listed])
        return
    now = datetime.now(UTC)
    cells = (
        (
            text(each.name),
            text(each.condition),
            each.state,
            each.paused,
            time_cell(each.last.made if each.last else None, now),
        )
        for each in listed
    )
    made = table("consumer", "runs on", "condition", "paused", "last decision")
    spare = ("last decision", "runs on")
    show(rows(made, cells, empty=empty, spare=spare, wide=wide), *map(_refusal, refusals), wide=wide)


@app.command
def refused(*, json: bool = False) -> int:
    """List the deployments whose schedules cannot be used, with the reasons. Exits with 1 if there is one.

    A consumer that was there before such a deploy stays as it was.

    Parameters
    ----------
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        found = reader.refused_deployments()
        empty = empty_message(reader, "No deployment is refused.")
    if json:
        print_json([each.as_json() for each in found])
    else:
        show(*map(_refusal, found) if found else [text(empty)])
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
    # Import the HTTP client only here: `ls` and `--help` do not need it.
    from assetflow.cli.consumer_wait import wait_until_known

    asyncio.run(wait_until_known(names, timeout))


@app.command
def pause(name: str) -> None:
    """Pause a consumer, as the switch of its automation in Prefect does.

    Parameters
    ----------
    name
        The consumer, as flow/deployment.
    """
    _switch(name, paused=True)
    show(Text.assemble("paused ", text(name)))


@app.command
def resume(name: str) -> None:
    """Resume a paused consumer.

    Parameters
    ----------
    name
        The consumer, as flow/deployment.
    """
    _switch(name, paused=False)
    show(Text.assemble("resumed ", text(name)))


def _refusal(refused: RefusedDeployment) -> Text:
    return Text.assemble(("refused: ", "red"), text(refused.words))


def _switch(name: str, *, paused: bool) -> None:
    asyncio.run(switch_named(open_prefect, name, paused=paused))
