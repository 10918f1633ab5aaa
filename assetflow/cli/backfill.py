"""`assetflow backfill`: run a consumer once for each of some past keys, or backfill an asset and what lies below it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import sleep
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from rich.text import Text

from assetflow.cli.output import (
    answer,
    empty_message,
    id_cell,
    lists,
    print_json,
    reads,
    rows,
    show,
    state_text,
    tell,
    text,
    time_cell,
)
from assetflow.cli.values import AsJson, AtLeastOne, BackfillNumber, From, To, read_range, this_user
from assetflow.core.freshness.records import StepState
from assetflow.core.shapes import as_json
from assetflow.core.values.consumers import Decision
from assetflow.core.values.words import count, shown, some
from assetflow.errors import AssetflowError, InvalidCall, UnknownConsumer
from assetflow.ledger.lease import Evaluators, downtime
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.backfills import BackfillRecord, Planned
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, KeyDecisions
from assetflow.operations import backfill as backfills
from assetflow.operations.backfill import (
    BackfillWanted,
    asset_to_backfill,
    attempts_for,
    check_partitioned,
    find_backfill,
    keys_between,
    named_keys,
    plan,
    run_backfill,
)
from assetflow.operations.deciding_ledger import Decider
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_consumer

AT_ONCE = 2
LOOK_EVERY = 0.3

app = cyclopts.App(name="backfill", help="Run a consumer for past keys, or backfill an asset and what lies below it.")


@app.default
def backfill(
    what: str,
    /,
    *,
    from_: From = None,
    to: To = None,
    keys: Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=True, allow_repeating=True)] = (),
    missing_only: bool = False,
    dry_run: bool = False,
    concurrency: AtLeastOne | None = None,
    again: bool = False,
    why: str = "",
    wait: bool = False,
    json: AsJson = False,
) -> int:
    """Run a consumer for past keys, or the flow that makes an asset and, with a + after it, all that lies below.

    For a consumer, the command makes the runs and waits for them. It skips keys that a backfill has run before: give it
    again to continue one that was stopped. Runs of a backfill consume nothing: queued events stay queued. For an asset,
    the evaluator carries the backfill out. The exit status is 1 if a run failed.

    Parameters
    ----------
    what
        A consumer: flow/deployment, its id, or a flow with one consumer. Or an asset: its URI or its name; with a +
        after it, the flows that read it run too, step by step down, each when all above it is done.
    from_
        The time of the first key: 2026, 2026-11, 2026-11-20 or 2026-11-20T05.
    to
        The time of the last key, which is included.
    keys
        The keys to run, instead of a range; of an asset, all known ones by default.
    missing_only
        Of a consumer: skip keys whose latest run completed or is still going.
    dry_run
        Only print what would run; of an asset, wave by wave.
    concurrency
        The largest number of runs at a time: 2 by default for a consumer, 4 for an asset.
    again
        Of a consumer: also run keys that a backfill has run before.
    why
        Of an asset: the reason, which the list of backfills then shows.
    wait
        Of an asset: wait until the backfill has ended.
    """
    if _is_asset(what):
        if missing_only or again:
            raise InvalidCall(
                "--missing-only and --again are for consumers", fix="`assetflow backfill resume` runs again what failed"
            )
        return backfill_asset(
            what, keys, from_, to, concurrency=concurrency, why=why, dry_run=dry_run, wait=wait, json=json
        )
    if why or wait:
        raise InvalidCall(
            "--why and --wait are for assets", fix="Leave them out: the command waits for a consumer's runs"
        )
    with Ledger.open() as ledger:
        record = find_consumer(ledger.reader, what)
        wanted = _wanted(ledger.reader, record, from_, to, keys)
        before = ledger.reader.decisions.by_key(record.consumer.id)
        attempts = attempts_for(wanted, before, missing_only=missing_only, again=again)
        states: Mapping[str, KeyDecisions] = {}
        if not dry_run:
            states = run_backfill(
                Installation(ledger),
                record,
                attempts,
                concurrency=concurrency or AT_ONCE,
                on_made=partial(_tell_made, record, quiet=json),
                on_waiting=_tell_waiting,
            )
    failed = [key for key in attempts if not dry_run and not states[key].is_done]
    if json:
        _print_as_json(record, wanted, attempts, states, dry_run=dry_run)
    else:
        _tell(record, wanted, attempts, failed, dry_run=dry_run)
    return 1 if failed else 0


@app.command
@lists
@reads
def ls(reader: Reader, /, *, json: AsJson = False) -> None:
    """List the backfills of assets, newest first."""
    found = reader.backfills.all()
    spare = ("why", "taken off", "by", "made")
    answer(
        [each.shown() for each in found],
        ("backfill", "asset", "state", "done", "failed", "taken off", "of", "made", "by", "why"),
        map(_cells, found),
        json=json,
        empty=empty_message(reader, "No backfills of assets yet."),
        spare=spare,
    )


@app.command(name="show")
@reads
def show_one(reader: Reader, number: BackfillNumber, /, *, json: AsJson = False) -> None:
    """Show how far a backfill of an asset has come, wave by wave, and what failed."""
    record = find_backfill(reader, number)
    columns = reader.backfills.progress(number)
    failed = reader.backfills.targets(number, state="failed")
    running = reader.backfills.targets(number, state="asked")
    if json:
        print_json(as_json(record.shown()) | {"waves": columns, "running": running, "failed": failed})
        return
    _tell_of_asset(record, json=False)
    states: Sequence[StepState] = ("todo", "asked", "done", "failed", "removed")
    cells = (
        [Text(str(each.wave + 1)), text(each.consumer), *(Text(str(each.counts[s])) for s in states)]
        for each in columns
    )
    show(rows(("wave", "consumer", "todo", "running", "done", "failed", "taken off"), cells, right=["wave"], empty=""))
    if failed or running:
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
        show(rows(("consumer", "key", "state", "run", "error"), parts, empty=""))


@app.command
def stop(number: BackfillNumber, /, *, json: AsJson = False) -> None:
    """Stop a backfill of an asset: its runs go on, and no further one starts."""
    with Ledger.open() as ledger:
        record = backfills.stop(_here(ledger), number)
    _tell_of_asset(record, json=json)


@app.command
def resume(number: BackfillNumber, /, *, json: AsJson = False) -> None:
    """Resume a backfill of an asset that was stopped or failed: what failed runs again, with what lies below it."""
    with Ledger.open() as ledger:
        record = backfills.resume(_here(ledger), number)
    _tell_of_asset(record, json=json)


def _is_asset(what: str) -> bool:
    """Return True if a user names an asset: by its URI, with a + after it, or by a name that no consumer has."""
    if "://" in what or what.endswith("+"):
        return True
    with Reader.open() as reader:
        try:
            find_consumer(reader, what)
        except UnknownConsumer:
            with suppress(AssetflowError):
                asset_to_backfill(reader, what)
                return True
    return False


def _wanted(
    reader: Reader, record: ConsumerRecord, start: str | None, end: str | None, keys: Sequence[str]
) -> tuple[str, ...]:
    check_partitioned(record)
    if keys and (start is not None or end is not None):
        raise InvalidCall("--keys and a range cannot be given together", fix="Give one of them")
    return named_keys(record.consumer.schedule, keys) if keys else keys_between(reader, record, *read_range(start, end))


def _tell_made(record: ConsumerRecord, decision: Decision, *, quiet: bool) -> None:
    if not quiet:
        show(text(f"{record.consumer.name} runs for {decision.target_key}"))


def _tell_waiting(evaluators: Evaluators) -> None:
    sys.stderr.write(f"{downtime(evaluators)}\n")


def _print_as_json(
    record: ConsumerRecord,
    wanted: Sequence[str],
    attempts: Mapping[str, int],
    states: Mapping[str, KeyDecisions],
    *,
    dry_run: bool,
) -> None:
    runs = {key: states[key].state if key in states else None for key in attempts}
    left_out = [key for key in wanted if key not in attempts]
    print_json({"consumer": record.consumer.name, "dry_run": dry_run, "runs": runs, "left_out": left_out})


def _tell(
    record: ConsumerRecord,
    wanted: Sequence[str],
    attempts: Mapping[str, int],
    failed: Sequence[str],
    *,
    dry_run: bool,
) -> None:
    name, left = record.consumer.name, len(wanted) - len(attempts)
    if dry_run:
        show(text(f"{name} would run for {count(len(attempts), 'key')}: {some(list(attempts))}"))
    elif attempts:
        show(text(f"{count(len(attempts) - len(failed), 'run')} of {name} completed"))
    else:
        show(text(f"{name}: nothing to run"))
    if left:
        show(text(f"{count(left, 'key')} skipped: already run, or running now"))
    if failed:
        sys.stderr.write(shown(f"not completed: {some(list(failed))}; --again runs them once more") + "\n")


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
        most = concurrency or backfills.CONCURRENCY
        made = backfills.begin(_here(ledger), wanted, planned, concurrency=most, by=this_user(), why=why)
        if wait:
            made = _wait_for(ledger.reader, made)
        elif not (evaluators := ledger.reader.evaluators()).alive:
            _tell_waiting(evaluators)
    _tell_of_asset(made, json=json)
    return int(made.state == "failed")


def _here(ledger: Ledger) -> Installation:
    return Installation(ledger, other_ledger=Decider(ledger.reader).other)


def _wait_for(reader: Reader, record: BackfillRecord) -> BackfillRecord:
    told = False
    while record.state == "running":
        if not told and not (evaluators := reader.evaluators()).alive:
            told = True
            _tell_waiting(evaluators)
        sleep(LOOK_EVERY)
        record = find_backfill(reader, record.number)
    return record


def _tell_of_asset(record: BackfillRecord, *, json: bool) -> None:
    each = record.backfill
    below = " and what lies below it" if each.down else ""
    lines = [text(f"backfill {each.number} of {record.name}{below}: {record.state}, {_progress(record)}")]
    if record.state == "running":
        lines.append(text(f"assetflow backfill show {each.number} shows how far it is"))
    if record.state in ("failed", "stopped"):
        again = " runs again what failed, with what lies below" if record.state == "failed" else " lets it go on"
        lines.append(text(f"assetflow backfill resume {each.number}{again}"))
    tell(record.shown(), *lines, json=json)


def _progress(record: BackfillRecord) -> str:
    each = record.backfill
    parts = [f"{each.done} of {count(record.total, 'run')} done"]
    parts += [f"{number} {word}" for number, word in ((each.failed, "failed"), (each.removed, "taken off")) if number]
    return ", ".join(parts)


def _cells(record: BackfillRecord) -> list[Text]:
    each = record.backfill
    return [
        Text(str(each.number)),
        text(record.name + ("+" if each.down else "")),
        state_text(record.state),
        *(Text(str(number)) for number in (each.done, each.failed, each.removed, record.total)),
        time_cell(each.made),
        text(each.by),
        text(each.why),
    ]


def _show_waves(uri: str, planned: Planned, *, json: bool) -> None:
    waves = planned.waves()
    cells = (
        [Text(str(number)), text(name), Text(str(len(keys))), Text(shown(some([key for key in keys if key])))]
        for number, wave in enumerate(waves, 1)
        for name, keys in wave.items()
    )
    document = {"uri": uri, "dry_run": True, "total_targets": len(planned.steps), "waves": waves}
    tell(document, rows(("wave", "consumer", "runs", "keys"), cells, right=["wave", "runs"], empty=""), json=json)
