"""How long from `POST /events` to the flow run's row, beside Prefect's own automation: `python -m benchmarks.latency`.

One Prefect server, one evaluator. In turn, an update that assetflow's consumer waits for and one that Prefect's
automation waits for are posted, one at a time; the run's row tells when it was made. AND conditions get one of their
two updates before the clock starts. Then a burst of updates for one consumer, one system after the other.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Condition
from assetflow.prefect_io.automations import condition_triggers
from assetflow.prefect_io.names import ASSET_UPDATED
from benchmarks.report import Figures, median, parser, quantile, tell
from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

# What comes later counts as lost; Prefect's compound triggers lose some.
PATIENCE = 15.0
PAUSE_BEFORE_AND = 0.3
MOST_SECONDS = 180.0


class Road:
    """A consumer, by one of the two systems: updates go in, runs of its deployment come out."""

    def __init__(self, site: Installation, name: str, schedule: Callable[[list[Asset]], Condition], *, ours: bool):
        self._site = site
        self.assets = [Asset(f"s3://lake/{name}-{letter}-{site.mark}") for letter in "ab"]
        condition = schedule(self.assets)
        self._deployment = site.deploy(name, condition) if ours else self._automated(name, condition)
        self.runs = 0

    def _automated(self, name: str, condition: Condition) -> str:
        """A deployment that Prefect's automation on the same events runs."""
        flow = self._site.post("/flows/", {"name": f"plain-{self._site.mark}"})["id"]
        deployment: str = self._site.post("/deployments/", {"name": name, "flow_id": flow})["id"]
        (trigger,) = condition_triggers(condition, {ASSET_UPDATED})
        action = {"type": "run-deployment", "source": "selected", "deployment_id": deployment}
        automation = {"name": name, "trigger": trigger.model_dump(mode="json"), "actions": [action]}
        self._site.post("/automations/", automation)
        return deployment

    def latency(self, *assets: Asset) -> float | None:
        """Seconds from the update of the last asset to the run; none if there is none in time."""
        *first, last = assets
        for asset in first:
            self._site.update(asset.uri)
            time.sleep(PAUSE_BEFORE_AND)
        posted = datetime.now(UTC)
        self._site.update(last.uri)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if (runs := self.count()) > self.runs:
                self.runs = runs
                return (self.newest() - posted).total_seconds()
            time.sleep(0.02)
        self.runs = self.count()
        return None

    def burst(self, updates: int) -> float:
        """Runs a second, from the first update to the last run."""
        self.rest()
        events = [event(self.assets[0].uri) for _ in range(updates)]
        before = self.count()
        started = datetime.now(UTC)
        self._site.post("/events", events)
        deadline = time.monotonic() + MOST_SECONDS
        while self.count() < before + updates and time.monotonic() < deadline:
            time.sleep(0.5)
        runs = self.count() - before
        return runs / (self.newest() - started).total_seconds()

    def rest(self) -> None:
        """Wait until Prefect has marked all runs as late, which keeps it busy; nobody executes them."""
        waiting = {"flow_runs": {"state": {"name": {"any_": ["Scheduled"]}}}}
        deadline = time.monotonic() + MOST_SECONDS
        while self._site.post("/flow_runs/count", waiting) and time.monotonic() < deadline:
            time.sleep(0.5)

    def newest(self) -> datetime:
        """When the newest run was made."""
        body = {"deployments": {"id": {"any_": [self._deployment]}}, "sort": "EXPECTED_START_TIME_DESC", "limit": 10}
        return max(datetime.fromisoformat(run["created"]) for run in self._site.post("/flow_runs/filter", body))

    def count(self) -> int:
        return int(self._site.post("/flow_runs/count", {"deployments": {"id": {"any_": [self._deployment]}}}))


@contextmanager
def installation(*, start: bool = True) -> Iterator[Installation]:
    """A Prefect server and an evaluator, each a process of its own; the evaluator is started here, or later."""
    with tempfile.TemporaryDirectory(prefix="assetflow-latency-") as folder:
        home = Path(folder) / "assetflow"
        home.mkdir()
        with PrefectServer(Path(folder) / "prefect") as server:
            site = Installation(server, home)
            if start:
                site.start()
            try:
                yield site
            finally:
                # They go with the server.
                site.deployments.clear()
                site.close()


def figures(samples: int, burst: int) -> Figures:
    """All figures."""
    with installation() as site:
        roads = {
            "single": [Road(site, f"single-{ours}", lambda assets: assets[0], ours=ours) for ours in (True, False)],
            "and": [
                Road(site, f"and-{ours}", lambda assets: assets[0] & assets[1], ours=ours) for ours in (True, False)
            ],
        }
        site.wait_for_consumers()
        taken = {name: _in_turn(pair[0], pair[1], samples, both=name == "and") for name, pair in roads.items()}
        bursts = [road.burst(burst) for road in roads["single"]]
    rows = [_row(name, system, found) for name, pair in taken.items() for system, found in pair.items()]
    ours, theirs = ([x for pair in taken.values() for x in pair[system] if x is not None] for system in SYSTEMS)
    return {
        "latency_ratio_median": round(median(ours) / median(theirs), 3),
        "latency_ratio_p95": round(quantile(ours, 0.95) / quantile(theirs, 0.95), 3),
        "burst_ratio": round(bursts[0] / bursts[1], 1),
        "median_ms": round(1000 * median(ours), 1),
        "p95_ms": round(1000 * quantile(ours, 0.95), 1),
        "prefect_median_ms": round(1000 * median(theirs), 1),
        "prefect_p95_ms": round(1000 * quantile(theirs, 0.95), 1),
        "burst_runs_per_second": round(bursts[0], 1),
        "prefect_burst_runs_per_second": round(bursts[1], 2),
        "roads": rows,
    }


SYSTEMS = ("assetflow", "prefect")


def _in_turn(ours: Road, theirs: Road, samples: int, *, both: bool) -> dict[str, list[float | None]]:
    taken: dict[str, list[float | None]] = {system: [] for system in SYSTEMS}
    for _ in range(samples):
        for system, road in zip(SYSTEMS, (ours, theirs), strict=True):
            taken[system].append(road.latency(*road.assets[: 2 if both else 1]))
    return taken


def _row(name: str, system: str, taken: list[float | None]) -> Figures:
    found = [seconds for seconds in taken if seconds is not None]
    return {
        "condition": name,
        "system": system,
        "samples": len(taken),
        "without_run": len(taken) - len(found),
        "median_ms": round(1000 * median(found), 1),
        "p95_ms": round(1000 * quantile(found, 0.95), 1),
    }


def event(uri: str) -> dict[str, object]:
    """Return an update as it is posted to Prefect."""
    return {
        "id": str(uuid4()),
        "event": "assetflow.asset.updated",
        "occurred": datetime.now(UTC).isoformat(),
        "resource": {"prefect.resource.id": uri},
        "related": [],
        "payload": {},
    }


def main() -> None:
    """Measure, and print the figures."""
    options = parser(__doc__)
    options.add_argument("--samples", type=int, default=300, help="updates for each condition and system")
    options.add_argument("--burst", type=int, default=200, help="updates at once")
    given = options.parse_args()
    tell(figures(given.samples, given.burst), as_json=given.json)


if __name__ == "__main__":
    main()
