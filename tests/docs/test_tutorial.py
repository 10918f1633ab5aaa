"""The pages of the tutorial: their flows run, and commands print what the pages show."""

import re
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from assetflow.cli.app import app
from assetflow.testing import Harness
from tests.docs.pieces import ROOT, Piece

pytestmark = pytest.mark.prefect

Told = Callable[[str], str]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """Give a command to `assetflow`, as the page does, and return what it prints."""

    def tell(command: str) -> str:
        capsys.readouterr()
        with suppress(SystemExit):
            app(command.split())
        return capsys.readouterr().out

    return tell


def anonymous(text: str) -> str:
    """Return what is told without its times, ids and line breaks, and without the word for who emitted."""
    text = re.sub(r"by the (API \(assetflow.testing\)|command line)", "by EMIT", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", text)
    text = re.sub(r"\b\d+(\.\d)? s\b", "SPAN", text)
    return " ".join(re.sub(r"\b[0-9a-f]{8}-[0-9a-f-…]+", "ID", text).split())


def shown(page: str) -> list[str]:
    """Return what the page shows as output, in its order."""
    found = re.findall(r"^```text\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.M | re.S)
    return [anonymous(each) for each in found]


def test_a_flow_waits_for_two(h: Harness, piece: Piece, told: Told) -> None:
    page = piece("docs/tutorial-wait.md")
    h.deploy(page.report, "shop")
    for _ in range(2):
        h.run(page.produce)
    waiting = told("explain report/shop")
    h.emit(page.customers)
    (run,) = h.settle().runs(page.report)
    assert run.state == "Completed"
    assert [anonymous(waiting), anonymous(told("explain report/shop"))] == shown("tutorial-wait.md")


def test_a_day_waits_for_its_hours(h: Harness, piece: Piece, told: Told) -> None:
    page = piece("docs/tutorial-keys.md")
    h.deploy(page.daily, "shop")
    for hour in range(23):
        h.emit(page.hours, partition_key=f"2026-11-20T{hour:02}")
    assert [anonymous(told("partitions ls daily/shop"))] == shown("tutorial-keys.md")
    h.run(page.hourly, partition_key="2026-11-20T23")
    assert [run.partition_key for run in h.settle().runs(page.daily)] == ["2026-11-20"]


def test_a_failed_run_is_found(h: Harness, piece: Piece, told: Told) -> None:
    page = piece("docs/tutorial-why.md")
    for each in (page.reports, page.mail):
        h.deploy(each, "shop")
    h.emit(page.orders, extra={"total": -3})
    assert [run.state for run in h.settle().runs(page.reports)] == ["Failed"]
    assert [anonymous(told("trace orders")), anonymous(told("explain mail/shop"))] == shown("tutorial-why.md")
    h.emit(page.orders, extra={"total": 3})
    assert [run.state for run in h.settle().runs(page.mail)] == ["Completed"]


def test_the_tests_of_the_tutorial(h: Harness, piece: Piece, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flows", piece("docs/tutorial-wait.md"))
    piece("docs/tutorial-wait.md", 1).test_the_report_waits_for_both(h)
    monkeypatch.setitem(sys.modules, "flows", piece("docs/tutorial-keys.md"))
    piece("docs/tutorial-keys.md", 1).test_a_day_waits_for_its_hours(h)
