"""What `assetflow dev` says once everything runs."""

from __future__ import annotations

from pathlib import Path

from assetflow.cli.stacks import _instructions
from assetflow.stack.environment import StackEnvironment


def test_dev_names_what_the_project_no_longer_deploys(tmp_path: Path) -> None:
    environment = StackEnvironment(tmp_path, tmp_path / "home", 4200, 4300)
    deployed, consumers = ["report/shop", "land/shop"], {"report/shop", "old/shop"}

    said = _instructions(environment, deployed, consumers).plain

    assert "prefect deployment run land/shop" in said
    assert "The project no longer deploys old/shop: assetflow consumers prune" in said
    assert "no longer" not in _instructions(environment, deployed, {"report/shop"}).plain
