"""The name of a decision's flow run. It depends on the decision alone, so the ledger knows it without Prefect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from assetflow.core.freshness.records import RunState
from assetflow.core.json_data import fit_text
from assetflow.core.values.keeping import Cause, CauseKind

ASSETS_SHOWN = 3

_SAID: Mapping[CauseKind, str] = {
    "missing": "missing",
    "data": "changed",
    "code": "new code",
    "dependency": "new or gone",
    "freshness": "due",
    "backfill": "backfill",
}


class Named(Protocol):
    """An object with the URI and the name of an asset."""

    @property
    def uri(self) -> str: ...

    @property
    def name(self) -> str: ...


def run_name(
    decision: UUID,
    target_key: str | None,
    consumed: Iterable[Named],
    because: Iterable[Cause] = (),
    consumer: str = "",
) -> str:
    """Return the name of a decision's flow run: its key or its assets, and the start of the decision's id.

    The run of an Eager or Lazy flow consumes nothing: it has the name of the flow, and ends with the reason.

    Parameters:
        consumed: the assets of the consumed events, in the order of their first event.
        because: why an Eager or Lazy flow was asked for the run.
        consumer: its name, `flow/deployment`.
    """
    what = target_key if target_key is not None else listed(consumed, "-") or consumer.rpartition("/")[0]
    name, reason = f"{what or 'refresh'}-{str(decision)[:6]}", _reason(because)
    return fit_text(f"{name} · {reason}" if reason else name)


def listed(assets: Iterable[Named], separator: str) -> str:
    """Return the short names of the first three assets, with "more" if there are more."""
    names = list(dict.fromkeys(map(_short, assets)))
    shown = names[:ASSETS_SHOWN] + (["more"] if len(names) > ASSETS_SHOWN else [])
    return separator.join(shown)


def _reason(because: Iterable[Cause]) -> str:
    """Return the first reason in a few words, and how many others there are: "raw changed and 1 more"."""
    reasons = list(dict.fromkeys(f"{_last_part(cause.uri)} {_SAID[cause.kind]}".strip() for cause in because))
    if not reasons:
        return ""
    return reasons[0] if len(reasons) == 1 else f"{reasons[0]} and {len(reasons) - 1} more"


def _short(asset: Named) -> str:
    return asset.name if asset.name != asset.uri else _last_part(asset.uri)


def _last_part(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2][:60]


class RunEnd(NamedTuple):
    """How a flow run ended.

    Attributes:
        state: the name of its last state, which a flow may choose unless it failed: "Completed", "Skipped", "TimedOut".
        outcome: the type of its last state; a deleted run counts as cancelled (8.6).
        at: the time of its last state, UTC; `None` if Prefect does not tell.
        began: when it started, UTC; `None` if it never did, or Prefect does not tell.
    """

    state: str
    outcome: RunState
    at: datetime | None = None
    began: datetime | None = None


class RunChange(NamedTuple):
    """A change of the state of a flow run: it is taken by a worker, begins, ends, or goes on again after its end.

    Attributes:
        deployment: `None` for a run without one.
        end: how it ended; `None` if it goes on.
        began: when it started, UTC; `None` if it does not start, or starts again after it waited.
        retried: when it left its final state, UTC, because somebody retries it; `None` if it does not (4.7).
        anew: it had ended before, and somebody sets another final state.
    """

    run: UUID
    deployment: UUID | None
    end: RunEnd | None = None
    began: datetime | None = None
    retried: datetime | None = None
    anew: bool = False


class RunGoingOn(NamedTuple):
    """A flow run that goes on: from Pending to its end (8.6).

    Attributes:
        decision: the decision that it belongs to; `None` if it was started by hand, by time or by something else.
        asked: when it was created, or is due if a timetable made it, UTC.
        by_time: a timetable made it.
        began: when it started, UTC; `None` if it did not yet.
    """

    run: UUID
    deployment: UUID
    decision: UUID | None
    partition_key: str | None
    asked: datetime
    by_time: bool
    began: datetime | None = None

    def moved(self, by: Callable[[datetime], datetime]) -> RunGoingOn:
        """Return the run with its moments by another clock."""
        return self._replace(asked=by(self.asked), began=None if self.began is None else by(self.began))


def is_news(state_at: datetime | None, heard: datetime | None, ended: datetime | None) -> bool:
    """Return True if a run has come into a newer state than the one that is known (4.7).

    Parameters:
        state_at: the time of the state, by Prefect's clock; `None` if Prefect does not tell: then the first end counts.
        heard: the time of the state that is known; `None` if none is.
        ended: when the run ended, as far as is known.
    """
    return ended is None if state_at is None or heard is None else heard < state_at


DELETED = RunEnd("Deleted", "cancelled")

# The names that Prefect gives to the states of runs that failed.
FAILED = ("Failed", "Crashed", "TimedOut")
