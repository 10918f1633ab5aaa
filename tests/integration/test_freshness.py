"""Freshness on a real Prefect server: events that automations hear, and Lazy flows, from declaration to run."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast
from uuid import UUID

import pytest
import yaml
from prefect.automations import Automation
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.events.actions import SendNotification

from assetflow import Asset, FreshnessPolicy, flow, freshness_trigger, task
from assetflow.prefect_io.names import FRESHNESS_EVENTS
from assetflow.prefect_io.rest import prefect_api
from assetflow.testing import Harness
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.prefect]

HOUR = timedelta(hours=1)
RAW = Asset("s3://fresh/raw")
# The server of all tests keeps the events of the others: this asset has one test.
TOLD = Asset("s3://fresh/told", freshness=FreshnessPolicy(HOUR, warn_after=HOUR / 2))
ALERT = Path(__file__).parents[2] / "deployments" / "monitoring" / "freshness-alert.yaml"


@task(inlets=[RAW], outlets=[TOLD])
def make_told() -> None: ...


@flow(schedule=RAW)
def tells() -> None:
    make_told()


@pytest.fixture
def inbox() -> Iterator[tuple[str, list[str]]]:
    """The address of a web server, and what was posted to it."""
    posted: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["content-length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", posted
    server.shutdown()
    thread.join()
    server.server_close()


def in_log(uri: str) -> list[dict[str, Any]]:
    """The events of an asset in Prefect's log."""
    return asyncio.run(_in_log(uri))


async def _in_log(uri: str) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    occurred = {"since": (now - HOUR).isoformat(), "until": (now + 24 * HOUR).isoformat()}
    given = {"event": {"name": [*FRESHNESS_EVENTS.values()]}, "occurred": occurred, "resource": {"id": [uri]}}
    async with prefect_api() as api:
        return (await api.post("/events/filter", {"filter": given | {"order": "ASC"}, "limit": 50}))["events"]


def test_8_13_each_change_is_one_event_with_lag_causes_and_policy_and_an_automation_notifies(
    h: Harness, inbox: tuple[str, list[str]]
) -> None:
    address, posted = inbox
    block = CustomWebhookNotificationBlock(
        name="inbox", url=address, headers=None, cookies=None, json_data={"text": "{{body}}"}
    )
    number = UUID(str(block.save("freshness-inbox", overwrite=True)))
    given = yaml.safe_load(ALERT.read_text())
    (action,) = given["actions"]
    notify = SendNotification(block_document_id=number, subject=action["subject"], body=action["body"])
    trigger = freshness_trigger(TOLD).model_copy(update={"expect": Automation(**given).trigger.expect})  # pyright: ignore
    wanted = Automation(name="data is too old", trigger=trigger, actions=[notify])
    made = cast(Automation, wanted.create())
    try:
        assert trigger.expect == freshness_trigger().expect | freshness_trigger(state="pass").expect
        h.deploy(tells)
        h.emit(RAW)
        h.settle()
        h.emit(RAW)
        h.settle(execute=False)
        h.advance(2 * HOUR)
        until(lambda: bool(posted), seconds=60)
        h.settle()
        until(lambda: len(posted) == 2, seconds=60)
        assert ["is too old" in posted[0], "is fresh again" in posted[1]] == [True, True]
        until(lambda: len(in_log(TOLD.uri)) == 3, seconds=60)
        warned, failed, passed = in_log(TOLD.uri)
    finally:
        cast(Any, made).delete()
    assert [each["payload"]["state"] for each in (warned, failed, passed)] == ["warn", "fail", "pass"]
    assert (failed["payload"]["lag"], failed["payload"]["causes"]) == (3600, [{"kind": "data", "asset": RAW.uri}])
    assert "at most 1 h old" in failed["payload"]["words"]
    roles = {each["prefect.resource.role"] for each in failed["related"]}
    assert roles == {"deployment", "flow-run", "stale-input"}
