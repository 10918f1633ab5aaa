"""Write the note on a flow run's page in Prefect that explains why it ran: an artifact in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import UUID

from assetflow.core.explain import DecisionExplanation, KnownNames, source_of
from assetflow.core.values.events import AssetEvent
from assetflow.core.values.keeping import Cause, CauseKind
from assetflow.core.values.words import asset_path, at, consumer_path, event_path, run_path
from assetflow.prefect_io.automation_text import plain_text
from assetflow.prefect_io.names import RUN_NOTE_ARTIFACT, artifact_key
from assetflow.prefect_io.rest import Json, PrefectApi

SHOWN_EVENTS = 100
SHOWN_TEXT = 2_000
TITLE = "Why this ran"
KEY_PREFIX = "why-"

_CAUSES: Mapping[CauseKind, str] = {
    "missing": "was never made",
    "data": "was updated",
    "code": "the code has another version",
    "dependency": "is read since the last deploy, or no more",
    "freshness": "has to be as new as its policy says",
    "backfill": "a backfill asked for it",
}


class RunNotes:
    """assetflow's notes on the pages of a Prefect server's flow runs.

    Parameters:
        ui_url: the address of assetflow's pages; empty for notes without links to them.
    """

    def __init__(self, api: PrefectApi, ui_url: str = "") -> None:
        self._api = api
        self._ui_url = ui_url

    async def present(self, runs: Mapping[UUID, str]) -> set[UUID]:
        """Return the runs that already have their note.

        Parameters:
            runs: the runs, each with the name of its consumer.

        Raises:
            PrefectUnreachable, PrefectRefused
        """
        keys = sorted({note_key(consumer) for consumer in runs.values()})
        wanted = {"flow_run_id": {"any_": [str(run) for run in runs]}, "key": {"any_": keys}}
        answer = cast(
            "list[Json]", await self._api.post("/artifacts/filter", {"artifacts": wanted, "limit": len(runs)})
        )
        return {UUID(str(each["flow_run_id"])) for each in answer}

    async def write(self, explanation: DecisionExplanation) -> None:
        """Put the note of a decision on the page of its run.

        Raises:
            PrefectUnreachable: the note may or may not have been written.
            PrefectRefused: the note cannot be written.
        """
        await self._api.post("/artifacts/", run_note(explanation, self._ui_url))


def run_note(explanation: DecisionExplanation, ui_url: str = "") -> dict[str, Any]:
    """Return the body that creates the note of a decision's run.

    Parameters:
        explanation: the explanation of the decision.
        ui_url: the address of assetflow's pages; empty for a note without links to them.
    """
    run = explanation.facts.run.flow_run_id
    return {
        # Each consumer has its own key, so that Prefect's list of artifacts shows its latest run and the history.
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
    because = explanation.facts.decision.because
    if explanation.facts.decision.kind in ("eager", "lazy") and because:
        parts.append(_table_of_causes(because[:SHOWN_EVENTS], explanation.names, ui_url))
        if len(because) > SHOWN_EVENTS:
            parts.append(f"and {len(because) - SHOWN_EVENTS} more")
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
    # Prefect cuts off what does not fit on the right.
    heads = ["", "Updated", *(["Partition"] if has_keys else []), "When", "By"]
    return _in_markdown(heads, [_row(event, completed_by, ui_url, has_keys=has_keys) for event in events])


def _table_of_causes(causes: Sequence[Cause], names: KnownNames, ui_url: str) -> str:
    """Return why an Eager or Lazy flow was asked for the run, a row for each cause."""
    has_keys = any(cause.key is not None for cause in causes)
    heads = ["Because", "Asset", *(["Partition"] if has_keys else [])]
    return _in_markdown(heads, [_row_of_cause(cause, names, ui_url, has_keys=has_keys) for cause in causes])


def _row_of_cause(cause: Cause, names: KnownNames, ui_url: str, *, has_keys: bool) -> list[str]:
    asset_link = f" · [asset]({ui_url}{asset_path(cause.uri)})" if ui_url and cause.uri else ""
    key = [plain_text(cause.key or "")] if has_keys else []
    return [_CAUSES[cause.kind], plain_text(names.name_of(cause.uri)) + asset_link, *key]


def _in_markdown(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def _row(event: AssetEvent, completed_by: AssetEvent | None, ui_url: str, *, has_keys: bool) -> list[str]:
    completed = completed_by is not None and event.id == completed_by.id
    event_link = f" · [event]({ui_url}{event_path(event.id)})" if ui_url else ""
    return [
        "last one needed" if completed else "",
        plain_text(event.asset.name) + event_link,
        *([plain_text(event.partition_key or "")] if has_keys else []),
        plain_text(at(event.occurred)),
        _source(event),
    ]


def _source(event: AssetEvent) -> str:
    """Return who made the event, with a link to the run's page in Prefect."""
    from prefect.utilities.urls import url_for

    run = event.source_flow_run
    url = None if run is None else url_for("flow-run", obj_id=run.id)
    # Prefect's pages show the text of a link as it is written, so that it must need no escapes.
    return plain_text(source_of(event.origin)) + ("" if url is None else f" · [run]({url})")


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_TEXT else f"{text[:SHOWN_TEXT]}…"
