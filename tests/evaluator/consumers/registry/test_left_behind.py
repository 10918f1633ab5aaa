"""A deployment that stays beside the one that it was renamed to: a note, and never an error."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.core.wire.deployments import Deployed
from assetflow.evaluator.consumers.registry import Registry, left_behind
from tests.evaluator.consumers.registry.fake_prefect import START, A, B, FakePrefect
from tests.evaluator.ledgers import LedgerHere

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


async def test_the_note_goes_with_the_deployment(
    prefect: FakePrefect, registry: Registry, ledger: LedgerHere, caplog: pytest.LogCaptureFixture
) -> None:
    prefect.deploy(1, A, entrypoint="flows.py:report", created=START.isoformat())
    await registry.sync()
    later = (START + timedelta(hours=1)).isoformat()
    prefect.deploy(2, A, entrypoint="flows.py:report", created=later)
    await registry.sync()
    assert list(ledger.reader.notes()) == ["flow/d1"]
    assert caplog.text.count("flow/d1 runs beside flow/d2") == 1
    prefect.rows["deployments"].pop(str(UUID(int=1)))
    prefect.deploy(3, B)
    await registry.sync()
    assert ledger.reader.notes() == {}
