"""Text from users is text: it moves no cursor, changes no colour, and is no markup."""

import pytest

from assetflow.cli.output import plain, text
from assetflow.core.values.assets import Asset
from assetflow.core.values.words import shown
from assetflow.ledger import Ledger
from tests.cli.conftest import Call, screen_of
from tests.cli.shop import NOON, deploy, event_id, update

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
