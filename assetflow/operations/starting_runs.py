"""Start flow runs by hand: run a flow now, or the flow that makes an asset. They consume nothing. Contract 4.5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, cast
from uuid import UUID, uuid4

from assetflow.core.json_data import check_json
from assetflow.core.values.posted_events import key_by_hand
from assetflow.core.values.words import iso
from assetflow.core.wire.run_context import RunContext, run_context_to_json
from assetflow.errors import Conflict, UnknownAsset
from assetflow.operations.installation import OpenPrefect
from assetflow.prefect_io.rest import SECONDS_TO_ANSWER, patiently


@dataclass(frozen=True)
class RunWanted:
    """The run to start.

    Attributes:
        parameters: the parameters of the flow.
        partition_key: the key that the run is for.
        name: the run's name and idempotency key; `None` for a new run that Prefect names.
        after: the time from which the run may start; with `None` it starts at once.
    """

    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    partition_key: str | None = None
    name: str | None = None
    after: datetime | None = None


def maker_of(uri: str, makers: Mapping[str, UUID], chosen: str = "") -> tuple[str, UUID]:
    """Return the name and the id of the deployment that makes an asset.

    Parameters:
        uri: the asset.
        makers: the deployments that declare that they make it, by name.
        chosen: the deployment that the user chose, if there are several.

    Raises:
        UnknownAsset: no deployment makes it; `where` is `asset`.
        Conflict: several deployments make it, and the user chose none of them; `where` is `producer`.
    """
    if not makers:
        raise UnknownAsset(
            f"no deployed flow declares that it makes {uri}",
            where="asset",
            fix="Name the asset in `outlets` of a task, or in `produces` of the flow, and deploy it",
        )
    if len(makers) == 1:
        return next(iter(makers.items()))
    if chosen not in makers:
        raise Conflict(
            f"several deployments make {uri}: {', '.join(sorted(makers))}",
            where="producer",
            fix="Choose one of them, or run one of them in Prefect",
        )
    return chosen, makers[chosen]


async def start_run(prefect: OpenPrefect, deployment: UUID, wanted: RunWanted) -> Mapping[str, Any]:
    """Start a run of a deployment and return Prefect's description of it. Retry while Prefect is busy.

    Raises:
        PrefectUnreachable, PrefectRefused: no run was started.
        InvalidEvent: the key or the parameters cannot be kept; `where` is `partition_key` or `parameters`.
    """
    path, body = run_request(deployment, wanted)
    async with prefect() as api:
        ask = partial(api.post, path, body)
        # A user is waiting: if Prefect does not answer at all, one time limit is enough.
        answer = await patiently(ask, within=SECONDS_TO_ANSWER)
    return cast("Mapping[str, Any]", answer)


def run_request(deployment: UUID, wanted: RunWanted) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of the request that starts a run. It is safe to send it again.

    The partition key is in the run's context, as in every other run.

    Raises:
        InvalidEvent: as `start_run`.
    """
    details: dict[str, Any] = {} if wanted.after is None else {"scheduled_time": iso(wanted.after)}
    body: dict[str, Any] = {
        # Prefect's lists of runs would fail on text that an update may not hold either. Contract 2.7.
        "parameters": check_json(dict(wanted.parameters), "parameters", where="parameters"),
        "tags": ["assetflow"],
        "state": {"type": "SCHEDULED", "name": "Scheduled", "message": "Started by hand", "state_details": details},
        "idempotency_key": wanted.name or str(uuid4()),
    }
    if wanted.name:
        body["name"] = wanted.name
    if wanted.partition_key is not None:
        body["context"] = run_context_to_json(RunContext(None, "", key_by_hand(wanted.partition_key)))
    return f"/deployments/{deployment}/create_flow_run", body
