"""What a ledger remembers between transactions is what the tables hold, whichever process writes."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.kept import Kept
from assetflow.core.rules.state import Limits, State, names, queues
from assetflow.core.rules.state.names import KnownAsset, weight_of_options
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import declaration_from_text
from assetflow.ledger import Ledger
from assetflow.ledger.sql import rows
from assetflow.ledger.write import store
from tests.ledger.making import NOW, A, B, C, declared, deploy, event, recording, update
from tests.ledger.sql.test_plans import statements


@pytest.fixture
def other(ledger: Ledger) -> Iterator[Ledger]:
    """The same ledger, opened by another process."""
    url = ledger._engine.url.render_as_string(hide_password=False)
    with Ledger.open(url) as opened:
        yield opened


def decided(ledger: Ledger, *assets: Asset, **fields: object) -> list[str | None]:
    """Record an update of these assets, and return the target keys of the decisions."""
    [(_, decisions)] = ledger.writer.events.record([update(*assets, **fields)], NOW)
    return [decision.target_key for decision in decisions]


def test_what_was_rolled_back_is_not_remembered(ledger: Ledger) -> None:
    deploy(ledger, A & B)
    decided(ledger, C)

    def fail() -> None:
        with ledger.transaction(NOW) as unit:
            unit.state.names.declare("sea", C.uri)
            unit.state.names.link("x", C.uri)
            unit.state.append(event(A), event().id, NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with ledger.transaction(NOW) as unit:
        assert unit.state.names.owner_of("sea") is None
        assert list(unit.state.names.aliases_of(C.uri)) == []
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
    monkeypatch.setattr(queues, "LONG", 3)
    deploy(sqlite_ledger, A & B)
    for _ in range(3):
        sqlite_ledger.writer.events.record([recording(event(A), event(A))], NOW)
    for _ in range(2):
        with sqlite_ledger.transaction(NOW) as unit:
            assert not unit.state.queues.is_read((1, None))
            assert len(unit.state.queues.queued(1, None)) == 6
    [(_, [decision])] = sqlite_ledger.writer.events.record([update(B)], NOW)
    assert [each.sequence for each in decision.events] == [1, 2, 3, 4, 5, 6, 7]


def test_a_queue_that_only_another_process_fills_is_not_kept_in_memory_either(
    ledger: Ledger, other: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "LONG", 3)
    deploy(ledger, A & B)
    decided(ledger, A)
    for _ in range(6):
        decided(other, A)
        decided(ledger, C)
    with ledger.transaction(NOW) as unit:
        assert not unit.state.queues.is_read((1, None))
        assert len(unit.state.queues.queued(1, None)) == 7


def test_a_queue_that_another_process_empties_and_fills_again(
    ledger: Ledger, other: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "LONG", 2)
    deploy(ledger, A & B)
    for _ in range(3):
        decided(ledger, A)
    decided(other, A)
    assert decided(other, B) == [None]
    decided(other, A)
    assert decided(ledger, C) == []
    assert decided(ledger, B) == [None]


def test_what_another_process_queues_counts_as_remembered(
    ledger: Ledger, other: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "State", lambda source: State(source, Limits(queues=2_500)))
    deploy(ledger, PartitionedAssetTimetable(assets=A & B))
    for key in ("grows", "never used again"):
        decided(ledger, A, partition_key=key)
    for _ in range(2):
        for _ in range(27):
            decided(other, A, partition_key="grows")
        decided(ledger, C)
    with ledger.transaction(NOW) as unit:
        assert unit.state.queues.is_read((1, "grows"))
        assert not unit.state.queues.is_read((1, "never used again"))


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


SMALL, LARGE = {}, {f"field {number}": "text" for number in range(200)}


def known_asset(number: int, extra: dict[str, str]) -> KnownAsset:
    known = KnownAsset()
    asset = Asset(f"s3://lake/{number}", extra={"number": number, **extra})
    known.names, known.described = (asset.name,), (f"group {number}", asset.extra)
    known.tokens = names.all_tokens(asset.uri, known.names, ())
    return known


def consumer_of(number: int, assets: int, extra: dict[str, str]) -> Consumer:
    many = [Asset(f"s3://lake/{number}/{each}", extra={"number": number, **extra}) for each in range(assets)]
    options = declaration_from_text(declared(many)).options
    assert options.wanted_tokens
    return Consumer(number, f"flow/{number}", uuid4(), options)


@pytest.mark.parametrize(
    ("make", "weigh"),
    [
        pytest.param(lambda number: known_asset(number, SMALL), names._weight_of_asset, id="asset"),
        pytest.param(lambda number: known_asset(number, LARGE), names._weight_of_asset, id="asset with a large extra"),
        pytest.param(lambda number: consumer_of(number, 2, SMALL), names._weight_of_consumer, id="consumer"),
        pytest.param(
            lambda number: consumer_of(number, 100, SMALL), names._weight_of_consumer, id="consumer of many assets"
        ),
        pytest.param(
            lambda number: consumer_of(number, 2, LARGE), names._weight_of_consumer, id="consumer of large assets"
        ),
    ],
)
def test_an_entry_takes_about_as_many_bytes_as_it_counts(
    make: Callable[[int], Any], weigh: Callable[[Any], int]
) -> None:
    make(0)
    tracemalloc.start()
    try:
        # So many that what others remember meanwhile, such as caches, is little beside them.
        made = [make(number) for number in range(1, 51)]
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 2 < sum(map(weigh, made)) < taken * 4


def test_large_declarations_do_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = Kept[str, ConsumerOptions](100_000, weight_of_options)
    monkeypatch.setattr(rows, "_parsed", remembered)
    texts = [declared([Asset(f"s3://lake/{number}/{each}") for each in range(20)]) for number in range(50)]
    first = rows.options_from_text(texts[0])
    assert rows.options_from_text(texts[0]) is first
    for text in texts:
        rows.options_from_text(text)
    assert len([text for text in texts if remembered.find(text) is not None]) < 20
    assert rows.options_from_text(texts[0]) == first


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
