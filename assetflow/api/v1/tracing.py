"""What triggered what: the tree of an update, a run, or an asset's newest update."""

from __future__ import annotations

from fastapi import APIRouter

from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Text, TheBackend
from assetflow.core.explain.trace import Trace
from assetflow.operations.graph import trace_of

router = APIRouter(tags=["events"], route_class=EtagRoute)


@router.get("/trace/{what:path}", responses=answers(404))
def get_trace(what: Text, backend: TheBackend) -> Trace:
    """Return all that an update, a run, or the newest update of an asset led to, line by line. Contract 7.4.

    An event is named by its id or number, a run by its id or that of its decision, an asset by its name or URI.
    """
    return trace_of(backend.ledger.reader, what, backend.now())
