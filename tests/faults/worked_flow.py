"""The flow that a worker executes in a world of faults: one task that updates assets, and can be held in its middle."""

import json
import os
import time
from pathlib import Path
from typing import Any

from prefect.runtime import task_run

import assetflow
from assetflow import Asset

PATIENCE = 120


def note(path: str, **said: object) -> None:
    """One durable line in the notes of this world's runs."""
    with Path(path).open("a") as file:
        file.write(json.dumps({**said, "pid": os.getpid()}) + "\n")
        file.flush()
        os.fsync(file.fileno())


@assetflow.flow
def work(uris: list[str], notes: str, gate: str | None = None) -> None:
    """Update assets in one task; with a gate, the task waits in its middle until that file is there."""
    assets = [Asset(uri) for uri in uris]

    @assetflow.task(outlets=assets)
    def update(outlet_events: Any = None) -> str:
        token = f"worked-{task_run.id}"
        note(notes, at_work=token)
        deadline = time.monotonic() + PATIENCE
        while gate and not Path(gate).exists():
            assert time.monotonic() < deadline, "nobody opened the gate"
            time.sleep(0.05)
        for asset in assets:
            outlet_events[asset].extra = {"token": token}
        return token

    note(notes, accepted=update())
