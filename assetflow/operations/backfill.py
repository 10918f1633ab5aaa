"""Backfill an asset, and what lies below it: choose the targets, begin, stop and resume. Contract 8.18."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import sleep

from assetflow.core.freshness.records import Backfill
from assetflow.core.json_data import fit_text
from assetflow.core.partitions import check_key
from assetflow.core.rules.timers import check_target_keys, target_keys_between
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Decision
from assetflow.core.values.schedules import Schedule
from assetflow.crash_points import reach
from assetflow.errors import InvalidCall, UnknownBackfill
from assetflow.ledger.lease import Evaluators
from assetflow.ledger.read.backfills import BackfillRecord, Planned
from assetflow.ledger.read.explanations import names_of
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, KeyDecisions
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_uri

POLL_SECONDS = 0.3


def named_keys(schedule: Schedule, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that the user named for a flow, each once.

    Raises:
        InvalidEvent: one of them cannot be a key. Contract 2.5.
        InvalidCall: one of them is not a key of this flow; `where` is `keys`.
    """
    named = tuple(dict.fromkeys(check_key(key) for key in keys))
    check_target_keys(schedule, named)
    return named


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


CONCURRENCY = 4
_NOT_HERE = ("nothing would run", "Begin the backfill on the machine of that ledger")

# The numbers that a database can store are smaller.
_TOO_LARGE = 2**63


@dataclass(frozen=True)
class BackfillWanted:
    """A wish for a backfill: the asset, and which of its keys.

    Attributes:
        uri: the asset whose maker runs.
        down: whether what lies below it runs too.
        keys: the target keys of the maker; empty for those in the range, or for all known ones.
        range: from this wall time until before that one; `None` for no range.
    """

    uri: str
    down: bool = False
    keys: Sequence[str] = ()
    range: tuple[datetime, datetime] | None = None


def asset_to_backfill(reader: Reader, text: str) -> tuple[str, bool]:
    """Return the URI of the asset that a user names, and whether a + after it asks for what lies below, too.

    Raises:
        UnknownAsset, InvalidAsset: no asset is called so.
    """
    name = text.removesuffix("+")
    if "://" in name and reader.backfills.maker(Asset(name).uri) is not None:
        return Asset(name).uri, name != text
    return find_uri(reader, name), name != text


def plan(reader: Reader, wanted: BackfillWanted) -> Planned:
    """Return what a backfill would run.

    Raises:
        InvalidCall: no flow makes the asset, the keys do not fit the flow, or there is nothing to run.
        InvalidEvent: a key cannot be one (2.5).
    """
    planned = reader.backfills.plan(wanted.uri, _keys(reader, wanted), down=wanted.down)
    if not planned.steps:
        raise InvalidCall(f"no keys of {wanted.uri} are known", rule="8.18", fix="Name them: --keys 2026-11-20")
    return planned


def begin(
    at: Installation,
    wanted: BackfillWanted,
    planned: Planned,
    *,
    concurrency: int | None = CONCURRENCY,
    by: str = "",
    why: str = "",
) -> BackfillRecord:
    """Begin a backfill, which the evaluator carries out, and return it.

    Parameters:
        concurrency: how many of its runs run at most at a time.

    Raises:
        LedgerForeign: another ledger decides, so that nothing would run here.
    """
    at.check_decides(*_NOT_HERE)
    now = at.now()
    given = Backfill(0, now, wanted.uri, wanted.down, concurrency, fit_text(by), fit_text(why))
    backfill, decisions = at.ledger.writer.backfills.begin(given, planned, now)
    reach("between-begin-and-answer")
    if decisions:
        at.on_recorded()
    return find_backfill(at.ledger.reader, backfill.number)


def stop(at: Installation, number: int) -> BackfillRecord:
    """Stop a backfill: its runs continue, and no further one starts.

    Raises:
        UnknownBackfill: no backfill has this number.
        Conflict: the backfill does not run.
        LedgerForeign: another ledger decides.
    """
    return _change(at, number, at.ledger.writer.backfills.stop)


def resume(at: Installation, number: int) -> BackfillRecord:
    """Resume a backfill that was stopped, or that failed: what failed runs again, with what lies below it.

    Raises:
        UnknownBackfill: no backfill has this number.
        Conflict: nothing of the backfill is left, or it never began.
        LedgerForeign: another ledger decides.
    """
    return _change(at, number, at.ledger.writer.backfills.resume)


def find_backfill(reader: Reader, number: int) -> BackfillRecord:
    """Return a backfill.

    Raises:
        UnknownBackfill: no backfill has this number.
    """
    found = reader.backfills.get(number) if number < _TOO_LARGE else None
    if found is None:
        raise UnknownBackfill.numbered(number)
    return found


def _keys(reader: Reader, wanted: BackfillWanted) -> Sequence[str] | None:
    if wanted.keys and wanted.range is not None:
        raise InvalidCall("keys and a range cannot be given together", fix="Give one of them")
    made = reader.backfills.maker(wanted.uri)
    if made is None:
        # Its plan refuses it.
        return None
    maker, known = made
    if wanted.keys:
        return named_keys(maker.schedule, wanted.keys)
    # Where nothing is compared, only the updates tell which keys there are.
    known = known or reader.partitions.keys(wanted.uri)
    if wanted.range is not None:
        return target_keys_between(maker.schedule, *wanted.range, lambda: known)
    return known or None


def _change(at: Installation, number: int, change: Callable[[int, datetime], Sequence[Decision]]) -> BackfillRecord:
    """Change a backfill in the ledger, announce the decisions that follow, and return what became of it."""
    at.check_decides(*_NOT_HERE)
    find_backfill(at.ledger.reader, number)
    if change(number, at.now()):
        at.on_recorded()
    return find_backfill(at.ledger.reader, number)
