"""`assetflow database` and a ledger that cannot be used: what is said, and the exit status."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import respx

from assetflow.evaluator.process.binding import CURSOR
from assetflow.ledger import Ledger
from assetflow.ledger.migrations import VERSION
from tests.cli.conftest import API_URL, Call
from tests.cli.shop import ORDERS, deploy, update

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


@respx.mock
def test_prune_counts_and_takes_out(ledger: Ledger, call: Call) -> None:
    deploy(ledger, "report/shop", ORDERS)
    for number in (1, 2):
        (decision,) = update(ledger, ORDERS, number)
        ledger.writer.decisions.launched(decision.id, decision.id, decision.made)
        ledger.writer.decisions.ended("Completed", decision.made, decision_id=decision.id)
    ledger.writer.set_cursor("events", datetime.now(UTC).isoformat())
    respx.get(f"{API_URL}/variables/name/assetflow_ledger").respond(200, json={"value": str(ledger.id)})
    respx.post(f"{API_URL}/artifacts/count").respond(200, json=0)
    respx.post(f"{API_URL}/artifacts/filter").respond(200, json=[])
    respx.get(f"{API_URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
    # The shop's updates are of the first of January 2026.
    days = (datetime.now(UTC) - datetime(2026, 1, 2, tzinfo=UTC)) // timedelta(days=1)
    for dry_run in (True, False):
        given = ["database", "prune", "--older-than", f"{days}d", "--json", *(["--dry-run"] if dry_run else [])]
        answer = call(*given)
        assert answer.code == 0, answer.err
        assert answer.json["dry_run"] is dry_run
        counted = {name: answer.json[name] for name in ("events", "receipts", "decisions", "artifacts_recordings")}
        assert counted == {"events": 1, "receipts": 1, "decisions": 1, "artifacts_recordings": 0}
        assert ledger.reader.events.count() == (2 if dry_run else 1)
    assert "older than" in call("database", "prune", "--older-than", "90d").out
