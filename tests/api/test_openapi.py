"""The OpenAPI document, tried out: no failure and no undocumented answer, whatever is sent."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from assetflow.core.assets import AssetAlias
from assetflow.ledger import Ledger
from tests.api.conftest import Api
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, update

pytestmark = pytest.mark.timeout(300)


def no_failure(_context: Any, response: Any, _case: Any) -> None:
    """503 is an answer (no evaluator, no Prefect); a failure of ours is 500."""
    assert response.status_code != 500, response.text


CHECKS = [
    no_failure,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 5


def test_every_operation_is_documented_with_its_problems(api: Api) -> None:
    document = api.get("/api/openapi.json").json()
    operations = [each for path in document["paths"].values() for each in path.values()]

    assert len(operations) > 45
    for operation in operations:
        assert operation["summary"]
        assert operation["description"]
        problems = {
            status for status, each in operation["responses"].items() if "application/problem+json" in str(each)
        }
        assert {"400", "401", "403"} <= problems
    assert "example" in str(document["components"]["schemas"]["EventIn"])
    assert "HTTPValidationError" not in str(document)


@pytest.mark.long
def test_no_failure_and_no_undocumented_answer(api: Api, ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "late/nightly", AssetAlias("late"), produces=(CUSTOMERS,))
    deploy(ledger, "daily/nightly", ROLLED_UP)
    update(ledger, ORDERS, 1, aliases=("late",))
    update(ledger, HOURLY, 2, "2026-01-01T00:00:00")
    ledger.writer.events.refuse({"x": 1}, "no URI", "2.2", "api", None, NOON)
    schema = schemathesis.openapi.from_dict(api.get("/api/openapi.json").json())
    url = str(api.base_url).rstrip("/")
    for result in schema.get_all_operations():
        operation = cast("Any", result).ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.POSITIVE or list(operation.iter_parameters()) or operation.body:
                _try(operation, mode, url)


def _try(operation: Any, mode: GenerationMode, url: str) -> None:
    modest = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )

    @modest
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        case.call_and_validate(base_url=url, checks=CHECKS)

    # What an operation cannot be called with wrongly is no failure.
    with suppress(Unsatisfiable):
        call()
