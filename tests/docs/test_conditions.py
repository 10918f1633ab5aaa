"""The flows of docs/conditions.md do what the page says; `test_pieces.py` runs the two tests that the page shows."""

from __future__ import annotations

from datetime import timedelta
from types import ModuleType

import pytest

from assetflow.testing import Harness
from tests.docs.pieces import Piece

pytestmark = pytest.mark.prefect


@pytest.fixture
def page(piece: Piece) -> ModuleType:
    return piece("docs/conditions.md")


def test_what_belongs_to_one_day(h: Harness, page: ModuleType) -> None:
    h.deploy(page.of_one_day)
    h.emit(page.orders)
    h.advance(timedelta(days=1))  # midnight in Berlin passes: these orders belong to no customers
    h.emit(page.customers)
    assert h.settle().runs(page.of_one_day) == []
    h.emit(page.orders)
    (run,) = h.settle().runs(page.of_one_day)
    assert run.uris == ["customers", "orders"]


def test_two_of_three_and_three_prices(h: Harness, page: ModuleType) -> None:
    h.deploy(page.two_regions)
    h.emit(page.north)
    for _ in range(3):
        h.emit(page.prices)
    assert h.settle().runs(page.two_regions) == []
    h.emit(page.west)
    (run,) = h.settle().runs(page.two_regions)
    assert len(run.events) == 5


def test_it_waits_until_it_is_quiet(h: Harness, page: ModuleType) -> None:
    h.deploy(page.when_quiet)
    h.emit(page.orders)
    h.advance(timedelta(minutes=5))
    h.emit(page.orders)
    assert h.advance(timedelta(minutes=5)).runs(page.when_quiet) == []
    (run,) = h.advance(timedelta(minutes=5)).runs(page.when_quiet)
    assert len(run.events) == 2


def test_files_one_by_one_and_in_batches(h: Harness, page: ModuleType) -> None:
    h.deploy(page.one_by_one)
    h.deploy(page.batches)
    for _ in range(3):
        h.emit(page.files)
    assert [len(run.events) for run in h.settle().runs(page.one_by_one)] == [1, 1, 1]
    assert h.runs(page.batches) == []
    (run,) = h.advance(timedelta(minutes=5)).runs(page.batches)  # max_wait: three instead of a hundred
    assert len(run.events) == 3


def test_no_run_is_lost_in_a_cooldown(h: Harness, page: ModuleType) -> None:
    h.deploy(page.now_and_then)
    for _ in range(3):
        h.emit(page.orders)
    assert len(h.settle().runs(page.now_and_then)) == 1
    first, second = h.advance(timedelta(minutes=30)).runs(page.now_and_then)
    assert (len(first.events), len(second.events)) == (1, 2)
