"""Examples without a server: what consumers run with when these things happen, in the order of the ledger."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from assetflow.core.simulate import simulate

Step = Mapping[str, Any]


def answer(consumers: Mapping[str, object], steps: Sequence[Step], **more: object) -> dict[str, Any]:
    """The simulator's answer; passes are as in the running system, after every step (4.3)."""
    scenario = {"name": "example", "passes": "live", "consumers": consumers, "steps": steps, **more}
    found = cast("dict[str, Any]", simulate(scenario))
    assert "errors" not in found, found["errors"]
    return found


def runs(consumers: Mapping[str, object], steps: Sequence[Step]) -> dict[str, list[list[str]]]:
    """For each consumer its runs, each as the URIs that it consumed, oldest first."""
    found: dict[str, list[list[str]]] = {name: [] for name in consumers}
    for run in answer(consumers, steps)["runs"]:
        found[run["consumer"]].append([event["asset"] for event in run["events"]])
    return found


def updates(*assets: str) -> list[Step]:
    """One update after the other."""
    return [{"event": asset} for asset in assets]


def task(*outlets: str) -> Step:
    """One task that updates all of these."""
    return {"task": {"outlets": list(outlets)}}
