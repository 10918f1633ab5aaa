"""Text from users is text: it moves no cursor, changes no colour, and is no markup."""

import re
from datetime import UTC, datetime, timedelta
from importlib.metadata import version

import pytest

from assetflow.cli.layouts import consumer_parts
from assetflow.cli.output import plain, rows, show, text
from assetflow.core.explain import ConsumerFacts, explain_consumer
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import AssetAll, AssetAny, BooleanCondition
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import ago, shown
from assetflow.ledger import Ledger
from tests.cli.conftest import Call, screen_of
from tests.cli.shop import HOURLY, NOON, ORDERS, deploy, event_id, update

EVIL = Asset("s3://lake/evil", name="\x1b[2J\x07[bold red]x[/] :smile:\n\u202eevil\x9b31m")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("\x1b[31m", r"\x1b[31m"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x9b31m", r"\x9b31m"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\u200bx", r"\u200bx"),
        ("\ud800", r"\ud800"),
        ("[bold]é日本[/bold]", "[bold]é日本[/bold]"),
    ],
)
def test_what_is_invisible_is_made_visible(given: str, expected: str) -> None:
    assert shown(given) == expected
    assert plain(text(given)) == f"{expected}\n"


def test_the_version_is_printed(call: Call) -> None:
    assert call("--version").out.strip() == version("assetflow")


@pytest.mark.parametrize("terminal", [False, True])
def test_what_users_wrote_is_text(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    deploy(ledger, "report/shop", EVIL & Asset("other"))
    update(ledger, EVIL, 1, extra={"\x1b]0;t\x07": "\x1b[8m"})
    ledger.writer.events.refuse({}, "\x1b[2J[red]", None, "\x1b[2J", event_id(2), NOON)
    commands = ("assets ls", "events ls", "events ls --refused", "queue ls", "queue ls report", "explain report")
    for command in (*commands, f"events show {event_id(1)}"):
        if terminal:
            screen = screen_of(1000, monkeypatch)
            call(*command.split())
            out = screen.getvalue().replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
        else:
            out = call(*command.split()).out
        assert out.replace("\n", "").isprintable(), command
        assert "[red]" in out or "[bold red]x[/] :smile:" in out, command


def test_a_terminal_is_spared_empty_columns(monkeypatch: pytest.MonkeyPatch, ledger: Ledger, call: Call) -> None:
    update(ledger, EVIL, 1)
    assert "group" in call("assets", "ls").out.splitlines()[0]
    screen = screen_of(80, monkeypatch)
    call("assets", "ls")
    assert "last update" in screen.getvalue()
    assert "group" not in screen.getvalue()


def test_a_long_uri_on_a_narrow_terminal_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(40, monkeypatch)
    show(text("s3://" + "x" * 100))
    assert screen.getvalue().count("x") == 100


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
def test_ids_and_uris_stay_whole(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    deploy(ledger, "a-consumer-with-a-name/shop", ORDERS)
    (decision,) = update(ledger, ORDERS, 1, extra={"rows": 336_776, "files": ["part-0", "part-1"]})
    ledger.writer.decisions.launched(decision.id, run := event_id(7), NOON)
    commands = ("events ls", "decisions ls", "assets ls", "queue ls", "decisions show 1", "events ls --refused")
    ledger.writer.events.refuse({}, "a reason of many words that does not fit", "1.5", "prefect", event_id(3), NOON)
    for command in commands:
        screen = screen_of(columns, monkeypatch)
        assert call(*command.split()).code == 0, command
        printed = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
        assert max(map(len, printed.splitlines())) <= columns, printed
        for whole in (str(event_id(1))[:8], str(event_id(3))[:8], str(run)[:8], ORDERS.uri):
            table_part = printed.partition("Consumed")[2] or printed
            assert whole in table_part or whole[:6] not in table_part, printed


def test_ids_stay_while_other_columns_give_way(ledger: Ledger, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    update(ledger, HOURLY, 1, "2026-01-01T00:00:00", extra={"rows": 336_776, "files": ["part-0", "part-1"]})
    screen = screen_of(60, monkeypatch)
    call("events", "ls")
    assert str(event_id(1))[:8] in screen.getvalue()
    assert "Not shown for lack of room: extra; --wide shows everything" in screen.getvalue()


@pytest.mark.parametrize("width", range(50, 131, 7))
def test_a_table_on_a_terminal_loses_no_character(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    screen = screen_of(width, monkeypatch)
    cells = ["orders", "A" * 30, "report", "B" * 9, "CC-CC-CCCC/CCC", "DDDDDDDD-DDDDDDDD/DDDD", "E" * 11]
    show(rows(("name", "uri", "group", "last update", "producers", "consumers", "aliases"), [cells], empty=""))
    printed = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    body = printed[printed.index("orders") :] if "orders" in printed else printed
    assert [body.count(letter) for letter in "ABCDE"] == ["".join(cells).count(letter) for letter in "ABCDE"], printed
    assert max(map(len, printed.splitlines())) <= width


def test_a_deep_condition_is_told_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screen_of(80, monkeypatch)
    deep: BooleanCondition = AssetAny()
    for number in range(100):
        deep = (AssetAll if number % 2 else AssetAny)(Asset(f"leaf-{number}"), deep)
    consumer = Consumer(1, "flow/one", event_id(1), ConsumerOptions(to_schedule(deep)))
    show(*consumer_parts(explain_consumer(ConsumerFacts(consumer), NOON)))
    assert set(re.findall(r"leaf-\d+", screen.getvalue())) == {f"leaf-{number}" for number in range(100)}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s ago"), (61, "1 min ago"), (7200, "2 h ago"), (3 * 86400, "3 d ago"), (40 * 86400, "2025-11-23")],
)
def test_how_long_ago(seconds: int, words: str) -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert ago(now - timedelta(seconds=seconds), now) == words
