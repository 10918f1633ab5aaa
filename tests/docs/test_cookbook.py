"""The recipes of docs/cookbook.md do what the page says."""

from collections.abc import Iterable
from typing import Any

import pytest

from assetflow import simulate
from assetflow.testing import Harness
from tests.docs.pieces import Piece


def runs(flow: object, steps: Iterable[Any]) -> list[tuple[str, int]]:
    """Return when the flow would run, and with how many updates."""
    answer: dict[str, Any] = simulate([flow], list(steps))
    return [(run["at"], len(run["events"])) for run in answer["runs"]]


def at(moment: str, asset: Any = None) -> dict[str, Any]:
    return {"at": moment, **({"tick": True} if asset is None else {"event": asset})}


@pytest.mark.prefect
def test_a_landing_zone(h: Harness, piece: Piece) -> None:
    """tests/watching/kinds/test_s3.py lets such a trigger watch moto's S3."""
    page = piece("docs/cookbook.md")
    loaded: list[str] = []
    page.load = lambda *, path: loaded.append(path)
    h.deploy(page.ingest)
    for day in ("2026-01-01", "2026-01-02"):
        h.file("landing", f"date={day}/a.json")
    assert [run.partition_key for run in h.settle().runs(page.ingest)] == ["2026-01-01", "2026-01-02"]
    assert [path.partition("landing/")[2] for path in loaded] == ["date=2026-01-01/a.json", "date=2026-01-02/a.json"]


def test_a_month_close(piece: Piece) -> None:
    page = piece("docs/cookbook.md", 2)
    books = [page.ledger, page.bank, page.payroll]
    assert runs(page.close, [at("2026-01-01T20:00:00Z", each) for each in books] + [at("2026-01-02T12:00:00Z")]) == [
        ("2026-01-02T05:00:00Z", 3)
    ]
    assert runs(page.close, [at("2026-01-01T20:00:00Z", page.bank), at("2026-01-03T18:00:00Z")]) == [
        ("2026-01-03T17:00:00Z", 1)
    ]


def test_small_files_in_batches(piece: Piece) -> None:
    page = piece("docs/cookbook.md", 8)
    few = [*([page.drops] * 3), {"advance": 300}]
    assert [number for _, number in runs(page.load_batch, few)] == [3]
