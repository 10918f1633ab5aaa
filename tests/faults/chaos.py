"""What goes wrong, in an order that a seed decides."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from tests.faults.world import World

Blow = Callable[[World, random.Random], None]


def kill_evaluator(world: World, _: random.Random) -> None:
    world.kill()
    world.start(ready=False)


def stop_evaluator(world: World, _: random.Random) -> None:
    # It may be at its start, waiting for a Prefect that is just being started.
    world.evaluator.terminate()
    world.evaluator.wait(30)
    world.start(ready=False)


def freeze_evaluator(world: World, dice: random.Random) -> None:
    world.freeze()
    time.sleep(dice.uniform(0.5, 3))
    world.thaw()


def kill_server(world: World, _: random.Random) -> None:
    world.server.kill()
    world.server.start()


def stop_server(world: World, _: random.Random) -> None:
    world.server.stop()
    world.server.start()


def freeze_server(world: World, dice: random.Random) -> None:
    world.server.pause()
    time.sleep(dice.uniform(0.5, 4))
    world.server.resume()


def kill_producer(world: World, dice: random.Random) -> None:
    dice.choice(world.producers).kill()


BLOWS: Sequence[Blow] = (
    kill_evaluator,
    stop_evaluator,
    freeze_evaluator,
    kill_server,
    stop_server,
    freeze_server,
    kill_producer,
    kill_producer,
)


def storm(world: World, seed: int, blows: Sequence[Blow], seconds: float) -> None:
    """Strike one blow after the other while the producers work; return when they have made all of their updates.

    Parameters:
        seconds: time limit.
    """
    dice = random.Random(seed)
    ahead = list(blows)
    deadline = time.monotonic() + seconds
    while not world.produced() or ahead:
        assert time.monotonic() < deadline, f"not within {seconds:g} s; the evaluator says:\n{world.log[-3000:]}"
        time.sleep(dice.uniform(0.2, 1.5))
        if world.evaluator.poll() is None:
            world.end_coalesced_runs()
        if ahead:
            ahead.pop(0)(world, dice)


def shuffled(seed: int, count: int) -> list[Blow]:
    """So many blows, each kind about equally often."""
    dice = random.Random(seed)
    return [dice.choice(BLOWS) for _ in range(count)]
