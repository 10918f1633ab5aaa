"""The note on a flow run's page in Prefect that says why it ran: an artifact in Markdown, from the one explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from prefect.utilities.urls import url_for

from assetflow.core.events import AssetEvent
from assetflow.core.explanation import DecisionExplanation, source_of
from assetflow.core.explanation.words import at
from assetflow.core.page_paths import consumer_path, event_path, run_path
from assetflow.prefect_io.markdown import plain_text
from assetflow.prefect_io.names import RUN_NOTE_ARTIFACT, artifact_key
from assetflow.prefect_io.rest import Json, PrefectApi

SHOWN_EVENTS = 100
SHOWN_TEXT = 2_000
TITLE = "Why this ran"
KEY_PREFIX = "why-"


@dataclass(frozen=True)
class Noteless:
    """A run that has no note, as far as the ledger knows."""

    decision: UUID
    consumer: str
    flow_run: UUID


class RunNotes:
    """Our notes on the pages of a Prefect server's flow runs."""

    def __init__(self, api: PrefectApi) -> None:
        self._api = api

    async def present(self, wanted: Sequence[Noteless]) -> set[UUID]:
        """Those of the runs that have their note.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        runs = [str(each.flow_run) for each in wanted]
        keys = sorted({note_key(each.consumer) for each in wanted})
        body = {"artifacts": {"flow_run_id": {"any_": runs}, "key": {"any_": keys}}, "limit": len(runs)}
        answer = cast("list[Json]", await self._api.post("/artifacts/filter", body))
        return {UUID(str(each["flow_run_id"])) for each in answer}

    async def write(self, note: Json) -> None:
        """Put a note on its run's page.

        Raises:
            PrefectUnreachable: unknown whether it is there now.
            PrefectRefused: it never will be.
        """
        await self._api.post("/artifacts/", note)


def run_note(explanation: DecisionExplanation, ui_url: str = "") -> dict[str, Any]:
    """The body that creates the note of a decision's run.

    Parameters:
        ui_url: where assetflow's own pages are; empty if there are none to link to.
    """
    run = explanation.facts.run.flow_run_id
    return {
        # One key for each consumer: Prefect's list of artifacts shows its latest run and the history.
        "key": note_key(explanation.facts.consumer),
        "type": RUN_NOTE_ARTIFACT,
        "description": TITLE,
        "data": _markdown(explanation, ui_url.rstrip("/")),
        "flow_run_id": None if run is None else str(run),
    }


def note_key(consumer: str) -> str:
    return f"{KEY_PREFIX}{artifact_key(consumer, consumer)}"


def _markdown(explanation: DecisionExplanation, ui_url: str) -> str:
    events = explanation.oldest_events(SHOWN_EVENTS)
    parts = [plain_text(_shortened(explanation.words))]
    if events:
        parts.append(_table(events, explanation.completed_by, ui_url))
    if explanation.consumed > len(events):
        parts.append(f"and {explanation.consumed - len(events)} more")
    run = explanation.facts.run.flow_run_id
    if ui_url and run is not None:
        links = (
            f"[this run]({ui_url}{run_path(run)})",
            f"[its flow]({ui_url}{consumer_path(explanation.facts.consumer)})",
        )
        parts.append("In assetflow: " + " · ".join(links))
    return "\n\n".join(parts) + "\n"


def _table(events: Sequence[AssetEvent], completed_by: AssetEvent | None, ui_url: str) -> str:
    has_keys = any(event.partition_key is not None for event in events)
    # What does not fit is cut off on the right.
    heads = ["", "Updated", *(["Partition"] if has_keys else []), "When", "By"]
    rows = [_row(event, completed_by, ui_url, has_keys=has_keys) for event in events]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def _row(event: AssetEvent, completed_by: AssetEvent | None, ui_url: str, *, has_keys: bool) -> list[str]:
    completed = completed_by is not None and event.id == completed_by.id
    event_link = f" · [event]({ui_url}{event_path(event.id)})" if ui_url else ""
    return [
        "completed it" if completed else "",
        plain_text(event.asset.name) + event_link,
        *([plain_text(event.partition_key or "")] if has_keys else []),
        plain_text(at(event.occurred)),
        _source(event),
    ]


def _source(event: AssetEvent) -> str:
    """Who made the event, with a link to the run's own page in Prefect."""
    run = event.source_flow_run
    url = None if run is None else url_for("flow-run", obj_id=run.id)
    # Prefect's pages show the text of a link as it is written, so that it must need no escapes.
    return plain_text(source_of(event.origin)) + ("" if url is None else f" · [run]({url})")


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}…"
