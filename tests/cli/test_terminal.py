"""What a terminal shows: whole columns, short ids, and with `--watch` everything anew."""

import pytest
from rich.text import Text

from assetflow import Asset, AssetWatcher
from assetflow.cli import output, run
from assetflow.ledger import Ledger
from assetflow.watchers import MessageQueueTrigger
from tests.cli.conftest import Call, screen_of
from tests.cli.shop import CUSTOMERS, HOURLY, ORDERS, ROLLED_UP, deploy, event_id, update


def test_a_list_of_watchers_fits_a_terminal(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = MessageQueueTrigger("amqp://mq.internal", queue="orders")
    watched = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])
    deploy(ledger, "report/shop", watched)
    screen = screen_of(80, monkeypatch)
    call("watchers", "ls")
    lines = Text.from_ansi(screen.getvalue()).plain.splitlines()
    assert any("orders-queue" in line and "s3://shop/orders" in line and " new" in line for line in lines)
    assert all(len(line) <= 80 for line in lines), lines


def test_sentences_name_things_by_eight_characters(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    for minute, asset in ((1, ORDERS), (2, CUSTOMERS), (3, ORDERS)):
        update(ledger, asset, minute)
    screen = screen_of(100, monkeypatch)
    call("explain", "report")
    assert f"event {str(event_id(3))[:8]}" in " ".join(screen.getvalue().split())
    assert str(event_id(3)) not in screen.getvalue()


def test_a_key_that_waits_again_is_listed_once(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(ledger, "daily/shop", ROLLED_UP)
    for minute, hour in enumerate(range(24)):
        update(ledger, HOURLY, minute, f"2026-01-01T{hour:02d}:00:00")
    update(ledger, HOURLY, 50, "2026-01-01T00:00:00")
    screen = screen_of(160, monkeypatch)
    call("partitions", "ls", "daily")
    (row,) = [line for line in screen.getvalue().splitlines() if line.startswith("2026-01-01")]
    assert "pending, waiting before" in row


def test_a_list_is_shown_anew_until_ctrl_c(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    update(ledger, ORDERS, 1)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            raise KeyboardInterrupt
        update(ledger, CUSTOMERS, 2)

    monkeypatch.setattr(output, "sleep", pause)
    screen = screen_of(100, monkeypatch)
    assert run(["assets", "ls", "--watch"]) == 0
    _, first, second = screen.getvalue().split("\x1b[H\x1b[J")
    assert "Ctrl+C ends it" in first
    assert ["customers" in each for each in (first, second)] == [False, True]
    assert pauses == [2.0, 2.0]


@pytest.mark.usefixtures("ledger")
def test_what_goes_to_a_program_is_not_watched(call: Call) -> None:
    answer = call("events", "ls", "--watch")
    assert (answer.code, answer.out) == (2, "")
    assert "--watch needs a terminal" in answer.err


def test_the_option_is_in_the_help(call: Call) -> None:
    lists = ("status", "consumers ls", "runs ls", "queue ls", "decisions ls", "partitions ls")
    for command in (*lists, "assets status", "plan", "lineage"):
        out = call(*command.split(), "--help").out
        assert "--watch" in out
        assert "Show it anew every two seconds" in out
        assert "--json" in out
