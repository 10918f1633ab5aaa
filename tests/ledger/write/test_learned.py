"""What Prefect's events tell of deployments is in the lineage, and binds nobody. Contract 2.9."""

from __future__ import annotations

from uuid import uuid4

import pytest

from assetflow import Eager
from assetflow.core.graph.lineage import Learned, Node
from assetflow.ledger import Ledger
from tests.ledger.making import NOW, A, B, C, deploy, deploy_maker
from tests.ledger.read.test_ended_runs import ended

DBT = Learned(uuid4(), "dbt/nightly", (B,), (A,))


@pytest.mark.rule("2.9")
def test_learned_makers_are_in_the_lineage_until_they_are_deleted(ledger: Ledger) -> None:
    lineage = ledger.writer.lineage
    for _ in range(2):
        lineage.learn(DBT, NOW)
    edges = ledger.reader.lineage.edges_of([Node("flow", "dbt/nightly")])
    assert [(each.source.value, each.target.value) for each in edges] == [
        (A.uri, "dbt/nightly"),
        ("dbt/nightly", B.uri),
    ]
    assert ledger.reader.assets.get(uri=A.uri) is not None
    ledger.writer.consumers.forget(DBT.deployment_id, NOW)
    assert ledger.reader.lineage.edges_of([Node("flow", "dbt/nightly")]) == []


@pytest.mark.rule("2.9")
def test_rule_4_8_a_failed_run_of_a_learned_maker_is_one_of_a_failed_maker(ledger: Ledger) -> None:
    failed = ended(DBT.deployment_id, 1)
    assert ledger.writer.ended_runs.add([failed], NOW) == 0
    ledger.writer.lineage.learn(DBT, NOW)
    assert ledger.writer.ended_runs.add([failed], NOW) == 1
    assert [run.flow for run in ledger.reader.ended_runs.failed_makers([B.uri])] == ["dbt/nightly"]


@pytest.mark.rule("2.9")
def test_what_was_learned_refuses_no_deploy_and_leaves_a_source(ledger: Ledger) -> None:
    """An Eager flow makes A from B, and dbt makes B from A: nobody declared the circle. Contract 8.10."""
    ledger.writer.lineage.learn(DBT, NOW)
    deploy_maker(ledger, Eager(), [A], [B], "flow/eager")
    with ledger.transaction(NOW) as unit:
        assert not unit.state.is_made(B.uri)
        assert not unit.state.is_declared(C.uri, besides=uuid4())


def test_a_deploy_keeps_what_was_learned(ledger: Ledger) -> None:
    consumer = deploy(ledger, A, "dbt/nightly", DBT.deployment_id)
    ledger.writer.lineage.learn(DBT, NOW)
    deploy(ledger, C, "dbt/nightly", consumer.deployment_id)
    assert len(ledger.reader.lineage.declared()) == 2
