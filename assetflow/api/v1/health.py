"""Health, readiness, and the size of the ledger."""

from __future__ import annotations

from fastapi import APIRouter

from assetflow.api.own_shapes import HealthOut, LedgerOut, ReadyOut
from assetflow.api.problems import answers
from assetflow.api.requests import EtagRoute, Json, TheBackend, TheReader
from assetflow.core.values.words import iso
from assetflow.evaluator.liveness import downtime
from assetflow.ledger.lease import Lease

router = APIRouter(tags=["health"], route_class=EtagRoute)
# The same two routes, at the paths where load balancers and orchestrators look for them.
plain = APIRouter(include_in_schema=False)


@plain.get("/health")
@router.get("/health", response_model=HealthOut, responses=answers())
def check_health() -> Json:
    """Answer that this process is alive. Needs no key."""
    return Json({"status": "ok"})


@plain.get("/ready")
@router.get(
    "/ready", response_model=ReadyOut, responses=answers() | {503: {"model": ReadyOut, "description": "Not ready"}}
)
def check_readiness(backend: TheBackend) -> Json:
    """Check that updates lead to runs: the ledger can be read, and an evaluator is alive and reaches Prefect."""
    evaluators = backend.ledger.reader.evaluators()
    lease, down = evaluators.lease, downtime(evaluators)
    troubles = [f"{name}: {reason}" for name, reason in backend.current_troubles(evaluators).items()]
    if down is not None:
        troubles.append(str(down))
    document = {
        "status": "not ready" if troubles else "ready",
        "problems": troubles,
        "evaluator": None if lease is None else _evaluator(lease),
    }
    return Json(document, 503 if troubles else 200)


@router.get("/ledger", responses=answers())
def get_ledger(reader: TheReader) -> LedgerOut:
    """Return the size and the state of the ledger."""
    url = reader.prefect_api_url()
    return LedgerOut(**vars(reader.status()), id=reader.id, created=reader.created, prefect_api_url=url)


def _evaluator(lease: Lease) -> dict[str, object]:
    holder = lease.holder
    return {"host": holder.host, "pid": holder.pid, "since": iso(lease.since), "renewed": iso(lease.renewed)}
