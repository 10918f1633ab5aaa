"""Prefect answers wrongly, late or not at all: nothing is lost, and nothing is run twice."""

import random
import time
from datetime import UTC, datetime
from itertools import count
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.evaluator.incoming.assembly import LAST_RESORT
from assetflow.evaluator.runs.launch import LARGEST_CONTEXT
from assetflow.prefect_io.recordings import recording_to_artifact, recording_to_prefect_events
from assetflow.prefect_io.rest import SECONDS_TO_ANSWER
from tests.faults.conftest import Judged
from tests.faults.proxy import Fault, Proxy, Rule
from tests.faults.world import World
from tests.integration.installation import events_of, recording

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(600)]

UPDATES = 12


def first(number: int, fault: Fault, *, path: str = "") -> Rule:
    """The first requests of a path go wrong, those after them do not."""
    seen = count()
    return lambda _, asked: fault if path in asked and next(seen) < number else None


def now_and_then(fault: Fault) -> Rule:
    """One request of three goes wrong, in no regular order."""
    dice = random.Random(1)
    return lambda _, __: fault if dice.random() < 1 / 3 else None


def make_updates(world: World) -> None:
    for number in range(UPDATES):
        if number % 2:
            world.update(world.uri("a"))
        else:
            world.task_recorded(recording(world.uri("a")), events=bool(number % 4))


@pytest.mark.failure(
    "Prefect",
    "the request for a run gets a 500, a 503 or a timeout, or its answer is lost",
    "after seven attempts in 1.3 s, log: `…: decision … waits for its run: …`. The evaluator asks again with the same"
    " idempotency key",
)
@pytest.mark.parametrize("fault", ["500", "503", "lose the answer"])
def test_launching_meets(behind: World, proxy: Proxy, judged: Judged, fault: Fault) -> None:
    deployment = behind.deploy("one", Asset(behind.uri("a")))
    behind.begin()
    with proxy.broken(lambda _, path: fault if "create_flow_run" in path else None):
        make_updates(behind)
        behind.until(lambda: "waits for its run: " in behind.log, 60)
        behind.until(lambda: len(behind.recorded()) == UPDATES, 60)
        assert behind.status()[1]["waiting"]["decisions"] == UPDATES
    behind.until(lambda: len(behind.runs(deployment)) == UPDATES, 120)
    behind.settle()
    assert judged(behind).runs == UPDATES


@pytest.mark.failure("Prefect", "the request for a run gets a 500, a 503 or a timeout, or its answer is lost")
def test_launching_meets_time_outs(behind: World, proxy: Proxy, judged: Judged) -> None:
    deployment = behind.deploy("one", Asset(behind.uri("a")))
    behind.begin()
    with proxy.broken(first(2, "hang", path="create_flow_run")):
        make_updates(behind)
        behind.until(lambda: len(behind.runs(deployment)) == UPDATES, 120)
    behind.settle()
    assert proxy.faults == 2
    assert judged(behind).runs == UPDATES


@pytest.mark.failure(
    "Prefect", "one of three requests fails", "decisions wait for their runs, and the evaluator asks again"
)
@pytest.mark.parametrize("fault", ["500", "503", "lose the answer"])
def test_everything_fails_now_and_then(behind: World, proxy: Proxy, judged: Judged, fault: Fault) -> None:
    deployment = behind.deploy("one", Asset(behind.uri("a")))
    with proxy.broken(now_and_then(fault)):
        behind.begin(ready=False)
        make_updates(behind)
        behind.until(lambda: len(behind.runs(deployment)) == UPDATES, 240)
    behind.settle()
    assert proxy.faults
    assert judged(behind).runs == UPDATES


@pytest.mark.failure(
    "Prefect",
    "the request for a run gets a 200 with another run",
    "`Prefect answered with run …, which was not asked for`; look for a proxy that caches",
)
def test_launching_is_answered_with_an_older_run(behind: World, proxy: Proxy, judged: Judged) -> None:
    """A stale answer on the way is no run of this decision: it is asked for again."""
    deployment = behind.deploy("one", Asset(behind.uri("a")))
    behind.begin()
    behind.update(behind.uri("a"))
    older = behind.run_of(deployment)
    with proxy.broken(first(3, older, path="create_flow_run")):
        behind.update(behind.uri("a"))
        behind.until(lambda: len(behind.runs(deployment)) == 2, 60)
    behind.settle()
    assert proxy.faults == 3
    assert judged(behind).runs == 2


@pytest.mark.failure(
    "Prefect",
    "a proxy answers with a 404, with 200 and something that is not a run, or refuses everything",
    "the decision waits. It is given up only if the answer is Prefect's own: `GET /deployments/{id}` gives Prefect's "
    "404 while its `/health` or `/admin/version` answers, or the deployment exists and Prefect refuses the run with "
    "400, 409 or 422",
)
@pytest.mark.parametrize("fault", ["404", {}], ids=["404", "200"])
def test_something_on_the_way_answers_wrongly_for_a_while(
    behind: World, proxy: Proxy, judged: Judged, fault: Fault
) -> None:
    """No decision is given up, and no consumer removed, for what Prefect itself did not say."""
    deployment = behind.deploy("one", Asset(behind.uri("a")))
    behind.begin()
    with proxy.broken(lambda _, path: fault if f"/deployments/{deployment}" in path else None):
        make_updates(behind)
        behind.until(lambda: "waits for its run: " in behind.log, 60)
        behind.until(lambda: len(behind.recorded()) == UPDATES, 60)
        with behind.reader() as ledger:
            assert ledger.status().undeliverable == 0
    behind.until(lambda: len(behind.runs(deployment)) == UPDATES, 120)
    behind.settle()
    assert judged(behind).runs == UPDATES


@pytest.mark.failure(
    "Prefect", "a proxy answers with a 404, with 200 and something that is not a run, or refuses everything"
)
@pytest.mark.parametrize("fault", ["400", "422"])
def test_something_on_the_way_refuses_everything_for_a_while(
    behind: World, proxy: Proxy, judged: Judged, fault: Fault
) -> None:
    """No decision is given up for it, nor one whose events are too many for the context of its run."""
    small = behind.deploy("small", Asset(behind.uri("a")))
    large = behind.deploy("large", Asset(behind.uri("b")))
    behind.begin()
    launching = [f"/deployments/{small}", f"/deployments/{large}", "/artifacts/", "/health", "/admin/version"]
    # What only reads goes on, so that there are decisions to launch.
    with proxy.broken(
        lambda _, path: fault if path != "/api/artifacts/filter" and any(map(path.count, launching)) else None
    ):
        behind.update(behind.uri("a"))
        behind.update(behind.uri("b"), extra={"rows": "x" * (LARGEST_CONTEXT - 20)})
        behind.until(lambda: behind.log.count("Prefect itself does not confirm it") == 2, 60)
        with behind.reader() as ledger:
            assert ledger.status().undeliverable == 0
    behind.until(lambda: len(behind.runs(small)) == len(behind.runs(large)) == 1, 120)
    behind.settle()
    assert judged(behind).runs == 2


@pytest.mark.failure(
    "Prefect",
    "the runs of one deployment hang",
    "its decisions wait, up to 15 s an attempt; after one second, runs of other deployments are created in parallel",
)
def test_the_runs_of_one_deployment_hang(behind: World, proxy: Proxy, judged: Judged) -> None:
    """Those of another one are made at once, not after the time limit of a request."""
    hanging = behind.deploy("hanging", Asset(behind.uri("a")))
    other = behind.deploy("other", Asset(behind.uri("b")))
    behind.begin()
    waits: list[float] = []
    with proxy.broken(lambda _, path: "hang" if f"{hanging}/create_flow_run" in path else None):
        behind.update(behind.uri("a"))
        behind.until(lambda: proxy.faults)
        for number in range(4):
            began = time.monotonic()
            behind.task_recorded(recording(behind.uri("b")))
            behind.until(lambda number=number: len(behind.runs(other)) == number + 1, 60)
            waits.append(time.monotonic() - began)
    assert max(waits) < SECONDS_TO_ANSWER / 2, waits
    behind.settle()
    assert judged(behind).runs == 5


@pytest.mark.failure(
    "Prefect",
    "the artifacts cannot be read for minutes, and only a part of a recording arrived as events",
    "the part waits, and is recorded together with the rest",
)
def test_a_part_of_a_recording_comes_while_the_artifacts_cannot_be_read(
    behind: World, proxy: Proxy, judged: Judged
) -> None:
    """The recording waits for its artifact, however long that takes, and is recorded whole."""
    uri, alias = behind.uri("a"), f"alias-{behind.mark}"
    deployment = behind.deploy("aliased", AssetAlias(alias))
    behind.begin()
    now = datetime.now(UTC)
    events = (
        AssetEvent(uuid4(), Asset(uri), now, Origin("task"), {"part": number}, aliases=(alias,)) for number in range(2)
    )
    whole = Recording(uuid4(), tuple(events))
    with proxy.broken(lambda _, path: "503" if "/artifacts/filter" in path else None):
        # No question of before is under way any more.
        behind.until(lambda: proxy.faults > 1)
        behind.post("/artifacts/", recording_to_artifact(whole))
        behind.post("/events", recording_to_prefect_events(whole)[:1])
        proxy.wait(LAST_RESORT.total_seconds() + 5)
        assert behind.recorded() == []
    behind.until(lambda: len(behind.recorded()) == 2, 60)
    behind.settle()
    assert [each["extra"] for each in events_of(behind.run_of(deployment))] == [{"part": 0}, {"part": 1}]
    assert judged(behind).runs == 1


@pytest.mark.failure(
    "Prefect",
    "Prefect does not answer, or answers 503",
    "log, once: `…; trying again`, and `works again after … s`. Tasks try for `ASSETFLOW_RECORDING_TIMEOUT` seconds, "
    "then fail: a retry is safe",
)
def test_prefect_does_not_answer_for_a_while(behind: World, proxy: Proxy, judged: Judged) -> None:
    """What the user sees: one line when it begins, one when it ends, and `assetflow status`."""
    deployment = behind.deploy("one", Asset(behind.uri("a")))
    behind.begin()
    with proxy.broken(lambda _, __: "503"), proxy.websockets_cut():
        make_updates(behind)
        behind.until(lambda: "reading Prefect's logs: " in behind.log, 60)
        code, said = behind.status()
        assert code == 1
        assert said["evaluator"]["alive"]
        assert not said["prefect"]["reachable"]
        assert "Prefect cannot be asked" in said["problems"][0]
    behind.until(lambda: len(behind.runs(deployment)) == UPDATES, 120)
    behind.until(lambda: "reading Prefect's logs: works again" in behind.log, 60)
    behind.settle()
    judged(behind)


@pytest.mark.failure(
    "Consumers and updates",
    "the deployment is deleted between decision and launch",
    "the decision is undeliverable; `assetflow queue replay` once Prefect takes the run",
)
def test_a_deployment_is_deleted_between_decision_and_launch(behind: World, proxy: Proxy, judged: Judged) -> None:
    """The decision is undeliverable, with the reason; others go on."""
    doomed = behind.deploy("doomed", Asset(behind.uri("a")))
    other = behind.deploy("other", Asset(behind.uri("a")))
    behind.begin()
    with proxy.broken(lambda _, path: "503" if f"{doomed}/create_flow_run" in path else None):
        behind.update(behind.uri("a"))
        behind.until(lambda: behind.runs(other))
        behind.http.delete(f"/deployments/{doomed}").raise_for_status()
        del behind.deployments[doomed]
    behind.until(lambda: behind.status()[1]["undeliverable"] == 1, 60)
    assert "no run for decision" in behind.log
    assert "404" in behind.log
    behind.settle()
    judged(behind, without_run=1)
