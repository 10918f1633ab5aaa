"""Plain Prefect: a flow whose task makes one asset of another. `python materializing.py MADE READ [fail]`."""

from __future__ import annotations

import sys

from prefect import flow
from prefect.assets import materialize

_, made, read, *how = sys.argv


@materialize(made, asset_deps=[read], by="dbt")
def model() -> None:
    if how:
        raise RuntimeError("the model is broken")


@flow
def plain() -> None:
    model()


if __name__ == "__main__":
    plain()
