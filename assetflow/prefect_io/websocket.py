"""Subscribe to Prefect's events as they come, over `/events/out`.

The server drops events when a subscriber is more than 256 behind, and events older than 15 minutes by the producer's
clock: a subscriber has to read the event log as well. Prefect's own subscriber only passes on events of the last
minute, and parses each into a model; this one returns plain JSON.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.settings import get_current_settings
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

from assetflow.core.values.addresses import without_passwords
from assetflow.errors import PrefectUnreachable
from assetflow.prefect_io.connection import event_stream_token, request_headers
from assetflow.prefect_io.rest import Json

LARGEST_MESSAGE = 8 * 1024 * 1024
SECONDS_TO_CONNECT = 10.0
_AHEAD = timedelta(days=365)
_BACK = timedelta(days=7)


@asynccontextmanager
async def subscribe(
    api_url: str, *, names: Sequence[str] = (), prefixes: Sequence[str] = ()
) -> AsyncGenerator[AsyncGenerator[Json]]:
    """Open a stream of events with one of these names or prefixes, from now on, until the connection ends.

    Raises:
        PrefectUnreachable: the connection failed or was lost; read the events in between from the event log.
    """
    url = f"{api_url.replace('http', 'ws', 1)}/events/out"
    try:
        async with connect(
            url,
            subprotocols=[Subprotocol("prefect")],
            # A proxy before the server may ask for them before the stream begins.
            additional_headers=request_headers(),
            ssl=_tls(url),
            max_size=LARGEST_MESSAGE,
            open_timeout=SECONDS_TO_CONNECT,
        ) as socket:
            await _introduce(socket, url)
            await socket.send(json.dumps({"type": "filter", "backfill": False, "filter": _filter(names, prefixes)}))
            yield _received(socket)
    except PrefectUnreachable:
        # It is a connection's error too, and says more.
        raise
    except (WebSocketException, OSError) as error:
        raise PrefectUnreachable(
            f"the event stream was lost ({type(error).__name__})", where=without_passwords(url)
        ) from error


async def _introduce(socket: ClientConnection, url: str) -> None:
    await socket.send(json.dumps({"type": "auth", "token": event_stream_token()}))
    answer = json.loads(await socket.recv())
    if answer.get("type") != "auth_success":
        raise PrefectUnreachable(
            f"Prefect does not let us listen: {answer.get('reason', 'no reason given')}",
            where=without_passwords(url),
            fix="Check PREFECT_API_KEY, PREFECT_API_AUTH_STRING",
        )


def _filter(names: Sequence[str], prefixes: Sequence[str]) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "event": {"name": list(names) or None, "prefix": list(prefixes) or None},
        "occurred": {"since": (now - _BACK).isoformat(), "until": (now + _AHEAD).isoformat()},
    }


async def _received(socket: ClientConnection) -> AsyncGenerator[Json]:
    async for message in socket:
        data = json.loads(message)
        if data.get("type") == "event":
            yield data["event"]
    raise PrefectUnreachable("Prefect closed the event stream")


def _tls(url: str) -> ssl.SSLContext | None:
    if not url.startswith("wss:"):
        return None
    api = get_current_settings().api
    context = ssl.create_default_context(cafile=api.ssl_cert_file)
    if api.tls_insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
