"""The flows of docs/conditions.md do what the page says; `test_pieces.py` runs the two tests that the page shows."""

from __future__ import annotations

from typing import Any

import pytest

from assetflow import simulate
from tests.docs.pieces import Piece


@pytest.fixture
def page(piece: Piece) -> Any:
    return piece("docs/conditions.md")


def runs(flow: object, *steps: tuple[str, Any]) -> list[tuple[str, int]]:
    """Return when the flow would run, and with how many updates; a step without an asset lets time pass."""
    given = [{"at": at, **({"tick": True} if asset is None else {"event": asset})} for at, asset in steps]
    answer: dict[str, Any] = simulate([flow], given)
    return [(run["at"], len(run["events"])) for run in answer["runs"]]


def test_what_belongs_to_one_day(page: Any) -> None:
    """Midnight in Berlin passes between the first orders and the customers."""
    steps = [
        ("2026-01-01T22:30:00Z", page.orders),
        ("2026-01-01T23:30:00Z", page.customers),
        ("2026-01-02T01:00:00Z", page.orders),
    ]
    assert runs(page.of_one_day, *steps) == [("2026-01-02T01:00:00Z", 2)]


def test_two_of_three_and_three_prices(page: Any) -> None:
    answer: dict[str, Any] = simulate(
        [page.two_regions], [page.north, page.prices, page.prices, page.prices, page.west]
    )
    assert [(run["step"], len(run["events"])) for run in answer["runs"]] == [(4, 5)]


def test_it_waits_until_it_is_quiet(page: Any) -> None:
    steps = [
        ("2026-01-01T00:00:00Z", page.orders),
        ("2026-01-01T00:05:00Z", page.orders),
        ("2026-01-01T01:00:00Z", None),
    ]
    assert runs(page.when_quiet, *steps) == [("2026-01-01T00:15:00Z", 2)]


def test_files_in_batches(page: Any) -> None:
    """After `max_wait`, three will do instead of a hundred."""
    steps = [(f"2026-01-01T00:0{minute}:00Z", page.files) for minute in range(3)]
    assert runs(page.batches, *steps, ("2026-01-01T01:00:00Z", None)) == [("2026-01-01T00:05:00Z", 3)]


def test_no_run_is_lost_in_a_cooldown(page: Any) -> None:
    steps = [(f"2026-01-01T00:0{minute}:00Z", page.orders) for minute in range(3)]
    expected = [("2026-01-01T00:00:00Z", 1), ("2026-01-01T00:30:00Z", 2)]
    assert runs(page.now_and_then, *steps, ("2026-01-01T01:00:00Z", None)) == expected


def test_files_one_by_one(page: Any) -> None:
    end = {"finish": "one-by-one"}
    answer: dict[str, Any] = simulate([page.one_by_one], [page.files, page.files, page.files, end, end, end])
    assert [(run["step"], len(run["events"])) for run in answer["runs"]] == [(0, 1), (3, 1), (4, 1)]
