"""Pruning a ledger together with the artifacts that its Prefect keeps."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.errors import LedgerForeign
from assetflow.evaluator.process import binding
from assetflow.evaluator.process.binding import SHORTEST, PruneReport, prune
from assetflow.ledger import Ledger
from assetflow.ledger.read.explanations import run_explanation
from assetflow.ledger.read.pruning import Pruned
from assetflow.prefect_io import logs
from assetflow.prefect_io.logs import ArtifactLog
from assetflow.prefect_io.recordings import recording_to_artifact
from assetflow.prefect_io.rest import prefect_api
from assetflow.prefect_io.run_notes import run_note
from tests.environment.prefect_server import PrefectServer
from tests.ledger.making import deploy

pytestmark = [pytest.mark.prefect, pytest.mark.long]

A, B, C = (Asset(f"s3://lake/{name}") for name in "abc")
NOTHING = {"recordings": 0, "events of runs": 0, "notes of runs": 0}


class Site:
    """A ledger and a Prefect in which everything was made some moments ago."""

    def __init__(self, http: httpx.Client, ledger: Ledger) -> None:
        self.http = http
        self.ledger = ledger

    def task(self, *assets: Asset, record: bool = True) -> tuple[str, Sequence[Decision]]:
        """A task's recording: the artifact's id, and what was decided."""
        now = datetime.now(UTC)
        recording = Recording(uuid4(), tuple(AssetEvent(uuid4(), each, now, Origin("task")) for each in assets))
        decisions = self.ledger.writer.events.record([recording], now)[0][1] if record else []
        return self.put(recording_to_artifact(recording)), decisions

    def put(self, artifact: Any) -> str:
        return self.http.post("/artifacts/", json=artifact).raise_for_status().json()["id"]

    def flow_run(self) -> UUID:
        flow = self.http.post("/flows/", json={"name": "consumer"}).raise_for_status().json()["id"]
        body = {"flow_id": flow, "state": {"type": "SCHEDULED"}}
        return UUID(self.http.post("/flow_runs/", json=body).raise_for_status().json()["id"])

    def run(self, decision: Decision, *, ends: bool) -> tuple[str, UUID]:
        """Give a decision its run; the id of the note on its page."""
        run, now = self.flow_run(), datetime.now(UTC)
        self.ledger.writer.decisions.launched(decision.id, run, now)
        if ends:
            self.ledger.writer.decisions.ended("Completed", now, decision_id=decision.id)
        return self.put(run_note(run_explanation(self.ledger.reader, run))), run

    def artifacts(self) -> set[str]:
        found = self.http.post("/artifacts/filter", json={"limit": 200}).raise_for_status().json()
        return {each["id"] for each in found}


def events_of(decision: Decision) -> dict[str, Any]:
    """The artifact with the events of a decision."""
    about = {"decision": str(decision.id)}
    return {"key": "events-third", "type": "assetflow-triggering-events", "metadata_": about, "data": "[]"}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    # Some pages with few artifacts each.
    monkeypatch.setattr(logs, "PAGE", 3)
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path))
    with (
        PrefectServer(tmp_path / "prefect") as server,
        server.used_here(),
        server.http() as http,
        Ledger.open(tmp_path / "ledger.db") as ledger,
    ):
        yield Site(http, ledger)


async def prune_before(site: Site, moment: datetime, *, dry_run: bool = False) -> PruneReport:
    """Prune as somebody will some day, when all that is from before this moment is old and Prefect was read."""
    later = moment + SHORTEST
    for log in ("events", "artifacts"):
        site.ledger.writer.set_cursor(log, later.isoformat())
    return await prune(SHORTEST, later, dry_run=dry_run)


async def test_old_artifacts_go_with_what_the_ledger_had_of_them(site: Site) -> None:
    deploy(site.ledger, A)
    deploy(site.ledger, A & B, "flow/both")
    kept, gone = set[str](), set[str]()
    # Queued for the second consumer, so all of it stays; then that one runs too, and its end is what matters.
    held, (first,) = site.task(A)
    note, _ = site.run(first, ends=True)
    gone.add(note)
    kept.add(held)
    deploy(site.ledger, C, "flow/third")
    for _ in range(4):
        artifact, (decision,) = site.task(C)
        note, _ = site.run(decision, ends=True)
        gone |= {artifact, note, site.put(events_of(decision))}
    artifact, (decision,) = site.task(C)
    note, run = site.run(decision, ends=False)
    kept |= {artifact, note, site.put(events_of(decision))}
    # What users wrote stays, whatever it is called; a recording that is older than the ledger goes.
    kept.add(site.put({"key": "why-mine", "type": "markdown", "description": "Why this ran", "data": "x"}))
    kept.add(site.put({"key": "why-mine", "type": "markdown", "data": "x", "flow_run_id": str(run)}))
    gone.add(site.task(B, record=False)[0])
    before = datetime.now(UTC)
    kept |= {site.task(C)[0] for _ in range(5)}
    with pytest.raises(LedgerForeign):
        await prune_before(site, before)
    async with prefect_api() as api:
        await binding.bind(api, site.ledger.id)
        foreseen = await prune_before(site, before, dry_run=True)
        assert site.artifacts() == kept | gone
        done = await prune_before(site, before)
        assert site.artifacts() == kept
        assert (done.rows, done.artifacts) == (foreseen.rows, foreseen.artifacts)
        assert done.artifacts == {"recordings": 5, "events of runs": 4, "notes of runs": 5}
        assert done.rows == Pruned(events=4, receipts=4, decisions=4)
        again = await prune_before(site, before)
        assert (again.rows, again.artifacts) == (Pruned(), NOTHING)
        # Whoever reads all artifacts again finds nothing that the ledger does not know.
        async for artifact in ArtifactLog(api).updates_since(site.ledger.created - timedelta(days=1)):
            assert artifact["id"] in kept
