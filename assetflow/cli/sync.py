"""`assetflow sync`: create the automations of the deployments without an evaluator."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

from rich.text import Text

from assetflow.cli.output import print_json, rows, show, table, text
from assetflow.errors import PrefectUnreachable
from assetflow.evaluator.consumers.memory_consumers import MemoryConsumers
from assetflow.evaluator.consumers.reconcile import SyncReport
from assetflow.evaluator.health import Backoff
from assetflow.evaluator.process.composition import open_registry
from assetflow.prefect_io.automation_text import automation_name
from assetflow.prefect_io.rest import prefect_api
from assetflow.settings import get_settings

SECONDS_FOR_PREFECT = 10.0
_STEPS = {"shown": "made", "reshown": "updated", "hidden": "deleted"}


def sync(*, json: bool = False) -> int:
    """Create or update the automations of all deployments that are scheduled on assets.

    The evaluator does the same while it runs. The command also checks the schedules: the exit status is 1 if one cannot
    be used.

    Parameters
    ----------
    json
        Print one JSON document.
    """
    # Keep the registry's log quiet: this command prints the same.
    logging.getLogger("assetflow.evaluator").addHandler(logging.NullHandler())
    report = asyncio.run(_sync())
    if json:
        print_json(_as_json(report))
    else:
        _print(report)
    return 1 if report.problems else 0


async def _sync() -> SyncReport:
    """Reconcile once. Retry for a few seconds if the server is starting or busy."""
    backoff = Backoff()
    deadline = monotonic() + SECONDS_FOR_PREFECT
    async with prefect_api() as api:
        registry = open_registry(api, MemoryConsumers(), delivery=get_settings().delivery)
        while True:
            try:
                await registry.sync()
            except PrefectUnreachable:
                if monotonic() > deadline:
                    raise
            else:
                again = any(isinstance(each, PrefectUnreachable) for each in registry.report.problems.values())
                if not again or monotonic() > deadline:
                    return registry.report
            await asyncio.sleep(backoff.next())


def _as_json(report: SyncReport) -> dict[str, object]:
    return {
        "deployments": [
            {"id": str(each.id), "name": each.name, "schedule": each.options.describe(), "held": each.held}
            for each in report.scheduled.values()
        ],
        "automations": [{"what": _STEPS[each.what], "name": each.name} for each in report.steps if each.what in _STEPS],
        "problems": [error.as_dict() for error in report.problems.values()],
        "warnings": [*map(str, report.cycles), *report.warnings],
    }


def _print(report: SyncReport) -> None:
    steps = {each.name: _STEPS[each.what] for each in report.steps if each.what in _STEPS}
    automations = (
        (text(steps.get(each.name, "in step")), text(automation_name(each.name, each.options)))
        for each in report.scheduled.values()
    )
    deleted = ((text("deleted"), text(name)) for name, step in steps.items() if step == "deleted")
    show(
        rows(
            table("automation", ""),
            [*automations, *deleted],
            empty="No deployment is scheduled on assets. Give a flow a schedule: @flow(schedule=Asset(...))",
        ),
        *(Text.assemble(("warning: ", "yellow"), text(each)) for each in [*report.cycles, *report.warnings]),
        *(Text.assemble(("error: ", "red"), text(error)) for error in report.problems.values()),
    )
