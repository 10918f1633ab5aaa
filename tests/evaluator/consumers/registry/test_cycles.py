"""Flows that are scheduled on what they produce are found and logged."""

from __future__ import annotations

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.evaluator.consumers.reconcile import find_cycles
from assetflow.evaluator.consumers.registry import Registry
from tests.evaluator.consumers.registry.fake_prefect import A, B, C, FakePrefect, declaration


async def test_cycles_are_logged_once(
    prefect: FakePrefect, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    prefect.deploy(1, A, B)
    prefect.deploy(2, B | C, A)
    await registry.sync()
    prefect.deploy(3, C)
    await registry.sync()
    (cycle,) = registry.report.cycles
    assert str(cycle).endswith("flow/d1 → s3://lake/b → flow/d2 → s3://lake/a → flow/d1")
    assert caplog.text.count("its own runs") == 1


def test_all_cycles_are_found_and_names_count_as_their_uris() -> None:
    declarations = {
        "self": declaration(A, A),
        "by-name": declaration(Asset.ref(name="bee"), Asset("s3://lake/b", name="bee")),
        "fine": declaration(A & B, C),
    }
    found = find_cycles(declarations)
    assert [each.path for each in found] == [
        ("by-name", Token("uri", B.uri), "by-name"),
        ("self", Token("uri", A.uri), "self"),
    ]
    assert find_cycles({"fine": declaration(A & B, C), "next": declaration(C)}) == []
