"""The schedules of docs/migration.md are what the page says; `test_pieces.py` runs its flows and tasks."""

import re
from pathlib import Path

from assetflow.types import AssetFlow
from tests.docs.pieces import ROOT, imported, pieces

SCHEDULES = {
    "only when a person, a backfill or Prefect starts it",
    "s3://shop/files",
    "s3://shop/orders AND s3://shop/customers",
    "s3://shop/orders OR s3://shop/sales",
    "alias latest-orders",
}


def test_the_schedules_of_the_page(tmp_path: Path) -> None:
    found: set[str] = set()
    for piece in pieces("docs/migration.md"):
        with imported(piece, tmp_path) as module:
            flows = [each for each in vars(module).values() if isinstance(each, AssetFlow)]
        found |= {flow.schedule.describe() for flow in flows}
    assert found == SCHEDULES


def test_a_piece_is_marked_before_or_after() -> None:
    marks = re.findall(r"^```python(.*)$", (ROOT / "docs" / "migration.md").read_text(), re.M)
    assert set(marks) == {" {.before}", " {.after}"}
