"""Eager flows on a real Prefect server: updates, code versions, failures and keys, from declaration to run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from assetflow import (
    Asset,
    Eager,
    Skip,
    asset,
    flow,
    inlet_events,
    observe,
    outlet_events,
    task,
)
from assetflow.errors import InvalidCall, InvalidEvent
from assetflow.prefect_io.names import artifact_key
from assetflow.testing import Harness, harness
from tests.environment.prefect_server import PrefectServer

pytestmark = [pytest.mark.long, pytest.mark.prefect]

RAW, LEFT, RIGHT, BOARD = (Asset(f"s3://eager/{name}") for name in ("raw", "left", "right", "board"))


@task(inlets=[RAW], outlets=[LEFT])
def make_left() -> None: ...


@task(inlets=[RAW], outlets=[RIGHT])
def make_right() -> None: ...


@task(inlets=[LEFT, RIGHT], outlets=[BOARD])
def make_board() -> None: ...


@flow(schedule=Eager())
def left() -> None:
    make_left()


@flow(schedule=Eager())
def right() -> None:
    make_right()


@flow(schedule=Eager())
def board() -> None:
    make_board()


@flow(schedule=Eager(RAW))
def fails() -> None:
    make_never()
    raise ValueError("on purpose")


@task(outlets=[Asset("s3://eager/never")])
def make_never() -> None:
    raise ValueError("on purpose")


@asset(uri="s3://eager/copy", schedule=Eager(RAW), code_version="1")
def copy() -> None: ...


@pytest.fixture
def h(prefect_here: PrefectServer) -> Iterator[Harness]:  # noqa: ARG001
    with harness(use_running_server=True) as made:
        yield made


def states(h: Harness, consumer: Any) -> list[tuple[str | None, str]]:
    return [(run.partition_key, run.state) for run in h.runs(consumer)]


@pytest.mark.rule("8.5", "8.6")
def test_a_diamond_is_built_once_for_each_update(h: Harness) -> None:
    for each in (board, left, right):
        h.deploy(each)
    assert h.settle().runs(left) == []
    for number in (1, 2):
        h.emit(RAW)
        h.settle()
        assert [len(h.runs(each)) for each in (left, right, board)] == [number] * 3


@pytest.mark.rule("8.9")
def test_a_test_can_ask_for_status_and_plan(h: Harness) -> None:
    h.deploy(left)
    h.deploy(fails)
    assert [h.status(LEFT).state, h.plan(left).targets[0].verdict] == ["missing", "missing_input"]
    h.emit(RAW)
    h.settle()
    assert [h.status(LEFT).state, h.plan(left).words] == ["fresh", "Everything is up to date."]
    assert h.plan(fails).targets[0].verdict == "tried"
    assert [each.consumer for each in h.plan()] == ["fails/test", "left/test"]
    assert LEFT.uri in [each.uri for each in h.status()]
    h.emit(RAW)
    assert [cause.kind for cause in h.status(LEFT).causes] == ["data"]


def test_8_7_a_test_can_let_a_flow_try_again(h: Harness) -> None:
    h.deploy(fails)
    h.emit(RAW)
    assert states(h.settle(), fails) == [(None, "Failed")]
    assert states(h.retry(fails).settle(), fails) == [(None, "Failed")] * 2
    with pytest.raises(InvalidCall, match="is not partitioned"):
        h.retry(fails, "a")
    with pytest.raises(InvalidCall, match="needs an asset"):
        h.status(None, "a")  # type: ignore[call-overload]


def test_a_new_code_version_is_built_when_it_is_deployed(h: Harness) -> None:
    h.deploy(copy)
    h.emit(RAW)
    assert len(h.settle().runs(copy)) == 1
    h.deploy(copy)
    assert len(h.settle().runs(copy)) == 1
    h.deploy(copy.with_options(code_version="2"))
    assert len(h.settle().runs("copy/test")) == 2


TOLD = Asset("s3://eager/told")


@task(inlets=[RAW], outlets=[TOLD])
def tell() -> None:
    outlet_events[TOLD].extra = {"raw": inlet_events[RAW].version}


@flow(schedule=Eager())
def tells() -> None:
    tell()


def test_rule_8_2_a_task_knows_the_version_that_it_reads_and_the_ledger_the_start_of_its_run(h: Harness) -> None:
    h.deploy(tells)
    h.emit(RAW, data_version="etag")
    (run,) = h.settle().runs(tells)
    with get_client(sync_client=True) as client:
        start = client.read_flow_run(run.id).start_time
    assert start is not None
    with closing(sqlite3.connect(h._reader.place)) as ledger:
        (began,) = ledger.execute("SELECT began FROM kept_run").fetchone()
        (extra,) = ledger.execute("SELECT extra FROM event WHERE uri = ?", (TOLD.uri,)).fetchone()
        (started,) = ledger.execute("SELECT started FROM item_version WHERE uri = ?", (TOLD.uri,)).fetchone()
    assert json.loads(extra) == {"raw": "etag"}
    assert [datetime.fromisoformat(each) for each in (began, started)] == [start, start]


SOURCE, MAYBE = Asset("s3://eager/source"), Asset("s3://eager/maybe")
seen = ["v1"]


@observe(SOURCE, every=timedelta(days=1))
def look() -> str:
    return seen[-1]


@task(inlets=[SOURCE], outlets=[MAYBE])
def make_maybe() -> None:
    if seen[-1] == "v2":
        raise Skip("nothing for us in it")


@flow(schedule=Eager(retries=1, retry_delay=timedelta(seconds=1)))
def maybe() -> None:
    make_maybe()


def stored(h: Harness, asset: Asset) -> list[tuple[str, int]]:
    """The versions of an asset in the order of the ledger, each with 1 if it is a confirmation."""
    query = "SELECT data_version, confirms FROM item_version WHERE uri = ? ORDER BY sequence, confirms"
    with closing(sqlite3.connect(h._reader.place)) as ledger:
        return ledger.execute(query, (asset.uri,)).fetchall()


def artifacts(asset: Asset) -> int:
    """Return how many artifacts tell of an asset; one of them that the same version was seen again."""
    key = artifact_key(asset.name, asset.uri)
    with get_client(sync_client=True) as client:
        keys = ArtifactFilterKey(any_=[key, f"seen-{key}"])
        return len(client.read_artifacts(artifact_filter=ArtifactFilter(key=keys)))


def test_rule_8_2_an_observation_runs_what_reads_the_source_and_a_skip_confirms(h: Harness) -> None:
    h.deploy(maybe)
    for version in ("v1", "v1", "v2", "v2"):
        seen.append(version)
        h.run(look)
        h.settle()
    assert states(h, maybe) == [(None, "Completed")] * 2
    assert stored(h, SOURCE) == [("v1", 0), ("v2", 0)]
    assert artifacts(SOURCE) == 2 + 1
    ((version, _), confirmed) = stored(h, MAYBE)
    assert confirmed == (version, 1)


def test_rule_8_2_an_observation_that_fails_changes_nothing(h: Harness) -> None:
    h.deploy(maybe)
    seen.append("")
    with pytest.raises(InvalidEvent, match="observed"):
        h.run(look)
    seen.append("v1")
    assert h.settle().runs(maybe) == []
