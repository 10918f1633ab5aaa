"""Backfill: run a partitioned consumer once for each of some past keys, a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from time import sleep

from assetflow.core.condition_tree import Token
from assetflow.core.partitions import check_key
from assetflow.core.rules.backfill import target_keys_between
from assetflow.core.values.consumers import Decision
from assetflow.errors import InvalidCall
from assetflow.ledger.lease.standby import Evaluators
from assetflow.ledger.read.explanations import names_of
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, KeyDecisions
from assetflow.operations.installation import Installation

POLL_SECONDS = 0.3


def named_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that the user named, each once.

    Raises:
        InvalidEvent: one of them cannot be a key. Contract 2.5.
    """
    return tuple(dict.fromkeys(check_key(key) for key in keys))


def keys_between(reader: Reader, record: ConsumerRecord, start: datetime, end: datetime) -> tuple[str, ...]:
    """Return the target keys from `start` until before `end`, which are wall times.

    Raises:
        InvalidCall: the consumer's keys do not follow from times.
    """
    return target_keys_between(record.consumer.schedule, start, end, lambda: _known_keys(reader, record))


def check_partitioned(record: ConsumerRecord) -> None:
    """Check that a consumer is partitioned, so that it can be backfilled.

    Raises:
        InvalidCall: it has no partitions.
    """
    if not record.consumer.is_partitioned:
        raise InvalidCall(f"{record.consumer.name} has no partitions", fix="Run it in Prefect's UI, or emit an update")


def attempts_for(
    wanted: Sequence[str], before: Mapping[str, KeyDecisions], *, missing_only: bool, again: bool
) -> dict[str, int]:
    """Return the keys to run, each with the number of its attempt.

    Parameters:
        wanted: the keys that the user asked for.
        before: the earlier decisions for each key.
        missing_only: skip keys whose latest run completed or is still going.
        again: also run keys that a backfill has run before.
    """
    chosen: dict[str, int] = {}
    for key in wanted:
        known = before.get(key)
        if known is not None and missing_only and (known.is_done or known.is_open):
            continue
        if known is not None and known.backfills and (known.is_open or not again):
            continue
        chosen[key] = known.backfills if known is not None else 0
    return chosen


def run_backfill(
    at: Installation,
    record: ConsumerRecord,
    attempts: Mapping[str, int],
    *,
    concurrency: int,
    on_made: Callable[[Decision], None],
    on_waiting: Callable[[Evaluators], None],
) -> Mapping[str, KeyDecisions]:
    """Make the decisions, a few at a time, wait until all runs have ended, and return the decisions for each key.

    Parameters:
        attempts: the keys, each with the number of its attempt.
        concurrency: the largest number of the consumer's backfill runs at a time.
        on_made: called with each decision.
        on_waiting: called once with the ledger's evaluators if none of them is alive.
    """
    reader, number = at.ledger.reader, record.consumer.id
    states: Mapping[str, KeyDecisions] = {}
    open_keys: set[str] = set(attempts)
    told = False
    while open_keys:
        for decision in at.ledger.writer.decisions.backfill(number, attempts, at_once=concurrency, now=at.now()):
            on_made(decision)
        states = reader.decisions.by_key(number)
        open_keys = {key for key, attempt in attempts.items() if not _has_ended(states.get(key), attempt)}
        if not told and not (evaluators := reader.evaluators()).alive:
            told = True
            on_waiting(evaluators)
        if open_keys:
            sleep(POLL_SECONDS)
    return states


def _known_keys(reader: Reader, record: ConsumerRecord) -> set[str]:
    """Return the known keys of the consumer's assets whose mapper leaves keys unchanged."""
    schedule = record.consumer.schedule
    names = names_of(reader, schedule)
    wanted: frozenset[Token] = schedule.tokens
    return {
        key
        for asset in reader.assets.all()
        if names.tokens_of(asset.uri) & wanted
        for key in reader.partitions.keys(asset.uri)
    }


def _has_ended(state: KeyDecisions | None, attempt: int) -> bool:
    return state is not None and state.backfills > attempt and not state.is_open
