"""docs/api.md has each operation of `/api/v1`, and docs/metrics.md each metric; neither has others."""

from __future__ import annotations

import re

from assetflow.api.app import create_app
from assetflow.api.requests import Backend
from assetflow.ledger import Ledger
from tests.docs.pieces import ROOT

# Airflow 2's paths are served under both roots.
OF_AIRFLOW = re.compile(r"/queuedEvent")
TABLE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8").partition("### Recording")[0]
CODE = ("api/metrics.py", "evaluator/runs/launch.py")


def words(path: str) -> list[str]:
    """Return the parts of a path that are no parameters."""
    return [part for part in path.split("/") if part and "{" not in part]


def named() -> list[str]:
    """Return what the first column of the table has in code, with each path as it is written there."""
    rows = re.findall(r"^\| (`.+?`) \| ", TABLE, re.M)
    return [path.partition("?")[0] for row in rows for path in re.findall(r"`(?:[A-Z]+ )?([/…][^`]*)`", row)]


def test_each_operation_is_listed_and_each_listed_path_is_there(ledger: Ledger) -> None:
    paths = [path.removeprefix("/api/v1") for path in create_app(Backend(ledger)).openapi()["paths"]]
    ours = [path for path in paths if not path.startswith(("/api/", "/hooks/")) and not OF_AIRFLOW.search(path)]
    last = {(words(path) or [""])[-1] for path in ours}
    listed = {word for path in named() for word in words(path.replace("…", ""))}
    assert last - listed == set()
    assert {word for path in named() for word in words(path.replace("…", ""))[-1:]} - {
        word for path in ours for word in words(path)
    } == set()


def test_each_metric_is_listed() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    table = page.partition("| metric | meaning |")[2].partition("\n\n")[0]
    listed = {name.removesuffix("_total") for name in re.findall(r"`(assetflow_\w+)", table)}
    code = "".join((ROOT / "assetflow" / file).read_text(encoding="utf-8") for file in CODE)
    assert listed == set(re.findall(r'"(assetflow_\w+)"', code))
