"""The pieces of docs/migration.md that are marked `after` are programs, and their schedules are what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from assetflow import AssetFlow

PAGE = (Path(__file__).parents[2] / "docs" / "migration.md").read_text()
AFTER = re.findall(r"^```python after\n(.*?)^```", PAGE, re.M | re.S)
SCHEDULES = {
    "never by itself",
    "s3://shop/orders",
    "s3://shop/orders AND s3://shop/customers",
    "alias latest-orders",
    "s3://shop/orders, or at 00:00 every day (Europe/Berlin)",
    "orders",
}


def run(piece: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "migration"}
    exec(compile(piece, "migration.md", "exec"), names)
    return names


@pytest.mark.parametrize("piece", AFTER, ids=range(len(AFTER)))
def test_a_piece_is_a_program(piece: str) -> None:
    run(piece)


def test_the_schedules_of_the_page() -> None:
    flows = [each for piece in AFTER for each in run(piece).values() if isinstance(each, AssetFlow)]
    assert {flow.schedule.describe() for flow in flows} == SCHEDULES
