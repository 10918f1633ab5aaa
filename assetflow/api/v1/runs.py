"""List the runs that have ended, and what needs a person."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Moment, Page, Text, TheBackend, ThePage, TheReader
from assetflow.operations.needs import ListedRun, Need, list_runs

router = APIRouter(tags=["decisions"], route_class=EtagRoute)


@router.get("/runs", responses=answers(404))
def list_ended_runs(
    reader: TheReader,
    page: ThePage,
    failed: Annotated[bool, Query(description="Only runs that failed or crashed.")] = False,
    since: Annotated[Moment | None, Query(description="Ended at this time or later.")] = None,
    until: Annotated[Moment | None, Query(description="Ended before this time.")] = None,
    flow: Annotated[Text | None, Query(description="Of this flow and deployment: `flow/deployment`.")] = None,
    target_key: Annotated[Text | None, Query(description="For this target key.")] = None,
) -> Page[ListedRun]:
    """List the runs of consumers and makers that have ended, newest first, whoever started them (4.8)."""
    of = {"failed": failed, "since": since, "until": until, "flow": flow, "target_key": target_key}
    found = list_runs(reader, **of, before=page.number, limit=page.limit)  # type: ignore[arg-type]
    return page.after(found, lambda each: each.number)


@router.get("/needs", responses=answers())
def get_needs(backend: TheBackend) -> list[Need]:
    """List what needs a person: what failed and was not made good, and what does not work (4.9).

    What keeps everything waiting comes first, then that for which most flows wait further down.
    """
    return backend.needs()
