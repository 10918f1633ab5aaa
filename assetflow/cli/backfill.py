"""`assetflow backfill`: run a consumer for keys of the past, some at a time, each once."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import sleep
from typing import Annotated

from cyclopts import Parameter

from assetflow.cli.output import print_json, show, text
from assetflow.cli.ranges import From, To, read_range
from assetflow.cli.values import AtLeastOne
from assetflow.core.backfill import target_keys_between
from assetflow.core.conditions import Token
from assetflow.core.explanation.words import count, some
from assetflow.core.partitions import check_key
from assetflow.core.visible import shown
from assetflow.errors import InvalidCall
from assetflow.ledger.explanations import names_of
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.lookup import find_consumer
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import ConsumerRecord, KeyDecisions

POLL_SECONDS = 0.3


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
    """Run a partitioned consumer for a range of its keys, or for some. The evaluator starts the runs.

    A key that a backfill has run before is left out, so that a command that was stopped goes on when it is given once
    more. Runs of a backfill consume nothing: what is queued stays queued. The exit status is 1 if a run failed.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer.
    from_
        The first key's time: 2026, 2026-11, 2026-11-20 or 2026-11-20T05.
    to
        The last key's time, included.
    keys
        Instead of a range: the keys, one after another.
    missing_only
        Leave out keys whose latest run completed, or is under way.
    dry_run
        Only say what would run.
    concurrency
        At most so many of the consumer's backfill runs at a time.
    again
        Run keys that a backfill has run before, too.
    json
        Print one JSON document.
    """
    with Ledger.open() as ledger:
        record = find_consumer(ledger.reader, consumer)
        wanted = _wanted(ledger.reader, record, from_, to, keys)
        before = ledger.reader.decisions_by_key(record.consumer.id)
        attempts = _attempts(wanted, before, missing_only=missing_only, again=again)
        states: Mapping[str, KeyDecisions] = {}
        if not dry_run:
            _run_all(ledger, record, attempts, concurrency, quiet=json)
            states = ledger.reader.decisions_by_key(record.consumer.id)
    failed = [key for key in attempts if not dry_run and not states[key].is_done]
    if json:
        runs = {key: states[key].state if key in states else None for key in attempts}
        left_out = [key for key in wanted if key not in attempts]
        print_json({"consumer": record.consumer.name, "dry_run": dry_run, "runs": runs, "left_out": left_out})
    else:
        _tell(record, wanted, attempts, failed, dry_run=dry_run)
    return 1 if failed else 0


def _wanted(
    reader: Reader, record: ConsumerRecord, start: str | None, end: str | None, keys: Sequence[str]
) -> tuple[str, ...]:
    schedule = record.consumer.schedule
    if not schedule.is_partitioned:
        raise InvalidCall(f"{record.consumer.name} has no partitions", fix="Run it in Prefect's UI, or emit an update")
    if keys and (start is not None or end is not None):
        raise InvalidCall("--keys and a range exclude each other", fix="Give one of them")
    if keys:
        return tuple(dict.fromkeys(check_key(key) for key in keys))
    return target_keys_between(schedule, *read_range(start, end), lambda: _known_keys(reader, record))


def _known_keys(reader: Reader, record: ConsumerRecord) -> set[str]:
    """The keys of the assets that the consumer is scheduled on: what its mappers leave as they are."""
    schedule = record.consumer.schedule
    names = names_of(reader, schedule)
    wanted: frozenset[Token] = schedule.tokens
    return {
        key for asset in reader.assets() if names.tokens_of(asset.uri) & wanted for key in reader.keys_of(asset.uri)
    }


def _attempts(
    wanted: Sequence[str], before: Mapping[str, KeyDecisions], *, missing_only: bool, again: bool
) -> dict[str, int]:
    """The keys to run, with the number of the attempt."""
    chosen: dict[str, int] = {}
    for key in wanted:
        known = before.get(key)
        if known is not None and missing_only and (known.is_done or known.is_open):
            continue
        if known is not None and known.backfills and (known.is_open or not again):
            continue
        chosen[key] = known.backfills if known is not None else 0
    return chosen


def _run_all(
    ledger: Ledger, record: ConsumerRecord, attempts: Mapping[str, int], concurrency: int, *, quiet: bool
) -> None:
    """Make the decisions, some at a time, and return when all runs have ended."""
    open_keys: set[str] = set(attempts)
    told_to_wait = False
    while open_keys:
        made = ledger.writer.backfill(record.consumer.id, attempts, at_once=concurrency, now=datetime.now(UTC))
        for decision in made if not quiet else ():
            show(text(f"{record.consumer.name} runs for {decision.target_key}"))
        states = ledger.reader.decisions_by_key(record.consumer.id)
        open_keys = {key for key, attempt in attempts.items() if not _has_ended(states.get(key), attempt)}
        if not told_to_wait and not _is_evaluated(ledger.reader):
            told_to_wait = True
            sys.stderr.write("No evaluator is at work: the runs wait for `assetflow evaluator start`\n")
        if open_keys:
            sleep(POLL_SECONDS)


def _is_evaluated(reader: Reader) -> bool:
    lease = reader.lease()
    return lease is not None and lease.expires > datetime.now(UTC)


def _has_ended(state: KeyDecisions | None, attempt: int) -> bool:
    return state is not None and state.backfills > attempt and not state.is_open


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
        show(text(f"{count(left, 'key')} left out: they have run, or run now"))
    if failed:
        sys.stderr.write(shown(f"not completed: {some(list(failed))}; --again runs them once more") + "\n")
