"""`import assetflow`: quick, without Spark, and every name that it promises is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import assetflow


@pytest.mark.parametrize("name", assetflow.__all__)
def test_each_name_is_there(name: str) -> None:
    assert getattr(assetflow, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        assetflow.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_importing_it_imports_neither_prefect_nor_spark() -> None:
    code = "import sys, assetflow; print([n for n in ('prefect', 'pyspark', 'sqlalchemy') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_flows_and_tasks_need_no_spark() -> None:
    code = "import sys; from assetflow import *; print('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
