"""Eager flows on a real Prefect server: updates, observations and failures, from declaration to run."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from assetflow import Asset, Eager, Skip, flow, observe, task
from assetflow.prefect_io.names import artifact_key
from assetflow.testing import Harness

pytestmark = [pytest.mark.long, pytest.mark.prefect]

RAW, LEFT = Asset("s3://eager/raw"), Asset("s3://eager/left")


@task(inlets=[RAW], outlets=[LEFT])
def make_left() -> None: ...


@flow(schedule=Eager())
def left() -> None:
    make_left()


@flow(schedule=Eager(RAW))
def fails() -> None:
    make_never()
    raise ValueError("on purpose")


@task(outlets=[Asset("s3://eager/never")])
def make_never() -> None:
    raise ValueError("on purpose")


def states(h: Harness, consumer: Any) -> list[tuple[str | None, str]]:
    return [(run.partition_key, run.state) for run in h.runs(consumer)]


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
