"""docs/metrics.md has each metric, and no others."""

from __future__ import annotations

import re

from tests.docs.pieces import ROOT

CODE = ("api/v1/health.py", "evaluator/runs/launch.py")


def test_each_metric_is_listed() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    table = page.partition("| metric | meaning |")[2].partition("\n\n")[0]
    listed = {name.removesuffix("_total") for name in re.findall(r"`(assetflow_\w+)", table)}
    code = "".join((ROOT / "assetflow" / file).read_text(encoding="utf-8") for file in CODE)
    assert listed == set(re.findall(r'"(assetflow_\w+)"', code))
