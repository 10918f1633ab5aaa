"""`assetflow backfill`: run a consumer once for each of some past keys, a few at a time."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

from cyclopts import Parameter

from assetflow.cli.output import print_json, show, text
from assetflow.cli.ranges import From, To, read_range
from assetflow.cli.values import AtLeastOne
from assetflow.core.consumers import Decision
from assetflow.core.visible import shown
from assetflow.core.words import count, some
from assetflow.errors import InvalidCall
from assetflow.evaluator.liveness import downtime
from assetflow.ledger.lease.standby import Evaluators
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, KeyDecisions
from assetflow.operations.backfill import attempts_for, check_partitioned, keys_between, named_keys, run_backfill
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_consumer


def backfill(
    consumer: str,
    /,
    *,
    from_: From = None,
    to: To = None,
    keys: Annotated[tuple[str, ...], Parameter(negative="", consume_multiple=True)] = (),
    missing_only: bool = False,
    dry_run: bool = False,
    concurrency: AtLeastOne = 2,
    again: bool = False,
    json: bool = False,
) -> int:
    """Run a partitioned consumer for a range of its keys, or for the keys given. The evaluator starts the runs.

    The command skips keys that a backfill has run before: give it again to continue a backfill that was stopped. Runs
    of a backfill consume nothing: queued events stay queued. The exit status is 1 if a run failed.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer.
    from_
        The time of the first key: 2026, 2026-11, 2026-11-20 or 2026-11-20T05.
    to
        The time of the last key, which is included.
    keys
        The keys to run, instead of a range.
    missing_only
        Skip keys whose latest run completed or is still going.
    dry_run
        Only print what would run.
    concurrency
        The largest number of backfill runs of this consumer at a time.
    again
        Also run keys that a backfill has run before.
    json
        Print one JSON document.
    """
    with Ledger.open() as ledger:
        record = find_consumer(ledger.reader, consumer)
        wanted = _wanted(ledger.reader, record, from_, to, keys)
        before = ledger.reader.decisions.by_key(record.consumer.id)
        attempts = attempts_for(wanted, before, missing_only=missing_only, again=again)
        states: Mapping[str, KeyDecisions] = {}
        if not dry_run:
            states = run_backfill(
                Installation(ledger),
                record,
                attempts,
                concurrency=concurrency,
                on_made=_quiet if json else partial(_tell_made, record),
                on_waiting=_tell_waiting,
            )
    failed = [key for key in attempts if not dry_run and not states[key].is_done]
    if json:
        _print_as_json(record, wanted, attempts, states, dry_run=dry_run)
    else:
        _tell(record, wanted, attempts, failed, dry_run=dry_run)
    return 1 if failed else 0


def _wanted(
    reader: Reader, record: ConsumerRecord, start: str | None, end: str | None, keys: Sequence[str]
) -> tuple[str, ...]:
    check_partitioned(record)
    if keys and (start is not None or end is not None):
        raise InvalidCall("--keys and a range cannot be given together", fix="Give one of them")
    return named_keys(keys) if keys else keys_between(reader, record, *read_range(start, end))


def _quiet(_decision: Decision) -> None: ...


def _tell_made(record: ConsumerRecord, decision: Decision) -> None:
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
