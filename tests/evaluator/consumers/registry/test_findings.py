"""What the registry finds beside refusals: cycles, flows that hardly ever run, deployments left behind, watchers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from assetflow import AssetWatcher, Eager, OnMissing
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.freshness_schedules import Lazy
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.core.wire.deployments import Deployed
from assetflow.evaluator.consumers.reconcile import seldom_run
from assetflow.evaluator.consumers.registry import Registry, left_behind
from assetflow.watchers import FileTrigger
from tests.evaluator.consumers.registry.fake_prefect import A, B, C, FakePrefect, declaration
from tests.evaluator.ledgers import LedgerHere


async def test_cycles_are_told_once(prefect: FakePrefect, registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    prefect.deploy(1, A, B)
    prefect.deploy(2, B | C, A)
    await registry.sync()
    prefect.deploy(3, C)
    await registry.sync()
    (cycle,) = registry.report.cycles
    assert str(cycle).endswith("flow/d1 → s3://lake/b → flow/d2 → s3://lake/a → flow/d1")
    assert caplog.text.count("its own runs") == 1


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


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
DECLARATION = FlowDeclaration(ConsumerOptions(to_schedule(A)))
TEXT = declaration_to_text(DECLARATION)
OLD = Deployed(UUID(int=1), "report/old", UUID(int=9), NOON, "flows.py:report", NOON, False, TEXT, DECLARATION)
NEW = replace(OLD, id=UUID(int=2), name="report/new", created=LATER, updated=LATER)


def test_the_one_that_the_later_deploy_left_out_has_a_note_that_says_how_to_end_it() -> None:
    ((name, words),) = left_behind([OLD, NEW]).items()
    assert name == "report/old"
    assert words.startswith("report/old runs beside report/new")
    assert "`prefect deployment delete 'report/old'`" in words


@pytest.mark.parametrize(
    "change",
    [
        {"updated": LATER},
        {"entrypoint": "flows.py:other"},
        {"entrypoint": ""},
        {"parameters": '{"shop":1}'},
        {"text": "another"},
        {"declaration": None},
        {"created": None},
    ],
)
def test_two_that_differ_or_are_deployed_together_have_none(change: dict[str, object]) -> None:
    assert left_behind([replace(OLD, **change), NEW]) == {}


HERE, THERE = (
    Asset("s3://lake/watched", watchers=[AssetWatcher("w", FileTrigger(path))]) for path in ("/here/*", "/there/*")
)


async def test_rule_10_1_a_second_trigger_of_a_name_is_refused_until_both_agree(
    prefect: FakePrefect, ledger: LedgerHere, registry: Registry
) -> None:
    prefect.deploy(1, HERE)
    await registry.sync()
    second = prefect.deploy(2, THERE)
    await registry.sync()
    (problem,) = registry.report.problems.values()
    assert "'w' is files /here/* in deployment 'flow/d1', and files /there/* here" in str(problem)
    assert [each.consumer.name for each in ledger.reader.consumers.all()] == ["flow/d1"]
    prefect.deploy(1, THERE)
    await registry.sync()
    assert registry.report.problems == {}
    assert second in {each.consumer.deployment_id for each in ledger.reader.consumers.all()}
