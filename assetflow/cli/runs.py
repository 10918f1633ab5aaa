"""`assetflow runs ls`: list the flow runs that decisions led to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID

import cyclopts
from rich.text import Text

from assetflow.cli.output import empty_message, id_cell, print_json, rows, show, table, text, time_cell
from assetflow.cli.values import AsJson, AtLeastOne, Wide
from assetflow.cli.watch import watchable
from assetflow.core.rules.runs import FAILED
from assetflow.core.shapes import as_json
from assetflow.core.values.spans import rounded_in_words
from assetflow.core.values.words import some
from assetflow.errors import AssetflowError
from assetflow.ledger.read.decisions import ConsumedAsset
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import DecisionRecord
from assetflow.operations.installation import open_prefect
from assetflow.operations.lookup import find_consumer

app = cyclopts.App(name="runs", help="Flow runs that assetflow started.")

SECONDS_TO_ANSWER = 3.0
_SPARE = ("run id", "decision", "key", "because of", "took")


@app.command
@watchable
def ls(
    *,
    consumer: str | None = None,
    running: bool = False,
    limit: AtLeastOne = 50,
    wide: Wide = False,
    json: AsJson = False,
) -> None:
    """List the flow runs that assetflow started, newest first: why each runs, its state, and how long it took.

    Parameters
    ----------
    consumer
        List only runs of this consumer: flow/deployment, its id, or a flow with one consumer.
    running
        List only runs that have not ended, as far as the evaluator has heard.
    limit
        The largest number of runs to list.
    """
    with Reader.open() as reader:
        number = None if consumer is None else find_consumer(reader, consumer).consumer.id
        status = "launched" if running else None
        found = reader.decisions.find(consumer=number, status=status, has_run=True, limit=limit)
        consumed = reader.decisions.consumed_assets([each.number for each in found])
        empty = empty_message(reader, "No runs." if running or consumer else "No runs yet.")
    states: Mapping[UUID, str] = {} if json else _states([each for each in found if each.ended is None])
    named = [(each, consumed.get(each.number, ())) for each in found]
    if json:
        print_json([as_json(each) | {"flow_run_name": each.run_name(assets)} for each, assets in named])
        return
    now = datetime.now(UTC)
    columns = ("run", "consumer", "key", "because of", "state", "started", "took", "run id", "decision")
    made = table(*columns, right=("took",), whole=("run id", "decision"))
    cells = (_cells(each, assets, states, now, wide) for each, assets in named)
    show(rows(made, cells, empty=empty, spare=_SPARE, wide=wide), wide=wide)


def _states(going_on: Sequence[DecisionRecord]) -> Mapping[UUID, str]:
    """Return the states that Prefect has for runs that have not ended; without an answer from Prefect, none."""
    runs = [each.flow_run_id for each in going_on if each.flow_run_id is not None]
    return asyncio.run(_ask(runs)) if runs else {}


async def _ask(runs: Sequence[UUID]) -> Mapping[UUID, str]:
    from assetflow.prefect_io.flow_runs import MOST, run_states

    with suppress(AssetflowError, TimeoutError):
        async with asyncio.timeout(SECONDS_TO_ANSWER), open_prefect() as api:
            return await run_states(api, runs[:MOST])
    return {}


def _cells(
    each: DecisionRecord, assets: Sequence[ConsumedAsset], states: Mapping[UUID, str], now: datetime, wide: bool
) -> list[Text]:
    present = "" if each.flow_run_id is None else states.get(each.flow_run_id, "")
    state = each.run_state or present or each.status.capitalize()
    took = None if each.launched is None or each.ended is None else each.ended - each.launched
    return [
        text(each.run_name(assets)),
        text(each.consumer_name),
        text(each.target_key or ""),
        text(some([asset.name for asset in assets])),
        text(state, "red" if state in FAILED else "" if each.ended else "cyan"),
        time_cell(each.launched, now),
        Text("" if took is None else rounded_in_words(took)),
        id_cell(each.flow_run_id, wide=wide),
        id_cell(each.id, wide=wide),
    ]
