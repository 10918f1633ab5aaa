"""Whether it lives, whether it works, and what ledger it is."""

from __future__ import annotations

from fastapi import APIRouter

from assetflow.api.backend import TheBackend, TheReader
from assetflow.api.problems import answers
from assetflow.api.responses import EtagRoute, Json
from assetflow.api.schemas.own import HealthOut, LedgerOut, ReadyOut
from assetflow.core.explanation.words import iso
from assetflow.ledger.lease import Lease

router = APIRouter(tags=["health"], route_class=EtagRoute)
# The same two where load balancers and orchestrators look for them.
plain = APIRouter(include_in_schema=False)


@plain.get("/health")
@router.get("/health", response_model=HealthOut, responses=answers())
def health() -> Json:
    """That this process answers; needs no key, and says nothing else."""
    return Json({"status": "ok"})


@plain.get("/ready")
@router.get(
    "/ready", response_model=ReadyOut, responses=answers() | {503: {"model": ReadyOut, "description": "Not ready"}}
)
def ready(backend: TheBackend) -> Json:
    """Whether updates lead to runs: the ledger can be read, an evaluator is alive and reaches Prefect."""
    lease = backend.ledger.reader.lease()
    troubles = [f"{name}: {reason}" for name, reason in backend.troubles().items()]
    if lease is None or lease.expires < backend.now():
        troubles.append("no evaluator works on this ledger; start one with `assetflow server start`")
    document = {
        "status": "not ready" if troubles else "ready",
        "problems": troubles,
        "evaluator": None if lease is None else _evaluator(lease),
    }
    return Json(document, 503 if troubles else 200)


@router.get("/ledger", response_model=LedgerOut, responses=answers())
def ledger(reader: TheReader) -> Json:
    """The ledger in numbers."""
    status = reader.status()
    url = reader.prefect_api_url()
    return Json(
        {
            "id": str(reader.id),
            "created": iso(reader.created),
            "prefect_api_url": url,
            "assets": status.assets,
            "consumers": status.consumers,
            "last_event": status.last_event,
            "last_decision": status.last_decision,
            "waiting": status.waiting,
            "running": status.running,
            "undeliverable": status.undeliverable,
            "refused": status.refused,
            "oldest_waiting": iso(status.oldest_waiting),
        }
    )


def _evaluator(lease: Lease) -> dict[str, object]:
    holder = lease.holder
    return {"host": holder.host, "pid": holder.pid, "since": iso(lease.since), "renewed": iso(lease.renewed)}
