"""The harness lets messages and files arrive at watchers, without a broker (10.2, 10.5, 10.7)."""

from collections.abc import Callable

import pytest

from assetflow import Asset, AssetWatcher, PartitionedAssetTimetable, flow
from assetflow.errors import InvalidEvent, InvalidWatcher, UnknownWatcher
from assetflow.partitions import IdentityMapper
from assetflow.testing import Harness
from assetflow.watchers import FileTrigger, MessageQueueTrigger

pytestmark = pytest.mark.prefect

QUEUE = MessageQueueTrigger(
    "amqp://mq.internal", queue="orders", partition_key="date", extra="order", filter={"kind": "order"}
)
ORDERS = Asset("s3://outside/orders", watchers=[AssetWatcher("orders-queue", QUEUE)])
LANDING = FileTrigger("/data/in/date=*/*.json", partition_key=r"date=(?P<key>[0-9-]+)/")
FILES = Asset("s3://outside/files", watchers=[AssetWatcher("landing", LANDING)])
BY_KEY = PartitionedAssetTimetable(assets=ORDERS | FILES, default_partition_mapper=IdentityMapper())


@flow(schedule=BY_KEY)
def report() -> None: ...


@pytest.mark.rule("10.2")
def test_a_message_and_a_file_are_updates_that_start_runs(h: Harness) -> None:
    h.deploy(report)
    (event,) = h.message("orders-queue", {"kind": "order", "date": "2026-01-01", "order": {"rows": 3}}, message_id="17")
    assert (event.uri, event.extra, event.origin.kind) == (ORDERS.uri, {"order": {"rows": 3}}, "watcher")
    assert h.message("orders-queue", {"kind": "order", "date": "2026-01-01", "order": 4}, message_id="17") == []
    (found,) = h.file("landing", "date=2026-01-02/a.json", size=20)
    assert (found.extra["path"], found.extra["size"]) == ("/data/in/date=2026-01-02/a.json", 20)
    h.file("landing", "/data/in/date=2026-01-03/a.json")
    runs = h.settle().runs(report)
    expected = [("2026-01-01", [ORDERS.uri]), ("2026-01-02", [FILES.uri]), ("2026-01-03", [FILES.uri])]
    assert [(run.partition_key, run.uris) for run in runs] == expected


@pytest.mark.parametrize(
    ("come", "error", "words"),
    [
        (lambda h: h.message("orders-queue", b"{"), InvalidEvent, "not JSON"),
        (lambda h: h.message("orders-queue", {"kind": "order"}), InvalidEvent, "no date"),
        (lambda h: h.message("landing", {}), InvalidWatcher, "h.file"),
        (lambda h: h.file("orders-queue", "a.json"), InvalidWatcher, "h.message"),
        (lambda h: h.file("landing", "date=2026-01-02/a.csv"), InvalidEvent, "not among the files"),
        (lambda h: h.file("other", "a"), UnknownWatcher, "landing, orders-queue"),
    ],
)
def test_what_a_watcher_would_refuse_is_an_error(
    h: Harness, come: Callable[[Harness], object], error: type[Exception], words: str
) -> None:
    h.deploy(report)
    with pytest.raises(error, match=words):
        come(h)
    assert h.message("orders-queue", {"kind": "offer"}) == []
    assert h.settle().runs(report) == []
