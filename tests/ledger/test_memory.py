"""What a ledger remembers from one transaction to the next is what is written, whoever writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assetflow.core.assets import Asset, AssetAlias
from assetflow.core.schedules import PartitionedAssetTimetable
from assetflow.ledger import Ledger, queue
from tests.ledger.making import NOW, A, B, C, declared, deploy, event, recording, update
from tests.ledger.test_plans import statements


@pytest.fixture
def other(ledger: Ledger) -> Iterator[Ledger]:
    """The same ledger as another process has it open."""
    url = ledger._engine.url.render_as_string(hide_password=False)
    with Ledger.open(url) as opened:
        yield opened


def decided(ledger: Ledger, *assets: Asset, **fields: object) -> list[str | None]:
    """The keys of the decisions that a recording of these assets leads to."""
    [(_, decisions)] = ledger.writer.record([update(*assets, **fields)], NOW)
    return [decision.target_key for decision in decisions]


def test_a_queue_that_another_process_filled_or_emptied(ledger: Ledger, other: Ledger) -> None:
    deploy(ledger, A & B)
    assert decided(ledger, A) == []
    assert decided(other, B) == [None]
    assert decided(ledger, B) == []
    assert decided(other, A) == [None]
    assert decided(ledger, A) == []
    other.writer.remove_queued(1, by="somebody", now=NOW)
    assert decided(ledger, B) == []


def test_consumers_that_another_process_changed(ledger: Ledger, other: Ledger) -> None:
    consumer = deploy(ledger, A)
    assert decided(ledger, A) == [None]
    other.writer.switch(consumer.id, paused=True, now=NOW)
    assert decided(ledger, A) == []
    other.writer.switch(consumer.id, paused=False, now=NOW)
    other.writer.change(consumer.id, declared(C), NOW)
    assert decided(ledger, A) == []
    assert decided(ledger, C) == [None]
    deploy(other, C, "flow/two")
    assert decided(ledger, C) == [None, None]
    other.writer.remove(consumer.id, NOW)
    assert decided(ledger, C) == [None]


def test_names_and_links_that_another_process_made(ledger: Ledger, other: Ledger) -> None:
    deploy(ledger, Asset.ref(name="bee") & C, "flow/name")
    deploy(ledger, AssetAlias("x") & C, "flow/alias")
    plain = Asset(B.uri)
    assert decided(ledger, plain, C) == []
    decided(other, Asset(B.uri, name="bee"), aliases=("x",))
    assert decided(ledger, plain, C) == [None, None]


def test_what_was_rolled_back_is_not_remembered(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    decided(ledger, C)

    def fail() -> None:
        with ledger.transaction(NOW) as book:
            book.declare("sea", C.uri)
            book.link("x", C.uri)
            book.append(event(A), event().id, NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with ledger.transaction(NOW) as book:
        assert book.owner_of("sea") is None
        assert list(book.aliases_of(C.uri)) == []
    assert decided(ledger, B) == []


def test_what_is_known_is_not_read_again(sqlite_ledger: Ledger) -> None:
    deploy(sqlite_ledger, A & B)
    deploy(sqlite_ledger, PartitionedAssetTimetable(assets=A & B), "flow/keys")
    for asset in (A, B, A, B):
        decided(sqlite_ledger, asset)
    with statements(sqlite_ledger) as sent:
        assert decided(sqlite_ledger, A) == []
        assert decided(sqlite_ledger, B) == [None]
    read = [statement for statement, _ in sent if statement.startswith("SELECT")]
    assert len(read) == 2 * 3, "the ledger's row, and whether id and recording are known"


def test_a_long_queue_is_not_kept_in_memory(sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_EVENTS", 3)
    deploy(sqlite_ledger, A & B)
    for _ in range(3):
        sqlite_ledger.writer.record([recording(event(A), event(A))], NOW)
    for _ in range(2):
        with sqlite_ledger.transaction(NOW) as book:
            assert not book.queues.is_known((1, None))
            assert len(book.queued(1, None)) == 6
    [(_, [decision])] = sqlite_ledger.writer.record([update(B)], NOW)
    assert [each.sequence for each in decision.events] == [1, 2, 3, 4, 5, 6, 7]
