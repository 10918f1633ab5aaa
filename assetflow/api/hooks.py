"""Webhooks: others post signed messages, which become updates of watched assets. Contract 10.8."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool

from assetflow.api.problems import answers
from assetflow.api.requests import TheBackend
from assetflow.core.watchers.intake import MOST_BYTES, check_signature, message_id
from assetflow.errors import TooLarge
from assetflow.operations.webhooks import Received, find_webhook, receive, secret_of

router = APIRouter(tags=["webhooks"])


@router.post("/hooks/{watcher}", responses=answers(404, 408, 413, 422))
async def post_to_watcher(watcher: str, request: Request, backend: TheBackend) -> Received:
    """Record a signed message. It needs no key: the signature tells who sent it.

    It is answered after its update is durable, and may be sent again: the same id is the same update. A message that
    cannot be an update is kept as refused, and answered with 200 too, because sending it again would change nothing.
    """
    headers = {name.lower(): value for name, value in request.headers.items()}
    webhook = await run_in_threadpool(find_webhook, backend, watcher)
    number = message_id(webhook.trigger.signs, headers, backend.now())
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise TooLarge(f"the message has {len(body):,} bytes, the limit is {MOST_BYTES:,}")
    check_signature(webhook.trigger.signs, headers, body, await secret_of(backend, webhook))
    return await run_in_threadpool(receive, backend, webhook, number, body)
