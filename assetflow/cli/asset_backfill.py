"""`assetflow backfill URI`, `ls`, `show`, `stop` and `resume`: backfills of assets, which the evaluator carries out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from time import sleep

from rich.text import Text

from assetflow.cli.output import empty_message, id_cell, print_json, rows, show, state_text, table, text, time_cell
from assetflow.cli.values import read_range, this_user
from assetflow.core.freshness.records import StepState
from assetflow.core.shapes import as_json
from assetflow.core.values.words import count, shown, some
from assetflow.evaluator.liveness import downtime
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.backfills import BackfillRecord, Planned
from assetflow.ledger.read.reader import Reader
from assetflow.operations import backfill
from assetflow.operations.backfill import BackfillWanted, asset_to_backfill, find_backfill, plan
from assetflow.operations.deciding_ledger import Decider
from assetflow.operations.installation import Installation

LOOK_EVERY = 0.3


def backfill_asset(
    asset: str,
    keys: Sequence[str],
    start: str | None,
    end: str | None,
    *,
    concurrency: int | None,
    why: str,
    dry_run: bool,
    wait: bool,
    json: bool,
) -> int:
    """Backfill an asset, or show what that would run; return the exit status."""
    with Ledger.open() as ledger:
        uri, down = asset_to_backfill(ledger.reader, asset)
        between = None if start is None and end is None else read_range(start, end)
        wanted = BackfillWanted(uri, down, keys, between)
        planned = plan(ledger.reader, wanted)
        if dry_run:
            _show_waves(uri, planned, json=json)
            return 0
        most = concurrency or backfill.CONCURRENCY
        made = backfill.begin(_here(ledger), wanted, planned, concurrency=most, by=this_user(), why=why)
        if wait:
            made = _wait_for(ledger.reader, made)
        elif not (evaluators := ledger.reader.evaluators()).alive:
            sys.stderr.write(f"{downtime(evaluators)}\n")
    _tell(made, json=json)
    return int(made.state == "failed")


def list_backfills(*, json: bool) -> None:
    """List the backfills of assets, newest first."""
    with Reader.open() as reader:
        found = reader.backfills.all()
        empty = empty_message(reader, "No backfills of assets yet.")
    if json:
        print_json([each.shown() for each in found])
        return
    now = datetime.now(UTC)
    made = table("backfill", "asset", "state", "done", "failed", "taken off", "of", "made", "by", "why")
    spare = ("why", "taken off", "by", "made")
    show(rows(made, (_cells(each, now) for each in found), empty=empty, spare=spare))


def show_backfill(number: int, *, json: bool) -> None:
    """Show how far a backfill has come, wave by wave, and what failed."""
    with Reader.open() as reader:
        record = find_backfill(reader, number)
        columns = reader.backfills.progress(number)
        failed = reader.backfills.targets(number, state="failed")
        running = reader.backfills.targets(number, state="asked")
    if json:
        print_json(as_json(record.shown()) | {"waves": columns, "running": running, "failed": failed})
        return
    _tell(record, json=False)
    waves = table("wave", "consumer", "todo", "running", "done", "failed", "taken off", right=["wave"])
    states: Sequence[StepState] = ("todo", "asked", "done", "failed", "removed")
    cells = (
        [Text(str(each.wave + 1)), text(each.consumer), *(Text(str(each.counts[s])) for s in states)]
        for each in columns
    )
    show(rows(waves, cells, empty=""))
    if failed or running:
        runs = table("consumer", "key", "state", "run", "error")
        parts = (
            [
                text(each.consumer),
                text(each.target_key or ""),
                Text("running" if each.state == "asked" else "failed"),
                id_cell(each.flow_run_id),
                text(each.error),
            ]
            for each in [*failed, *running]
        )
        show(rows(runs, parts, empty=""))


def stop_backfill(number: int, *, json: bool) -> None:
    """Stop a backfill."""
    with Ledger.open() as ledger:
        record = backfill.stop(_here(ledger), number)
    _tell(record, json=json)


def resume_backfill(number: int, *, json: bool) -> None:
    """Resume a backfill."""
    with Ledger.open() as ledger:
        record = backfill.resume(_here(ledger), number)
    _tell(record, json=json)


def _here(ledger: Ledger) -> Installation:
    return Installation(ledger, other_ledger=Decider(ledger.reader).other)


def _wait_for(reader: Reader, record: BackfillRecord) -> BackfillRecord:
    told = False
    while record.state == "running":
        if not told and not (evaluators := reader.evaluators()).alive:
            told = True
            sys.stderr.write(f"{downtime(evaluators)}\n")
        sleep(LOOK_EVERY)
        record = find_backfill(reader, record.number)
    return record


def _tell(record: BackfillRecord, *, json: bool) -> None:
    if json:
        print_json(record.shown())
        return
    each = record.backfill
    below = " and what lies below it" if each.down else ""
    show(text(f"backfill {each.number} of {record.name}{below}: {record.state}, {_progress(record)}"))
    if record.state == "running":
        show(text(f"assetflow backfill show {each.number} shows how far it is"))
    if record.state in ("failed", "stopped"):
        again = " runs again what failed, with what lies below" if record.state == "failed" else " lets it go on"
        show(text(f"assetflow backfill resume {each.number}{again}"))


def _progress(record: BackfillRecord) -> str:
    each = record.backfill
    parts = [f"{each.done} of {count(record.total, 'run')} done"]
    parts += [f"{number} {word}" for number, word in ((each.failed, "failed"), (each.removed, "taken off")) if number]
    return ", ".join(parts)


def _cells(record: BackfillRecord, now: datetime) -> list[Text]:
    each = record.backfill
    return [
        Text(str(each.number)),
        text(record.name + ("+" if each.down else "")),
        state_text(record.state),
        *(Text(str(number)) for number in (each.done, each.failed, each.removed, record.total)),
        time_cell(each.made, now),
        text(each.by),
        text(each.why),
    ]


def _show_waves(uri: str, planned: Planned, *, json: bool) -> None:
    waves = planned.waves()
    if json:
        print_json({"uri": uri, "dry_run": True, "total_targets": len(planned.steps), "waves": waves})
        return
    made = table("wave", "consumer", "runs", "keys", right=["wave", "runs"])
    cells = (
        [Text(str(number)), text(name), Text(str(len(keys))), Text(shown(some([key for key in keys if key])))]
        for number, wave in enumerate(waves, 1)
        for name, keys in wave.items()
    )
    show(rows(made, cells, empty=""))
