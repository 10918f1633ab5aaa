"""Text from users is text: it moves no cursor, and is no markup. With `--watch` a terminal shows everything anew."""

import pytest

from assetflow.cli import output, run
from assetflow.cli.output import plain, text
from assetflow.core.values.assets import Asset
from assetflow.core.values.words import shown
from assetflow.ledger import Ledger
from tests.cli.conftest import Call, screen_of
from tests.cli.shop import CUSTOMERS, NOON, ORDERS, deploy, event_id, update

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
