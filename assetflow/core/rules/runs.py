"""The name of a decision's flow run. It depends on the decision alone, so the ledger knows it without Prefect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol
from uuid import UUID

from assetflow.core.freshness.causes import Cause, CauseKind
from assetflow.core.json_data import fit_text

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
