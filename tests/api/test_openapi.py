"""The OpenAPI document, tried out: no failure and no undocumented answer, whatever is sent."""

from __future__ import annotations

import pytest

from assetflow.core.assets import AssetAlias
from assetflow.ledger import Ledger
from tests.api.conftest import Api
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, update

pytestmark = pytest.mark.timeout(300)


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
    # Schemathesis takes seconds to import, in each process that only collects this test.
    from tests.api.schema_calls import call_everything

    call_everything(api.get("/api/openapi.json").json(), str(api.base_url).rstrip("/"))
