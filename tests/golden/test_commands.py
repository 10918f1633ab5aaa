"""What every command prints, on one small ledger, at one instant, with numbered ids: `--json`, and in a terminal."""

import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import cyclopts
import httpx
import pytest
import respx
from pydantic_core import CoreSchema, core_schema

from assetflow.cli import run
from assetflow.cli.app import app
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.watchers import AssetWatcher
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from assetflow.watchers import FileTrigger
from tests.cli.conftest import API_URL, screen_of
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, update
from tests.environment.prefect_settings import prefect_at
from tests.golden import agrees
from tests.ledger.read.test_ended_runs import ended
from tests.ledger.write.test_kept import CORE, RAW, Place, kept

BOARD = Asset("s3://lake/board", freshness=FreshnessPolicy(timedelta(hours=1)))
NOW = NOON + timedelta(hours=2)

# In this order: what changes the ledger comes last.
CALLS = """
version
status
assets ls
assets show orders
assets checks orders
assets status
assets status s3://lake/board
backfill s3://lake/core+ --dry-run
backfill ls
consumers ls
consumers refused
consumers show report/daily
database check
database upgrade
deadlines ls
decisions ls
decisions show 1
events ls
events ls --refused
events show 1
explain report/daily
explain --asset s3://lake/core
explain --event 1
freshness
lineage orders
partitions ls rolled/up
partitions gaps hourly --from 2026-01-01 --to 2026-01-01
plan
queue ls
queue ls report/daily
runs ls
trace s3://lake/raw
trace orders
runs ls --running
runs show 00000000-0000-0000-0000-000000000007
watchers ls
watchers show drops
simulate tests/conformance/cases/basic.json
observe s3://lake/seen v1
emit s3://lake/orders --dry-run
emit s3://lake/orders
retry core/shop
backfill rolled/up --from 2026-01-01 --to 2026-01-01 --dry-run
backfill s3://lake/core+
backfill ls
backfill show 1
backfill stop 1
backfill resume 1
decisions give-up 1 --why broken
queue replay 1
queue rm report/daily --why test
assets hide s3://lake/seen
assets unhide s3://lake/seen
database prune --older-than 90d --dry-run
""".strip().splitlines()
# One runs in a stack of its own, the other compares with a project (tests/stack/test_diffing.py).
ELSEWHERE = {"demo", "diff"}
# Versions of what is installed here.
INSTALLED = {"assetflow", "prefect", "python", "pyspark", "server"}


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a small ledger, in a process whose clock stands still and whose ids are numbered."""
    for module in commands().values():
        import_module(module)
    with monkeypatch.context() as patch, prefect_at(API_URL):
        patch.setenv("ASSETFLOW_HOME", str(tmp_path))
        patch.setenv("ASSETFLOW_RECORDING_TIMEOUT", "0.1")
        patch.setenv("USER", "ann")
        numbers = count(1)
        for name, module in sys.modules.copy().items():
            # The core asks no clock, and its formats are read by their types.
            if name.startswith("assetflow.core."):
                continue
            if name.startswith(("assetflow.", "tests.ledger.write.test_kept", "tests.cli.shop")):
                for attribute, value in (("datetime", Clock), ("uuid4", lambda: UUID(int=next(numbers)))):
                    if attribute in vars(module):
                        patch.setattr(module, attribute, value)
        with Ledger.open(tmp_path / "ledger.db", now=NOON) as ledger:
            fill(ledger)
        yield tmp_path


class StandingStill(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class Clock(datetime, metaclass=StandingStill):
    """The class `datetime`, at an instant."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return NOW.astimezone(tz)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        return core_schema.datetime_schema()


def fill(ledger: Ledger) -> None:
    ledger.writer.set_prefect_api_url(API_URL)
    deploy(ledger, "report/daily", ORDERS & CUSTOMERS, produces=(BOARD,))
    deploy(ledger, "rolled/up", ROLLED_UP)
    deploy(ledger, "quick/shop", ORDERS)
    drops = Asset("s3://lake/drops", watchers=[AssetWatcher("drops", FileTrigger("s3://drops/*.csv"))])
    declaration = declaration_to_text(FlowDeclaration(reads=(drops,)))
    ledger.writer.lineage.declare(uuid5(UUID(int=0), "ingest"), "ingest/hourly", declaration, NOON)
    update(ledger, ORDERS, 1, extra={"rows": 3}, metrics={"seconds": 2.5})
    update(ledger, HOURLY, 2, key="2026-01-01T05:00:00")
    update(ledger, CUSTOMERS, 3)
    ledger.writer.events.refuse({"x": 1}, "no URI", "2.2", "api", None, NOON)
    report = uuid5(UUID(int=0), "report/daily")
    failed = replace(ended(report, 4), flow_run_id=UUID(int=7), state_id=UUID(int=8))
    ledger.writer.ended_runs.add([failed], NOON)
    place = Place(ledger, NOON + timedelta(minutes=5))
    place.deploy("core/shop", kept([RAW], [CORE]))
    place.end(place.update(RAW)[0], "failed")
    update(ledger, ORDERS, 9)


def commands() -> dict[str, str]:
    """The commands with `--json`, each with the module that it comes from."""
    return {" ".join(path): of.__module__ for path, of in walk(app, ()) if "json" in inspect.signature(of).parameters}


def walk(group: cyclopts.App, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in (each for each in group if not each.startswith("-")):
        yield from walk(group[name], (*path, name))
    if group.default_command is not None:
        yield path, group.default_command


def test_every_command_is_here() -> None:
    called = {name for name in commands() for call in CALLS if call == name or call.startswith(f"{name} ")}
    assert set(commands()) - called == ELSEWHERE


@pytest.fixture
def prefect() -> Iterator[None]:
    """A Prefect that answers, and knows nothing."""
    with respx.mock(assert_all_called=False) as router:
        router.get(f"{API_URL}/csrf-token").respond(422, json={"detail": "CSRF protection is disabled."})
        router.post(f"{API_URL}/events/filter").respond(200, json={"events": [], "total": 0, "next_page": None})
        router.post(url__regex=r".*/filter").respond(200, json=[])
        router.post(url__regex=r".*/count").respond(200, json=0)
        router.get(url__regex=r".*/variables/.*").respond(200, json={"value": str(UUID(int=1))})
        router.route().mock(side_effect=httpx.ConnectError("nobody listens"))
        yield


@pytest.mark.usefixtures("there", "prefect")
def test_every_command_is_drawn_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for call in (*CALLS[:-1], "runs ls --plain", "consumers ls --wide"):
        screen = screen_of(50, monkeypatch)
        assert run(call.split()) in (0, 1), call
        assert screen.getvalue().strip(), call


@pytest.mark.usefixtures("prefect")
def test_the_json_of_every_command(there: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers: dict[str, list[Any]] = {}
    for call in CALLS:
        status = run([*call.split(), "--json"])
        printed = capsys.readouterr()
        assert status in (0, 1), f"assetflow {call}: {printed.err}"
        answer = json.loads(printed.out.replace(str(there), "HOME"), object_hook=without_versions)
        answers.setdefault(call.split()[0], []).append({"call": call, "status": status, "answer": answer})
    for name, each in answers.items():
        agrees(f"commands/{name}", each)


def without_versions(found: dict[str, Any]) -> dict[str, Any]:
    return {key: "installed" if key in INSTALLED and value else value for key, value in found.items()}
