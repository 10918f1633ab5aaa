"""`assetflow diff` in a project: what it prints, its exit status, and bad input. Contract 11.4, 11.5."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import respx

from assetflow.core.compare import CURSOR, ShownDiff
from assetflow.core.shapes import from_json
from assetflow.ledger import Ledger
from tests.cli.conftest import API_URL, Call
from tests.cli.conftest import call as call
from tests.cli.conftest import home as home
from tests.cli.conftest import ledger as ledger
from tests.cli.shop import CUSTOMERS, ORDERS, deploy, update
from tests.golden import agrees

FLOWS = """\
from assetflow import Asset, flow
orders, customers = Asset("s3://lake/orders", name="orders", group="shop"), Asset("s3://lake/customers")

@flow(schedule=customers)
def report(): ...

@flow(schedule=orders)
def same(): ...
"""


@pytest.fixture
def project(home: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two deployments; of three that are deployed, one has the same schedule there."""
    monkeypatch.chdir(home)
    (home / "flows.py").write_text(FLOWS, encoding="utf-8")
    names = ("report", "same")
    (home / "prefect.yaml").write_text(_yaml(*(f"flows.py:{name}" for name in names)), encoding="utf-8")
    deploy(ledger, "report/shop", ORDERS & CUSTOMERS)
    deploy(ledger, "same/shop", ORDERS)
    deploy(ledger, "gone/shop", CUSTOMERS & ORDERS)
    update(ledger, ORDERS, 1)
    return home


def _yaml(*entrypoints: str) -> str:
    return "deployments:\n" + "".join(f"  - {{name: shop, entrypoint: '{each}'}}\n" for each in entrypoints)


@pytest.mark.usefixtures("project")
def test_the_text_shows_conditions_side_by_side_and_what_is_lost(call: Call) -> None:
    answer = call("diff")
    assert answer.out == (
        "Consumers\n"
        "~ report/shop changed\n"
        "    - orders AND customers\n"
        "    + s3://lake/customers\n"
        "    1 queued event would be lost: 1 of s3://lake/orders.\n"
        "- gone/shop removed\n"
        "    - customers AND orders\n"
        "    1 queued event would be lost: 1 of s3://lake/orders.\n"
        "    Its automation in Prefect would be removed.\n"
        "1 consumer would not change.\n"
    )
    assert answer.code == 0


@pytest.mark.rule("11.5")
@pytest.mark.usefixtures("project")
def test_the_exit_status_is_0_unless_it_is_asked_for(call: Call) -> None:
    assert call("diff", "--exit-code").code == 1
    assert call("diff", "--fail-on", "lost-events").code == 1
    assert [each["consumer"] for each in call("diff", "--json", "--others-stay").json["consumers"]] == ["report/shop"]


@pytest.mark.usefixtures("project")
def test_json_and_markdown_say_the_same(call: Call) -> None:
    agrees("diff", call("diff", "--json").json)
    text = call("diff", "--markdown").out
    assert (
        "- **report/shop** changed\n"
        "  - before: orders AND customers\n"
        "  - after: s3://lake/customers\n"
        "  - 1 queued event would be lost: 1 of s3://lake/orders.\n"
    ) in text


@pytest.mark.rule("11.5")
def test_a_file_that_cannot_be_imported_is_named_and_the_rest_is_compared(project: Path, call: Call) -> None:
    (project / "broken.py").write_text("import nowhere_to_be_found\n", encoding="utf-8")
    (project / "prefect.yaml").write_text(_yaml("flows.py:report", "broken.py:gone", "flows.py:none"), encoding="utf-8")
    found = call("diff", "--json").json
    # Nobody knows which deployments those are, so none counts as removed.
    assert [(each["kind"], each["consumer"]) for each in found["consumers"]] == [("changed", "report/shop")]
    assert found["problems"]["broken.py:gone"].startswith("cannot be imported: ModuleNotFoundError")
    assert found["problems"]["flows.py:none"] == "the file has no such flow"
    assert call("diff", "--exit-code").code == 1


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch, home: Path, ledger: Ledger) -> None:
    """Let the ledger of the project have events of the last hours."""
    monkeypatch.setattr("tests.cli.shop.NOON", datetime.now(UTC) - timedelta(hours=8))
    for minute, asset in ((2, CUSTOMERS), (3, ORDERS), (4, CUSTOMERS)):
        update(ledger, asset, minute)
    ledger.writer.set_cursor("floor", (datetime.now(UTC) - timedelta(days=2)).isoformat())
    assert home.exists()


@pytest.mark.usefixtures("project", "long_ago")
def test_a_replay_tells_of_runs_and_fails_on_fewer(call: Call) -> None:
    answer = call("diff", "--replay", "1d", "--json", "--fail-on", "fewer-runs,lost-events")
    report, gone = answer.json["replayed"]
    assert (report["consumer"], report["before"], report["after"]) == ("report/shop", 2, 2)
    assert (gone["before"], gone["after"], gone["first"]["what"]) == (2, 0, "gone")
    assert answer.code == 1
    assert "A run that would be new makes no updates here" in call("diff", "--replay", "1d").out
    assert "**gone/shop** 0 runs instead of 2" in call("diff", "--replay", "1d", "--markdown").out
    assert call("diff", "--replay", "1d", "--others-stay", "--fail-on", "fewer-runs").code == 0


@pytest.mark.rule("11.7")
@pytest.mark.usefixtures("project", "long_ago")
def test_a_replay_of_more_than_was_kept_says_from_when_it_is(call: Call) -> None:
    answer = call("diff", "--replay", "7d")
    assert (answer.code, answer.out) == (2, "")
    assert "the ledger has what was recorded since" in answer.err
    assert "only a replay tells of fewer runs" in call("diff", "--fail-on", "fewer-runs").err
    assert "'all' is not a reason" in call("diff", "--fail-on", "all").err


@pytest.mark.usefixtures("project")
def test_what_prefect_yaml_no_longer_deploys_is_shown(call: Call) -> None:
    assert call("consumers", "prune").out == (
        "left over: gone/shop\nDelete 1 deployment with --yes; the queues end with them.\n"
    )
    refused = call("consumers", "prune", "same/shop", "--yes")
    assert (refused.code, refused.out) == (2, "")
    assert "prefect.yaml still deploys same/shop" in refused.err


@pytest.mark.rule("11.5")
@pytest.mark.usefixtures("project")
def test_only_page_writes_and_it_writes_what_the_terminal_shows(ledger: Ledger, call: Call) -> None:
    for options in ([], ["--json"], ["--markdown"], ["--exit-code"]):
        call("diff", *options)
    assert ledger.reader.cursor(CURSOR) is None
    answer = call("diff", "--page")
    assert answer.err == "The page /diff shows it.\n"
    kept = from_json(ShownDiff, ledger.reader.cursor(CURSOR))
    assert [line.name for line in kept.stages[0].lines] == ["report/shop", "gone/shop"]
    assert kept.stages[-1].note == "1 consumer would not change."


@respx.mock
@pytest.mark.usefixtures("project")
def test_its_deployments_are_deleted_in_prefect(ledger: Ledger, call: Call) -> None:
    gone = next(each.consumer for each in ledger.reader.consumers.all() if each.consumer.name == "gone/shop")
    deleted = respx.delete(f"{API_URL}/deployments/{gone.deployment_id}").respond(204)
    answer = call("consumers", "prune", "--yes")
    assert (answer.out, answer.err, deleted.call_count) == ("deleted gone/shop\n", "", 1)
