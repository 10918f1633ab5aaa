"""What a terminal shows: whole columns, short ids, and with `--watch` everything anew."""

import pytest

from assetflow.cli import output, run
from assetflow.ledger import Ledger
from tests.cli.conftest import Call, screen_of
from tests.cli.shop import CUSTOMERS, ORDERS, update


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
