"""The badges of runs that have not ended, which a page asks for once it is shown."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from assetflow.prefect_io.run_states import MOST
from assetflow.web.pages import ThePages
from assetflow.web.prefect_runs import RunStates

router = APIRouter()


@router.get("/run-states")
async def show_run_badges(
    request: Request, pages: ThePages, runs: Annotated[str, Query(max_length=40 * MOST)] = ""
) -> Response:
    """Answer with the badges of these runs, which htmx puts in their places."""
    states: RunStates = request.app.state.run_states
    wanted: list[UUID] = []
    for text in runs.split(",")[:MOST]:
        with suppress(ValueError):
            wanted.append(UUID(text))
    await states.look(wanted)
    known = {run: name for run in wanted if (name := states.shown(run))}
    return pages.bare(request, "run_states.html", known=known)
