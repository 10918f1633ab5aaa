"""Lay out runs for a terminal, and ask Prefect how those stand that have not ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

from rich.console import RenderableType
from rich.text import Text

from assetflow.cli.output import id_cell, rows, state_text, table, text, time_cell
from assetflow.core.rules.ended_runs import EndedRun
from assetflow.core.values.words import rounded_in_words
from assetflow.errors import AssetflowError
from assetflow.ledger.records import DecisionRecord
from assetflow.operations.installation import open_prefect
from assetflow.operations.needs import ListedRun

SPARE = ("run id", "because of", "key", "run", "took", "started")
SECONDS_TO_ANSWER = 3.0


def runs_table(found: Sequence[ListedRun], *, empty: str, wide: bool = False) -> RenderableType:
    """Return a table of runs that have ended.

    Parameters:
        empty: what to say without runs.
    """
    now = datetime.now(UTC)
    made = table("state", "flow", "key", "because of", "started", "took", "error", "run", "run id", right=("took",))
    return rows(made, (_cells(each, now, wide) for each in found), empty=empty, spare=SPARE, wide=wide)


def _cells(each: ListedRun, now: datetime, wide: bool) -> list[Text]:
    return [
        state_text(each.state + (", made good" if each.made_good else ""), each.outcome),
        text(each.flow),
        text(each.target_key or ""),
        text(each.because),
        time_cell(each.began, now),
        took(each),
        text(each.error),
        text(each.name),
        id_cell(each.flow_run_id, wide=wide),
    ]


def took(each: EndedRun) -> Text:
    """Return how long a run took."""
    return Text("" if each.began is None else rounded_in_words(each.ended - each.began))


def states_now(going_on: Sequence[DecisionRecord]) -> Mapping[UUID | None, str]:
    """Return the states that Prefect has for runs that have not ended; without an answer from Prefect, none."""
    runs = [each.flow_run_id for each in going_on if each.flow_run_id is not None]
    return asyncio.run(_ask(runs)) if runs else {}


async def _ask(runs: Sequence[UUID]) -> Mapping[UUID | None, str]:
    from assetflow.prefect_io.flow_runs import MOST, run_states

    with suppress(AssetflowError, TimeoutError):
        async with asyncio.timeout(SECONDS_TO_ANSWER), open_prefect() as api:
            return {**await run_states(api, runs[:MOST])}
    return {}
