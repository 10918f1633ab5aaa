"""The typed options are Prefect's, neither more nor fewer."""

from __future__ import annotations

import inspect

from prefect import Flow

from assetflow.authoring.schedule_options import PrefectFlowOptions


def test_the_options_of_flows_are_those_of_prefect() -> None:
    assert set(PrefectFlowOptions.__annotations__) == {*inspect.signature(Flow).parameters} - {"fn"}
