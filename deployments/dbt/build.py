"""Plain Prefect: build the dbt project, without assetflow. `uv run --isolated --only-group dbt python build.py`."""

from __future__ import annotations

from pathlib import Path

from prefect import flow
from prefect_dbt import PrefectDbtRunner, PrefectDbtSettings  # pyright: ignore[reportMissingImports]

PROJECT = Path(__file__).with_name("project")


@flow
def build() -> None:
    """Build and test all models. prefect-dbt tells Prefect of each model, and the flow fails if one fails."""
    PrefectDbtRunner(settings=PrefectDbtSettings(project_dir=PROJECT, profiles_dir=PROJECT)).invoke(["build"])


if __name__ == "__main__":
    build()
