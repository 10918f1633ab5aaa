"""`assetflow backfill` of assets, and `ls`, `show`, `stop` and `resume`. Contract 8.18."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args
from uuid import uuid5

import pytest

from assetflow.crash_points import BackfillPoint
from assetflow.ledger import Ledger
from tests.cli.conftest import API_URL, Call
from tests.cli.shop import raw_core_board
from tests.ledger.write.test_kept import CORE, RAW, Place


@pytest.fixture
def place(ledger: Ledger) -> Place:
    return raw_core_board(ledger, datetime.now(UTC))


def runs_end(place: Place, state: str = "Completed") -> list[str]:
    """Let the runs of the waiting decisions start and end; their consumers."""
    found = [record for record, _ in place.ledger.reader.decisions.waiting()]
    for record in found:
        run = uuid5(record.id, "run")
        place.ledger.writer.decisions.launched(record.id, run, datetime.now(UTC))
        outcome = "completed" if state == "Completed" else "failed"
        place.ledger.writer.decisions.ended(state, datetime.now(UTC), flow_run_id=run, outcome=outcome)
    return [record.consumer_name for record in found]


def test_a_backfill_begins_and_is_shown(place: Place, call: Call) -> None:
    begun = call("backfill", f"{CORE.uri}+", "--why", "bugfix")
    assert (begun.code, "backfill 1 of s3://lake/core and what lies below it: running" in begun.out) == (0, True)
    assert "no evaluator" in begun.err.lower()
    assert runs_end(place) == ["core/shop"]
    shown = call("backfill", "show", "1", "--json").json
    assert [(wave["counts"]["done"], wave["counts"]["asked"]) for wave in shown["waves"]] == [(1, 0), (0, 1)]
    assert (shown["why"], shown["counts"]["done"], len(shown["running"])) == ("bugfix", 1, 1)
    assert "board/shop" in call("backfill", "show", "1").out
    runs_end(place)
    assert call("backfill", "ls", "--json").json[0]["state"] == "completed"
    assert "completed" in call("backfill", "ls").out


def test_a_failed_backfill_says_what_to_do(place: Place, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assetflow.cli.backfill.sleep", lambda _: runs_end(place, "Failed"))
    waited = call("backfill", f"{CORE.uri}+", "--wait")
    assert waited.code == 1
    assert "0 of 2 runs done, 1 failed, 1 taken off" in waited.out
    assert "assetflow backfill resume 1" in waited.out
    assert call("backfill", "resume", "1", "--json").json["state"] == "running"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((RAW.uri,), "nothing makes"),
        (("s3://lake/nothing+",), "no asset is called"),
        ((CORE.uri, "--keys", "a"), "has no partitions"),
        ((CORE.uri, "--missing-only"), "backfill resume"),
        ((CORE.uri, "--from", "2026", "--keys", "a"), "range"),
        (("core", "--why", "so"), "--why and --wait are for assets"),
        (("show", "7"), "there is no backfill 7"),
        (("stop", "99999999999999999999999"), "is too large"),
        (("resume", "7"), "there is no backfill 7"),
        (("nobody",), "nobody"),
    ],
)
def test_bad_calls(place: Place, call: Call, given: tuple[str, ...], said: str) -> None:  # noqa: ARG001
    answer = call("backfill", *given)
    assert answer.code != 0
    assert said in answer.err + answer.out
    assert "Traceback" not in answer.err


@pytest.mark.rule("8.18")
@pytest.mark.parametrize("point", get_args(BackfillPoint))
def test_killed_at_each_point_nothing_runs_twice(place: Place, point: BackfillPoint, home: Path, call: Call) -> None:
    """The command is killed (SIGKILL). Before the last transaction nothing runs; after it, all runs once."""
    command = (sys.executable, "-m", "assetflow", "backfill", f"{CORE.uri}+")
    settings = {"ASSETFLOW_HOME": str(home), "ASSETFLOW_CRASH_AT": point, "PREFECT_API_URL": API_URL}
    killed = subprocess.run(command, env=os.environ | settings, capture_output=True, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    shown = call("backfill", "show", "1", "--json").json
    if point == "between-backfill-and-begin":
        assert shown["state"] == "preparing"
        assert runs_end(place) == []
        assert call("backfill", "resume", "1").code == 2
        assert call("backfill", f"{CORE.uri}+").code == 0
    assert [runs_end(place), runs_end(place), runs_end(place)] == [["core/shop"], ["board/shop"], []]
