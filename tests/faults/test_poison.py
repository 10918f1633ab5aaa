"""Updates that nobody can record, beside good ones: they are refused with a reason, and stop nothing else."""

import json
import math
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from assetflow.core.values.assets import Asset
from assetflow.prefect_io.recordings import recording_to_artifact
from tests.faults.conftest import Judged
from tests.faults.world import World
from tests.integration.installation import recording

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(600)]


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels - 1):
        found = {"x": found}
    return found


# What an event holds, and a word of the reason why it is refused.
POISON: dict[str, tuple[Mapping[str, object], str]] = {
    "a NUL in the URI": ({"uri": "a\x00b"}, "URI"),
    "an integer of 2^70": ({"extra": {"n": 2**70}}, "beyond 64 bits"),
    "300 levels": ({"extra": nested(300)}, "nested more than 50 levels"),
    "a lone surrogate": ({"extra": {"f": "\udce9"}}, "lone surrogate"),
    "a NUL in the extra": ({"extra": {"f": "a\x00"}}, "NUL"),
    "NaN": ({"extra": {"r": math.nan}}, "not a finite number"),
}
# What only comes along is made to fit.
FITTED: Mapping[str, object] = {
    "metrics": {"rows": 2, "rate": math.nan, "huge": 2**70},
    "origin": {
        "kind": "task",
        "flow_run": {"id": str(uuid4()), "parameters": {"x": math.inf, "deep": nested(300), "n": 2**70}},
    },
}


def make_artifact(world: World, **changed: object) -> None:
    """Create an artifact of an update by hand, with something else in its event."""
    body = recording_to_artifact(recording(world.uri("a")))
    data = json.loads(str(body["data"]))
    data["events"][0] |= changed
    world.post("/artifacts/", body | {"data": json.dumps(data)})


def make_updates(world: World) -> None:
    """Make a good update after each poisoned one, which another process has no trouble to post again."""
    for changed, _ in POISON.values():
        make_artifact(world, **changed)
        world.task_recorded(recording(world.uri("a")), events=False)
    make_artifact(world, **FITTED)


@pytest.mark.failure(
    "Prefect",
    "an update that nobody can record: NUL in the URI, an integer beyond 64 bits, 300 levels, a lone surrogate, NaN",
    "a task's attempt fails; `emit` and the API refuse it; through Prefect it is kept as refused. Others are not "
    "affected",
)
def test_poison_beside_good_updates_and_a_kill_in_between(world: World, judged: Judged) -> None:
    deployment = world.deploy("one", Asset(world.uri("a")))
    good = len(POISON) + 1
    world.begin()
    make_updates(world)
    world.until(lambda: len(world.recorded()) >= good, 60)
    world.kill()
    make_updates(world)
    # It reads the poisoned ones of before again, too.
    world.start()
    world.until(lambda: len(world.recorded()) == 2 * good, 60)
    # Prefect's own lists of runs hold what came along with the updates.
    world.until(lambda: len(world.runs(deployment)) == 2 * good, 60)
    world.settle()
    with world.reader() as ledger:
        reasons = [each.reason for each in ledger.events.refused()]
    for name, (_, word) in POISON.items():
        assert sum(word in each for each in reasons) >= 2, (name, reasons)
    assert len(reasons) == 2 * len(POISON)
    assert world.log.count("Traceback") == 0
    assert judged(world).runs == 2 * good


@pytest.mark.failure(
    "Prefect",
    "an update that nobody can record: NUL in the URI, an integer beyond 64 bits, 300 levels, a lone surrogate, NaN",
)
def test_nobody_can_emit_poison(world: World) -> None:
    world.start()
    for extra in ('{"n": 1e999}', '{"f": "\\udce9"}', f'{{"n": {2**70}}}', json.dumps(nested(300))):
        refused = world.command("emit", world.uri("a"), "--extra", extra)
        assert refused.returncode == 2, refused.stdout
        assert "extra" in refused.stderr
    assert world.command("emit", "a\x01b").returncode == 2
    assert world.recorded() == []
