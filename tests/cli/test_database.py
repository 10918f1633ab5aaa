"""`assetflow database` and a ledger that cannot be used: what is said, and the exit status."""

from pathlib import Path

import pytest

from assetflow.evaluator.process.binding import CURSOR
from assetflow.ledger import Ledger
from assetflow.ledger.migrations import VERSION
from tests.cli.conftest import Call

PASSWORD = "hunter2"


def test_upgrade_makes_a_ledger_and_says_so(call: Call, home: Path) -> None:
    assert call("database", "check").code == 2
    assert "is created, and has version" in call("database", "upgrade").out
    assert (home / "ledger.db").exists()
    assert "nothing to do" in call("database", "upgrade").out
    assert call("database", "upgrade", "--json").json["before"] == VERSION


@pytest.mark.parametrize(
    "command",
    [
        ["database", "upgrade"],
        ["database", "check"],
        ["database", "prune", "--older-than", "90d"],
        ["status"],
        ["queue", "ls"],
        ["evaluator", "start", "--once"],
    ],
)
@pytest.mark.parametrize("address", ["postgresql+psycopg://u:{}@127.0.0.1:1/x", "mysql://u:{}@127.0.0.1/x"])
def test_a_database_of_no_use(call: Call, monkeypatch: pytest.MonkeyPatch, command: list[str], address: str) -> None:
    monkeypatch.setenv("ASSETFLOW_DATABASE_URL", address.format(PASSWORD))
    answer = call(*command)
    assert answer.code == 2
    assert "error [ledger]" in answer.err
    assert "do:" in answer.err
    assert "Traceback" not in answer.err
    assert PASSWORD not in answer.err + answer.out


def test_prune_refuses_what_could_come_back_and_takes_nothing_without_prefect(ledger: Ledger, call: Call) -> None:
    answer = call("database", "prune", "--older-than", "7d")
    assert answer.code == 2
    assert "at least 8d" in answer.err
    assert ledger.reader.cursor(CURSOR) is None
    answer = call("database", "prune", "--older-than", "90d")
    assert answer.code == 2
    assert "Prefect does not answer" in answer.err
    assert ledger.reader.cursor(CURSOR) is None
