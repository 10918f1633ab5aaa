"""Queues: every way to remove queued events asks for the same (3.7)."""

from contextlib import nullcontext
from datetime import timedelta
from uuid import uuid4

import pytest

from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.core.values.timing import Intake
from assetflow.errors import UnknownEvent
from assetflow.ledger import Ledger
from assetflow.ledger.lease import Holder
from assetflow.operations.decisions import remove_queued
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import Selection
from tests.cli.conftest import Call
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, update
from tests.web.conftest import Site
from tests.web.html import read

DAILY, PLAIN = "daily/shop", "plain/shop"


@pytest.fixture
def queued(ledger: Ledger) -> Ledger:
    deploy(ledger, DAILY, PartitionedAssetTimetable(assets=ORDERS), while_paused="keep")
    deploy(ledger, PLAIN, ORDERS, while_paused="keep")
    for record in ledger.reader.consumers.all():
        ledger.writer.consumers.switch(record.consumer.id, paused=True, now=ledger.created)
    update(ledger, ORDERS, 1, "2026-01-01")
    update(ledger, ORDERS, 2)
    return ledger


@pytest.mark.rule("3.7")
@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        (DAILY, None, "consumer daily/shop is partitioned; pending partitions: 2026-01-01"),
        (PLAIN, "2026-01-01", "consumer plain/shop is not partitioned"),
    ],
)
def test_every_way_to_remove_asks_for_the_key(
    queued: Ledger, call: Call, site: Site, name: str, key: str | None, words: str
) -> None:
    path, keys = f"/consumers/{name}", {} if key is None else {"key": key}
    told = call("queue", "rm", name, "--why", "x", *(() if key is None else ("--key", key)))
    refused = site.delete(f"/api/v1{path}/queue", params={"why": "x"} | ({} if key is None else {"target_key": key}))
    shown = site.submit(f"{path}/remove", f"{path}/remove", f"{path}/remove", why="x", **({"key": ""} | keys))
    assert (told.code, refused.status_code, shown.status_code) == (2, 422, 422)
    assert words in told.err
    assert "--key" in told.err
    assert words in refused.json()["detail"]
    assert (refused.json()["where"], refused.json()["rule"]) == ("query.target_key", "3.7")
    assert words in read(shown.text).text
    assert set(queued.reader.queues.sizes().values()) == {1}, "nothing was removed"


@pytest.mark.parametrize(
    ("evaluator_runs", "read_before", "is_late"),
    [(True, 30, False), (True, 31, True), (True, None, True), (False, 1, True)],
)
def test_rule_9_6_what_is_due_is_decided_first_only_if_an_evaluator_has_read_prefects_logs_lately(
    ledger: Ledger, evaluator_runs: bool, read_before: int | None, is_late: bool
) -> None:
    deploy(ledger, PLAIN, ORDERS | CUSTOMERS, intake=Intake(debounce=timedelta(hours=1)))
    update(ledger, ORDERS, 0)
    now = NOON + timedelta(hours=3)
    if evaluator_runs:
        ledger.writer.lease.acquire(Holder.this_process(uuid4()), seconds=3600)
    if read_before is not None:
        ledger.writer.set_cursor("events", (now - timedelta(seconds=read_before)).isoformat())
    at = Installation(ledger, now=lambda: now)
    (record,) = ledger.reader.consumers.all()
    with nullcontext() if is_late else pytest.raises(UnknownEvent, match="no queued event matches"):
        assert remove_queued(at, Selection(record), by="me", why="wrong") == 1
    made = [each.made for each in ledger.reader.decisions.find()]
    assert made == ([] if is_late else [NOON + timedelta(hours=1)])
