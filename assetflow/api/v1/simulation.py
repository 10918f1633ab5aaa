"""Run a client's scenario in a process of its own, with limits on its size, time and memory."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, Body

import assetflow
from assetflow.api.problems import answers
from assetflow.api.requests import Json, TheBackend
from assetflow.errors import InvalidScenario, TooLarge

router = APIRouter(tags=["simulate"])

SECONDS = 10.0
MOST_STEPS = 2_000
MOST_CONSUMERS = 500

_EXAMPLE = {
    "name": "both",
    "consumers": {"report": {"all": ["s3://shop/orders", "s3://shop/customers"]}},
    "steps": [{"event": "s3://shop/orders"}, {"event": "s3://shop/customers"}, {"tick": True}],
}


@router.post("/simulate", response_model=dict[str, Any], responses=answers(413, 415))
async def simulate_schedules(
    scenario: Annotated[dict[str, Any], Body(examples=[_EXAMPLE])], backend: TheBackend
) -> Json:
    """Show what schedules would do with events: takes a scenario of `assetflow simulate`, and runs no user's code."""
    _check_size(scenario)
    async with backend.simulations:
        return Json(await _in_process(scenario))


def _check_size(scenario: Mapping[str, Any]) -> None:
    for part, most in (("steps", MOST_STEPS), ("consumers", MOST_CONSUMERS)):
        given = scenario.get(part)
        if isinstance(given, list | dict) and len(cast("list[object]", given)) > most:
            raise TooLarge(f"the scenario has more than {most} {part}", where=f"body.{part}", fix="Make it smaller")


async def _in_process(scenario: Mapping[str, Any]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "assetflow.api.simulation_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=Path(assetflow.__file__).parent.parent,
        # The process gets nothing of the server's environment: no key, no address, no password.
        env={"PYTHONUTF8": "1"},
    )
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await process.communicate(json.dumps(scenario).encode())
    except TimeoutError as error:
        raise TooLarge(f"the scenario takes longer than {SECONDS:g} s", fix="Make it smaller") from error
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if not output:
        raise TooLarge("the scenario needs more time or memory than allowed", fix="Make it smaller")
    answer = json.loads(output)
    if "refused" in answer:
        error = answer["refused"]
        raise InvalidScenario(error["error"], where=error["where"], fix=error["fix"], rule=error["rule"])
    return answer["answer"]
