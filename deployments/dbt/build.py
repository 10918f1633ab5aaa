"""Plain Prefect: serve the build of the dbt project. `uv run --isolated --only-group dbt python build.py`."""

from __future__ import annotations

import os
from pathlib import Path

from prefect import flow
from prefect_dbt import PrefectDbtRunner, PrefectDbtSettings  # pyright: ignore[reportMissingImports]

PROJECT = Path(__file__).with_name("project")
LAKE = Path(os.environ["SHOP_HOME"])
os.environ |= {"DBT_TARGET_PATH": str(LAKE / "target"), "DBT_LOG_PATH": str(LAKE / "logs")}


@flow
def build() -> None:
    """Build and test all models. prefect-dbt tells Prefect of each model; a failed model or test fails the flow."""
    PrefectDbtRunner(settings=PrefectDbtSettings(project_dir=PROJECT, profiles_dir=PROJECT)).invoke(["build"])


if __name__ == "__main__":
    build.serve(name="dbt")
