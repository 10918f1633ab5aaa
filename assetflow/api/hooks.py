"""Webhooks: others post signed messages, which become updates of watched assets. Contract 10.8."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from assetflow.api.problems import answers
from assetflow.api.requests import TheBackend
from assetflow.core.watchers.messages import MOST_BYTES
from assetflow.errors import TooLarge
from assetflow.operations.webhooks import find_webhook, receive, secret_of

router = APIRouter(tags=["webhooks"])


class ReceivedOut(BaseModel):
    """The outcome of a message."""

    status: Literal["recorded", "known", "filtered", "refused"] = Field(
        description="`known`: its updates were recorded before. `refused`: it is kept, with the reason."
    )
    updates: int = Field(description="How many updates were recorded.")
    reason: str = ""


@router.post("/hooks/{watcher}", response_model=ReceivedOut, responses=answers(404, 408, 413, 422))
async def post_to_watcher(watcher: str, request: Request, backend: TheBackend) -> ReceivedOut:
    """Record a signed message. It needs no key: the signature tells who sent it.

    It is answered after its update is durable, and may be sent again: the same id is the same update. A message that
    cannot be an update is kept as refused, and answered with 200 too, because sending it again would change nothing.
    """
    headers = {name.lower(): value for name, value in request.headers.items()}
    webhook = await run_in_threadpool(find_webhook, backend, watcher)
    number = webhook.message_id(backend, headers)
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise TooLarge(f"the message has {len(body):,} bytes, the limit is {MOST_BYTES:,}")
    webhook.check(headers, body, await secret_of(backend, webhook))
    received = await run_in_threadpool(receive, backend, webhook, number, body)
    return ReceivedOut(status=received.status, updates=received.updates, reason=received.reason)
