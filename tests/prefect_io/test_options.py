"""The typed options are Prefect's, neither more nor fewer."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from prefect import Flow, Task

from assetflow.prefect_io.options import PrefectFlowOptions, PrefectTaskOptions


@pytest.mark.parametrize(("options", "made"), [(PrefectFlowOptions, Flow), (PrefectTaskOptions, Task)])
def test_the_options_are_those_of_prefect(options: Any, made: type[Flow[..., Any] | Task[..., Any]]) -> None:
    assert set(options.__annotations__) == {*inspect.signature(made).parameters} - {"fn"}
