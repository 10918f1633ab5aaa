"""Every parameter of Airflow's lists, on SQLite and on Postgres, with what a client may send: never a failure."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from assetflow.core.values.assets import AssetAlias
from assetflow.core.values.events import Origin, SourceFlowRun, SourceTaskRun
from assetflow.ledger import Ledger
from tests.api.conftest import Api
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id, update
from tests.environment.postgres import new_database

TEXTS = ("", "a\x00b", "%", "\\", "'", "a|b", "é\u202e", "x" * 2000, "orders", "report.nightly", "load", "-name", "id")
NUMBERS = ("-1", "0", "1.5", "NaN", "9223372036854775807", "9223372036854775808", "9" * 400)
TIMES = ("0001-01-01T00:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-01", "noon")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with something of everything, first on SQLite and then on Postgres."""
    with ExitStack() as opened:
        place = opened.enter_context(new_database()) if request.param == "postgres" else tmp_path / "ledger.db"
        ledger = opened.enter_context(Ledger.open(place, now=NOON))
        fill(ledger)
        yield ledger


def fill(ledger: Ledger) -> None:
    deploy(ledger, "report/nightly", ORDERS & CUSTOMERS)
    deploy(ledger, "late/nightly", AssetAlias("late"), produces=(CUSTOMERS,))
    deploy(ledger, "daily/nightly", ROLLED_UP)
    run = SourceFlowRun(event_id(0), "run", flow_name="copy", deployment_name="nightly")
    update(ledger, ORDERS, 1, aliases=("late", "a" * 200))
    update(ledger, HOURLY, 2, "2026-01-01T00:00:00")
    for minute, task in enumerate(("", "a", "load-abc"), 3):
        origin = Origin("task", flow_run=run, task_run=SourceTaskRun(event_id(100 + minute), task))
        update(ledger, CUSTOMERS, minute, origin=origin)


def calls(document: Any, where: str) -> Iterator[str]:
    """Yield the addresses of Airflow's GETs, each with one value, in its path or query, that a client made up."""
    for path, operations in document["paths"].items():
        given = operations.get("get", {}).get("parameters", []) if path.startswith("/api/v2") else []
        good = {each["name"]: str((each["schema"].get("examples") or ["1"])[0]) for each in given}
        for each in (each for each in given if each["in"] == where):
            for value in made_up(str(each["schema"])):
                if where == "path":
                    yield filled(path, good | {each["name"]: value})
                else:
                    yield f"{filled(path, good)}?{each['name']}={quote(value, safe='')}"


def made_up(schema: str) -> tuple[str, ...]:
    if "'integer'" in schema:
        return NUMBERS
    return TIMES if "date-time" in schema else TEXTS


def filled(path: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


@pytest.mark.parametrize("where", ["path", "query"])
def test_no_value_of_a_parameter_makes_a_failure(api: Api, where: str) -> None:
    failed: list[str] = []
    addresses = list(calls(api.get("/api/openapi.json").json(), where))
    assert len(addresses) > 50
    for address in addresses:
        answer = api.get(address)
        if answer.status_code >= 500 or (answer.status_code >= 400 and not answer.json()["fix"]):
            failed.append(f"{address[:150]}: {answer.text}")
    assert not failed, "\n".join(failed)
