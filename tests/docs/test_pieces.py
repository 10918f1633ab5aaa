"""Every piece of Python in the pages is run, tasks and flows too: on Prefect, and on Spark where it says so."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from assetflow import Asset, Eager, flow, listeners, simulate
from assetflow.api.app import create_app
from assetflow.api.requests import Backend
from assetflow.core.values.events import AssetEvent, Origin
from assetflow.errors import CheckFailed
from assetflow.ledger import Ledger
from assetflow.spark.reading import read
from assetflow.stack.linting import LintConfig, lint_files
from assetflow.testing import Harness, harness
from assetflow.timetables import CronTriggerTimetable
from tests.api.serving import serving
from tests.docs.pieces import ROOT, Piece, all_pieces
from tests.ledger.making import deploy_maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def within_a_flow(task: Callable[..., Any], *arguments: object) -> Any:
    return flow(name="within")(lambda: task(*arguments))()


def states(h: Harness, consumer: Any) -> list[str]:
    return [run.state for run in h.settle().runs(consumer)]


@pytest.mark.spark
@pytest.mark.prefect
def test_the_readme(h: Harness, piece: Piece, tmp_path: Path, spark: SparkSession) -> None:
    page = piece("README.md", places=("s3://shop/", "/landing/"))
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "orders").write_text('{"customer": "ada", "total": 120.0}\n')
    h.deploy(page.report)
    within_a_flow(page.load_orders)
    h.emit(page.customers)
    (run,) = h.settle().runs(page.report)
    assert (run.uris, run.state) == ([page.orders.uri, page.customers.uri], "Completed")
    assert read(page.orders, spark).count() == 1


@pytest.mark.spark
@pytest.mark.prefect
@pytest.mark.usefixtures("spark")
def test_the_first_projects_test(h: Harness, piece: Piece, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flows", piece("docs/start.md"))
    piece("docs/start.md", 1).test_the_report_follows_the_orders(h)


@pytest.mark.prefect
def test_the_three_ways_of_testing(h: Harness, piece: Piece) -> None:
    page = piece("docs/tests.md")
    given = {name: getattr(page, name) for name in ("orders", "customers", "produce", "report")}
    piece("docs/tests.md", 1, **given).test_the_report_waits_for_both()
    piece("docs/tests.md", 2, **given).test_the_report_follows_the_producer(h)
    piece("docs/tests.md", 3, **given).test_what_is_loaded()


# A flow of a page, and what has to happen so that it runs once: flows and tasks that run, assets that are updated.
ONCE = [
    ("docs/migration.md", 0, "report", ("load", "customers")),
    ("docs/migration.md", 5, "report", ("s3://shop/orders", "s3://shop/customers")),
    ("docs/prefect-project.md", 0, "report", ("load",)),
    ("docs/dagster.md", 0, "fact", ("raw",)),
    ("docs/freshness.md", 0, "core", ("raw",)),
]


@pytest.mark.prefect
@pytest.mark.parametrize(("place", "number", "flow", "happens"), ONCE)
def test_a_flow_of_a_page_runs_once(
    h: Harness, piece: Piece, place: str, number: int, flow: str, happens: tuple[str, ...]
) -> None:
    page = piece(place, number)
    h.deploy(getattr(page, flow))
    for what in (getattr(page, name, name) for name in happens):
        if callable(what):
            what()
        else:
            h.emit(what)
    assert states(h, getattr(page, flow)) == ["Completed"]


def test_each_line_of_the_tables_of_schedules(piece: Piece) -> None:
    text = (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| [^|]+ \| (?:`|<code>)(.+?)(?:`|</code>) \|", text, re.M)
    assert len(lines) > 25
    names = vars(piece("docs/schedules.md"))
    for number, line in enumerate(lines):
        shown = unescape(line) + (f"\ndef scheduled_{number}(): ..." if line.startswith("@") else "")
        exec(shown, names)


@pytest.mark.prefect
def test_a_roll_up(h: Harness, piece: Piece) -> None:
    page = piece("docs/partitions.md")
    h.deploy(page.daily_delays)
    h.emit(page.flights_by_day, partition_key="2026-11-20")
    for hour in range(23):
        h.emit(page.weather_by_hour, partition_key=f"2026-11-20T{hour:02}")
    assert h.settle().runs(page.daily_delays) == []
    h.emit(page.weather_by_hour, partition_key="2026-11-20T23")
    (run,) = h.settle().runs(page.daily_delays)
    assert (run.partition_key, run.state) == ("2026-11-20", "Completed")


def test_time_inside_conditions(piece: Piece) -> None:
    page = piece("docs/conditions.md")
    names = ("together", "of_one_day", "two_regions", "mornings", "when_quiet", "one_by_one", "batches", "now_and_then")
    assert [getattr(page, name).declaration.options.describe() for name in names] == [
        "(orders AND customers) within 6 h of each other",
        "(orders AND customers) since 00:00 (Europe/Berlin)",
        "(2 of: north, south, west) AND prices 3 times",
        "orders AND customers, from 06:00 to 22:00 (Europe/Berlin); at 08:00 with what is there",
        "orders; debounce 10 min, max_wait 1 h",
        "files; max_events 1",
        "files; max_wait 5 min, min_events 100, max_events 1000",
        "orders; cooldown 30 min",
    ]
    assert page.one_by_one.declaration.options.coalesce


@pytest.mark.prefect
def test_the_harness_for_watchers(h: Harness, piece: Piece) -> None:
    page = piece("docs/watchers.md")
    assert "GitHub" in piece("docs/watchers.md", 5).pushes.describe()
    assert piece("docs/watchers.md", 6).Mails("orders").folder == "orders"
    assert piece("docs/watchers.md", 7).TestNats.test_refused_messages_do_not_come_again
    piece("docs/watchers.md", 8).test_a_message_starts_the_report(h, page.report)


def test_code_asks_for_the_status(piece: Piece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path))
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        deploy_maker(ledger, Eager(), [Asset("s3://lake/board")], [Asset("s3://lake/raw")], "report/lake")
        assert piece("docs/status.md").check("s3://lake/board") == ["it was never made"]


@pytest.mark.prefect
def test_a_board_that_has_to_be_fresh(h: Harness, piece: Piece) -> None:
    page = piece("docs/policies.md")
    h.deploy(page.report)
    h.emit(page.raw)
    assert h.settle().freshness(page.board) == "pass"
    h.emit(page.raw)
    h.settle(execute=False)
    assert h.advance(timedelta(minutes=50)).freshness(page.board) == "warn"
    assert h.advance(timedelta(hours=2)).freshness(page.board) == "fail"
    assert piece("docs/alerts.md").alert_on(uuid4()).trigger.expect == {"assetflow.freshness.fail"}


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_here")
@pytest.mark.parametrize("name", ["test_what_belongs_together", "test_at_eight_it_runs_with_what_is_there"])
def test_the_tutorial_on_time(piece: Piece, name: str) -> None:
    flows = piece("docs/conditions.md")
    tutorial = piece("docs/conditions.md", 1, **{each: value for each, value in vars(flows).items() if each[0] != "_"})
    vars(tutorial)["harness"] = partial(harness, use_running_server=True)
    getattr(tutorial, name)()


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_here")
def test_types(piece: Piece) -> None:
    event = AssetEvent(uuid4(), Asset("s3://shop/orders"), datetime.now(UTC), Origin("api"))
    page = piece("docs/types.md", event=event)
    assert page.report() == 0
    assert page.report(triggering_asset_events=page.TriggeringAssetEvents([event])) == 1


def test_a_finding_that_a_comment_ignores(piece: Piece) -> None:
    assert lint_files([Path(str(piece("docs/lint.md").__file__))], LintConfig()) == []


def test_an_append_to_a_table_is_made_once(piece: Piece, tmp_path: Path) -> None:
    page, rows, path = piece("docs/spark.md"), pyarrow.table({"id": [1, 2]}), str(tmp_path / "clicks")
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("lake")
    catalog.create_table("lake.visits", schema=rows.schema)
    for number in ("a", "a", "b", "a"):
        page.task_run = SimpleNamespace(id=number)
        page.append_clicks.fn(path, rows)
        page.append_visits.fn(catalog.load_table("lake.visits"), rows)
    assert page.DeltaTable(path).to_pyarrow_table().num_rows == 4
    assert catalog.load_table("lake.visits").scan().to_arrow().num_rows == 4


@pytest.mark.spark
def test_a_task_with_checks(piece: Piece, spark: SparkSession) -> None:  # noqa: ARG001
    page = piece("docs/checks.md", places=("file:///lake/",))
    assert page.load_orders.fn("paid").checks[None][-1].passed
    with pytest.raises(CheckFailed, match=r"values\(state\): found 1, wanted state is one of 'open', 'paid'"):
        page.load_orders.fn("gone")


def test_an_update_for_another_environment(piece: Piece, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRODUCTION_KEY", "a-long-random-text")
    with serving(create_app(Backend(ledger))) as url:
        monkeypatch.setattr("assetflow.emit", partial(emit_to, url))
        piece("docs/remote.md")
    (recorded,) = ledger.reader.events.find()
    assert (recorded.uri, recorded.extra) == ("s3://shop/orders", {"rows": 12})


def emit_to(url: str, *arguments: Any, to: str, **options: Any) -> AssetEvent:
    """Send to this server what the page sends to its example."""
    from assetflow.authoring.observing import emit

    assert to.startswith("https://")
    return emit(*arguments, to=url, **options)


def runs(flow: object, steps: Iterable[Any]) -> list[tuple[str, int]]:
    """Return when the flow would run, and with how many updates."""
    answer: dict[str, Any] = simulate([flow], list(steps))
    return [(run["at"], len(run["events"])) for run in answer["runs"]]


def at(moment: str, asset: Any = None) -> dict[str, Any]:
    return {"at": moment, **({"tick": True} if asset is None else {"event": asset})}


@pytest.mark.prefect
def test_a_landing_zone(h: Harness, piece: Piece) -> None:
    """tests/watching/kinds/test_s3.py lets such a trigger watch moto's S3."""
    page = piece("docs/cookbook.md")
    loaded: list[str] = []
    page.load = lambda *, path: loaded.append(path)
    h.deploy(page.ingest)
    for day in ("2026-01-01", "2026-01-02"):
        h.file("landing", f"date={day}/a.json")
    assert [run.partition_key for run in h.settle().runs(page.ingest)] == ["2026-01-01", "2026-01-02"]
    assert [path.partition("landing/")[2] for path in loaded] == ["date=2026-01-01/a.json", "date=2026-01-02/a.json"]


def test_a_month_close(piece: Piece) -> None:
    page = piece("docs/cookbook.md", 2)
    books = [page.ledger, page.bank, page.payroll]
    assert runs(page.close, [at("2026-01-01T20:00:00Z", each) for each in books] + [at("2026-01-02T12:00:00Z")]) == [
        ("2026-01-02T05:00:00Z", 3)
    ]
    assert runs(page.close, [at("2026-01-01T20:00:00Z", page.bank), at("2026-01-03T18:00:00Z")]) == [
        ("2026-01-03T17:00:00Z", 1)
    ]


def test_small_files_in_batches(piece: Piece) -> None:
    page = piece("docs/cookbook.md", 8)
    assert [number for _, number in runs(page.load_batch, [*([page.drops] * 3), {"advance": 300}])] == [3]


def named() -> set[tuple[str, int]]:
    """Return the pages and numbers of the pieces that these files name, wherever they call `piece`."""
    files = [Path(__file__), Path(__file__).with_name("test_tutorial.py")]
    tests = "".join(file.read_text(encoding="utf-8") for file in files)
    calls = re.findall(r'\(\s*"((?:docs/|README)[^"]*)"(?:, (\d+)\b)?', tests)
    return {(page, int(number or 0)) for page, number in calls}


# What the definitions of the others do is tested by the rules that they are about: here, they are only made. The piece
# of the index is that of the README (`test_site.py`).
@pytest.mark.parametrize(("place", "number"), sorted(all_pieces() - named() - {("docs/index.md", 0)}))
def test_what_a_piece_defines_is_accepted(
    piece: Piece, monkeypatch: pytest.MonkeyPatch, place: str, number: int
) -> None:
    monkeypatch.setattr(listeners, "_registered", {})
    monkeypatch.setenv("STAGE", "staging")
    assert vars(piece(place, number, flow=flow, CronTriggerTimetable=CronTriggerTimetable))
