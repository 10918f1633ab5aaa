"""Consumers changed, paused, resumed, removed and deployed anew while updates come in."""

import time
from collections import Counter

import pytest

from assetflow.core.values.assets import Asset
from tests.faults.conftest import Judged
from tests.faults.world import World

pytestmark = [pytest.mark.faults, pytest.mark.prefect, pytest.mark.timeout(600)]

UPDATES = 150


def switch(world: World, deployment: str, *, enabled: bool) -> None:
    """The switch of the automation, as a person moves it in Prefect."""
    (automation,) = world.http.get(f"/automations/related-to/prefect.deployment.{deployment}").json()
    world.http.patch(f"/automations/{automation['id']}", json={"enabled": enabled}).raise_for_status()


@pytest.mark.failure(
    "Consumers and updates",
    "a consumer is changed, paused, resumed, removed or deployed again under load",
    "each update has one receipt for each consumer",
)
def test_consumers_change_under_load(world: World, judged: Judged) -> None:
    a, b, c, d = (Asset(world.uri(name)) for name in "abcd")
    world.deploy("steady", a & b)
    world.deploy("changed", a & b)
    paused = world.deploy("paused", a | b)
    removed = world.deploy("removed", c | d)
    world.begin()
    world.produce("post", UPDATES, seed=5)
    world.produce("task", 30, seed=5)
    steps = [
        lambda: world.deploy("changed", c | (a & d)),
        lambda: switch(world, paused, enabled=False),
        lambda: world.http.delete(f"/deployments/{removed}").raise_for_status(),
        lambda: world.kill() or world.start(ready=False),
        lambda: world.deploy("changed", b & c),
        lambda: switch(world, paused, enabled=True),
        lambda: world.deploy("removed", c & d),
    ]
    while not world.produced() or steps:
        if steps:
            steps.pop(0)()
        time.sleep(1.5)
    world.deployments.pop(removed)
    world.settle()
    judged(world, unfolded={"changed", "paused", "removed"}, deleted={removed})
    every_update_has_one_receipt_for_each_consumer(world)


def every_update_has_one_receipt_for_each_consumer(world: World) -> None:
    with world.reader() as ledger:
        for event in world.recorded():
            receipts = [each.receipt for each in ledger.receipts.of_event(event.id)]
            assert receipts, f"{event.uri} has no receipt"
            assert max(Counter(each.consumer for each in receipts).values()) == 1
        names = {each.consumer.name.rpartition("/")[2] for each in ledger.consumers.all()}
        assert names == {"steady", "changed", "paused", "removed"}
