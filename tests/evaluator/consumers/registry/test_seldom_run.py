"""Flows that hardly ever run are found and logged: Lazy ones that no policy pulls, Eager ones without inputs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from assetflow import Eager, OnMissing
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.freshness_schedules import Lazy
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire import FlowDeclaration
from assetflow.evaluator.consumers.reconcile import seldom_run
from assetflow.evaluator.consumers.registry import Registry
from tests.evaluator.consumers.registry.fake_prefect import A, B, C, FakePrefect, declaration

FRESH = Asset(C.uri, freshness=FreshnessPolicy(timedelta(hours=1)))
LAZY = Lazy().as_schedule()


def names(declarations: dict[str, FlowDeclaration]) -> list[str]:
    return list(seldom_run(declarations))


def flow(schedule: Schedule, reads: Sequence[Asset], makes: Sequence[Asset]) -> FlowDeclaration:
    return FlowDeclaration(ConsumerOptions(schedule), tuple(makes), tuple(reads))


def test_8_14_a_policy_below_pulls_through_lazy_flows() -> None:
    declarations = {
        "above": flow(LAZY, [A], [B]),
        "below": flow(LAZY, [B], [FRESH]),
        "alone": flow(LAZY, [A], [Asset("s3://lake/alone")]),
        "plain": declaration(A),
    }
    assert names(declarations) == ["alone"]


def test_8_14_a_policy_of_a_flow_that_is_scheduled_otherwise_pulls_nobody() -> None:
    assert names({"above": flow(LAZY, [A], [B]), "below": flow(Schedule(B), [B], [FRESH])}) == ["above"]


def test_8_4_an_eager_flow_that_reads_nothing_runs_once() -> None:
    eager, on_missing = Eager().as_schedule(), OnMissing().as_schedule()
    declarations = {
        "root": flow(eager, [], [A]),
        "named": flow(Eager(A).as_schedule(), [], [B]),
        "reads": flow(eager, [A], [FRESH]),
        "once": flow(on_missing, [], [Asset("s3://lake/once")]),
    }
    (words,) = seldom_run(declarations).values()
    assert words.startswith("root is Eager and reads nothing: it runs once, and after new code")


async def test_8_14_the_log_warns_once(
    prefect: FakePrefect, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    prefect.deploy(1, Lazy(), A)
    await registry.sync()
    prefect.deploy(2, C)
    await registry.sync()
    assert len(registry.report.warnings) == 1
    assert caplog.text.count("is Lazy and never runs") == 1
