"""Backfill an asset, and what lies below it: choose the targets, begin, stop and resume. Contract 8.18."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from assetflow.core.freshness.state.backfills import Backfill
from assetflow.core.json_data import fit_text
from assetflow.core.rules.backfill import target_keys_between
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.crash_points import reach
from assetflow.errors import InvalidCall, LedgerForeign, UnknownBackfill
from assetflow.ledger.read.backfills import BackfillRecord, Planned
from assetflow.ledger.read.reader import Reader
from assetflow.operations.backfill import named_keys
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_uri

CONCURRENCY = 4

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
        concurrency: how many of its runs go on at most at a time.

    Raises:
        LedgerForeign: another ledger decides, so that nothing would run here.
    """
    _check_decides(at)
    now = at.now()
    given = Backfill(0, now, wanted.uri, wanted.down, concurrency, fit_text(by), fit_text(why))
    backfill, decisions = at.ledger.writer.backfills.begin(given, planned, now)
    reach("between-begin-and-answer")
    if decisions:
        at.on_recorded()
    return find_backfill(at.ledger.reader, backfill.number)


def stop(at: Installation, number: int) -> BackfillRecord:
    """Stop a backfill: its runs go on, and no further one starts.

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
    if wanted.keys:
        return named_keys(wanted.keys)
    made = reader.backfills.maker(wanted.uri)
    if made is None:
        return None
    maker, known = made
    # Where nothing is compared, only the updates tell which keys there are.
    known = known or reader.partitions.keys(wanted.uri)
    if wanted.range is not None:
        return target_keys_between(maker.schedule, *wanted.range, lambda: known)
    return known or None


def _change(at: Installation, number: int, change: Callable[[int, datetime], Sequence[Decision]]) -> BackfillRecord:
    """Change a backfill in the ledger, announce the decisions that follow, and return what became of it."""
    _check_decides(at)
    find_backfill(at.ledger.reader, number)
    if change(number, at.now()):
        at.on_recorded()
    return find_backfill(at.ledger.reader, number)


def _check_decides(at: Installation) -> None:
    other = at.other_ledger()
    if other is not None:
        raise LedgerForeign(
            f"this ledger no longer decides, ledger {other} has taken over; nothing would run",
            fix="Begin the backfill on the machine of that ledger",
        )
