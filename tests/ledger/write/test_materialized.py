"""Which updates are still to be told to Prefect, also after a restart and in a rebuilt ledger. Contract 2.10."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin, SourceFlowRun, SourceTaskRun
from assetflow.ledger import Ledger
from assetflow.ledger.write.materialized import MaterializedWriter
from tests.ledger.making import NOW, A, B, C, deploy_maker, update

TASK = Origin("task", SourceTaskRun(uuid4()))


def outbox(ledger: Ledger) -> MaterializedWriter:
    """Return the outbox as another process has it."""
    return MaterializedWriter(ledger.writer.materialized._store)


def numbers(of: MaterializedWriter, limit: int = 10) -> list[tuple[int, bool]]:
    return [(each.number, each.posted is not None) for each in of.to_tell(limit)]


def record(ledger: Ledger, *assets: Asset, minute: int = 0, origin: Origin = TASK) -> None:
    for asset in assets:
        ledger.writer.events.record([update(asset, origin=origin)], NOW + timedelta(minutes=minute))


@pytest.mark.rule("2.10")
def test_updates_by_tasks_are_told_until_the_log_has_them(ledger: Ledger) -> None:
    told = outbox(ledger)
    assert numbers(told) == []
    record(ledger, A, B, C)
    record(ledger, A, origin=Origin("prefect", TASK.task_run))
    assert numbers(told, 2) == [(1, False), (2, False)]
    told.posted([1, 2], NOW)
    told.stored([2], NOW)
    assert numbers(told) == [(1, True), (3, False)]
    assert numbers(outbox(ledger)) == [(1, True), (2, True), (3, False)]
    told.stored([1], NOW)
    assert numbers(outbox(ledger)) == [(3, False)]


@pytest.mark.rule("2.10")
def test_a_ledger_that_knows_no_place_asks_the_log_first(ledger: Ledger) -> None:
    record(ledger, A, B)
    told = outbox(ledger)
    assert numbers(told) == [(1, True), (2, True)]
    record(ledger, C)
    assert numbers(told)[2:] == [(3, False)]


def test_what_is_a_day_old_is_given_up(ledger: Ledger) -> None:
    told = outbox(ledger)
    numbers(told)
    record(ledger, A)
    numbers(told)
    record(ledger, B, minute=25 * 60)
    assert numbers(told) == [(2, False)]


def test_the_inlets_of_the_deployment_go_along(ledger: Ledger) -> None:
    maker = deploy_maker(ledger, None, [B], [A], "maker/daily")
    run = SourceFlowRun(uuid4(), deployment_id=maker.deployment_id)
    record(ledger, B, origin=Origin("task", TASK.task_run, run))
    assert [each.inputs for each in outbox(ledger).to_tell(10)] == [(A.uri,)]
