"""What does not work now, as every page says at its top."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request, Response

from assetflow.api.backend import Backend

router = APIRouter()

_OF_PREFECT = ("Prefect", "listening", "catching up", "reading Prefect", "launching", "asking for runs")


@dataclass(frozen=True)
class Trouble:
    """Something that does not work, in words for the person who has to act.

    Attributes:
        since: since when; none where that is not known.
    """

    title: str
    detail: str
    since: datetime | None = None


def troubles_of(backend: Backend) -> list[Trouble]:
    """What keeps updates from leading to runs."""
    found: list[Trouble] = []
    lease = backend.ledger.reader.lease()
    if lease is None:
        found.append(Trouble("No evaluator works on this ledger", _RECORDED))
    elif lease.expires < backend.now():
        found.append(Trouble("The evaluator is down", _RECORDED, lease.renewed))
    of_prefect = {name: reason for name, reason in backend.troubles().items() if name.startswith(_OF_PREFECT)}
    if of_prefect:
        told = "; ".join(dict.fromkeys(of_prefect.values()))
        found.append(Trouble("Prefect cannot be reached", f"Runs wait until it answers. {told}"))
    others = {name: reason for name, reason in backend.troubles().items() if name not in of_prefect}
    return [*found, *(Trouble(f"Trouble with: {name}", reason) for name, reason in others.items())]


_RECORDED = "Updates are recorded and wait; runs start when one is back (assetflow server start)."


@router.get("/troubles")
def show_troubles(request: Request) -> Response:
    """What the top of every page says, for pages that are open."""
    return request.app.state.pages.show(request, "troubles.html", troubles=troubles_of(request.app.state.backend))
