"""What a ledger remembers between transactions is what the tables hold, whichever process writes."""

import gc
import tracemalloc

import pytest

from assetflow.core.rules.state import Limits, State
from assetflow.core.values.assets import Asset
from assetflow.ledger import Ledger
from assetflow.ledger.write import store
from tests.ledger.making import NOW, A, B, C, deploy, update
from tests.ledger.sql.test_plans import statements


def decided(ledger: Ledger, *assets: Asset, **fields: object) -> list[str | None]:
    """Record an update of these assets, and return the target keys of the decisions."""
    [(_, decisions)] = ledger.writer.events.record([update(*assets, **fields)], NOW)
    return [decision.target_key for decision in decisions]


def test_only_what_another_process_wrote_is_read_again(sqlite_ledger: Ledger) -> None:
    deploy(sqlite_ledger, A & B)
    deploy(sqlite_ledger, C & B, "flow/two")
    for asset in (A, B, C):
        decided(sqlite_ledger, asset)
    with Ledger.open(sqlite_ledger.place) as other:
        decided(other, C)
        with statements(sqlite_ledger) as sent:
            assert decided(sqlite_ledger, A) == []
        read = [statement for statement, _ in sent if statement.startswith("SELECT")]
        assert not any(table in statement for statement in read for table in ("pending", "consumer_token"))
        assert decided(sqlite_ledger, B) == [None, None]
        other.writer.consumers.switch(1, paused=True, now=NOW)
        assert decided(sqlite_ledger, A, B) == []
        decided(other, C)
        assert decided(sqlite_ledger, A) == []


@pytest.mark.long
def test_what_is_remembered_is_bounded_in_bytes(sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 1 << 20
    monkeypatch.setattr(store, "State", lambda source: State(source, Limits(limit, limit, limit, limit)))
    assets = [Asset(f"s3://lake/{number:05}") for number in range(400)]
    for number, asset in enumerate(assets):
        deploy(sqlite_ledger, asset & A, f"flow/{number}")
    tracemalloc.start()
    try:
        for _ in range(20):
            many = [update(asset, extra={"text": "x" * 500}) for asset in assets]
            sqlite_ledger.writer.events.record(many, NOW)
        del many
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 8 * limit
