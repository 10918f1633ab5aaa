"""What goes wrong, in an order that a seed decides."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from typing import get_args

from assetflow.crash_points import EvaluatorPoint
from tests.faults.worker import Worker
from tests.faults.world import World

Blow = Callable[[World, random.Random], None]


def kill_evaluator(world: World, _: random.Random) -> None:
    world.kill()
    world.start(ready=False)


def crash_evaluator(world: World, dice: random.Random) -> None:
    """It kills itself when it reaches a certain place; the storm starts another one."""
    world.kill()
    world.start(crash_at=dice.choice(get_args(EvaluatorPoint)), ready=False)


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


def kill_worker(world: World, _: random.Random) -> None:
    worker(world).kill()
    worker(world).start()


def stop_worker(world: World, _: random.Random) -> None:
    worker(world).stop()
    worker(world).start()


def freeze_worker(world: World, dice: random.Random) -> None:
    worker(world).freeze()
    time.sleep(dice.uniform(0.5, 3))
    worker(world).thaw()


def lose_power_of_worker(world: World, _: random.Random) -> None:
    worker(world).lose_power()
    worker(world).start()


def kill_flow_runs(world: World, _: random.Random) -> None:
    worker(world).kill_runs()


def order_a_run(world: World, dice: random.Random) -> None:
    if world.worker is not None:
        world.worker.order(*(world.uri(name) for name in dice.choice(["ab", "c", "bd", "d"])))


def worker(world: World) -> Worker:
    assert world.worker is not None
    return world.worker


def kill_producer(world: World, dice: random.Random) -> None:
    if at_work := [producer for producer in world.producers if not producer.is_done]:
        dice.choice(at_work).kill()


BLOWS: Sequence[Blow] = (
    kill_evaluator,
    crash_evaluator,
    stop_evaluator,
    freeze_evaluator,
    kill_server,
    stop_server,
    freeze_server,
    kill_producer,
    kill_producer,
)
BLOWS_TO_WORKERS: Sequence[Blow] = (kill_worker, stop_worker, freeze_worker, lose_power_of_worker, kill_flow_runs)


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
        else:
            assert world.evaluator.returncode == -signal.SIGKILL, world.log[-3000:]
            world.start(ready=False)
        if ahead:
            if len(ahead) % 2:
                order_a_run(world, dice)
            ahead.pop(0)(world, dice)
    if world.worker is not None:
        world.worker.work_off()


def shuffled(seed: int, count: int) -> list[Blow]:
    """So many blows, each kind about equally often, and in between each kind of blow to workers once."""
    dice = random.Random(seed)
    blows = [*BLOWS_TO_WORKERS, *(dice.choice(BLOWS) for _ in range(count))]
    dice.shuffle(blows)
    return blows
