"""`assetflow consumers`: what is scheduled on assets, and its switch."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from urllib.parse import quote
from uuid import UUID

import cyclopts
from rich.text import Text

from assetflow.cli.consumer_wait import wait_until_known
from assetflow.cli.output import moment, print_json, rows, show, table, text
from assetflow.errors import UnknownConsumer
from assetflow.ledger.reader import Reader
from assetflow.prefect_io.automations import Automations
from assetflow.prefect_io.rest import prefect_api

app = cyclopts.App(name="consumers", help="Consumers: deployments that are scheduled on assets.")


@app.command
def ls(*, json: bool = False) -> None:
    """List the consumers: what they run on, how many of their assets are updated, their last decision.

    Parameters
    ----------
    json
        Print one JSON document.
    """
    with Reader.open() as reader:
        listed = reader.overviews(reader.consumers())
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
            moment(each.last.made if each.last else None, now),
        )
        for each in listed
    )
    made = table("consumer", "runs on", "updated", "paused", "last decision")
    show(rows(made, cells, empty="The ledger knows no consumer yet. Deploy a flow that has a schedule on assets."))


@app.command
def wait(*names: str, timeout: float = 60.0) -> None:
    """Return when the ledger knows what is deployed: every schedule, every switch, every removal.

    Parameters
    ----------
    names
        Wait for these deployments only, each as flow/deployment.
    timeout
        Seconds after which waiting is an error.
    """
    asyncio.run(wait_until_known(names, timeout))


@app.command
def pause(name: str) -> None:
    """Pause a schedule, as the switch of its automation in Prefect does.

    Parameters
    ----------
    name
        The consumer, as flow/deployment.
    """
    asyncio.run(_switch(name, enabled=False))
    show(Text.assemble("paused ", text(name)))


@app.command
def resume(name: str) -> None:
    """Resume a paused schedule.

    Parameters
    ----------
    name
        The consumer, as flow/deployment.
    """
    asyncio.run(_switch(name, enabled=True))
    show(Text.assemble("resumed ", text(name)))


async def _switch(name: str, *, enabled: bool) -> None:
    async with prefect_api() as api:
        flow, _, deployment = name.partition("/")
        row = await api.get(f"/deployments/name/{quote(flow, safe='')}/{quote(deployment, safe='')}")
        automations = Automations(api)
        automation = None if row is None else await automations.of_deployment(UUID(row["id"]))
        if automation is None:
            what = f"there is no deployment {name!r}" if row is None else f"no automation shows a schedule of {name!r}"
            fix = "Name it as flow/deployment, as `assetflow consumers ls` does; `assetflow sync` makes automations"
            raise UnknownConsumer(what, fix=fix)
        await automations.switch(automation.id, enabled=enabled)
