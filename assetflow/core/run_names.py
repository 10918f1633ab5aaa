"""The name of a decision's flow run. It depends on the decision alone, so the ledger knows it without Prefect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from assetflow.core.json_data import fit_text

ASSETS_SHOWN = 3


class Named(Protocol):
    """An object with the URI and the name of an asset."""

    @property
    def uri(self) -> str: ...

    @property
    def name(self) -> str: ...


def run_name(decision: UUID, target_key: str | None, consumed: Iterable[Named]) -> str:
    """Return the name of a decision's flow run: its key or its assets, and the start of the decision's id.

    The run of an Eager or Lazy flow without partitions consumes nothing and is called a refresh.

    Parameters:
        consumed: the assets of the consumed events, in the order of their first event.
    """
    what = target_key if target_key is not None else listed(consumed, "-")
    return fit_text(f"{what or 'refresh'}-{str(decision)[:6]}")


def listed(assets: Iterable[Named], separator: str) -> str:
    """Return the short names of the first three assets, with "more" if there are more."""
    names = list(dict.fromkeys(map(_short, assets)))
    shown = names[:ASSETS_SHOWN] + (["more"] if len(names) > ASSETS_SHOWN else [])
    return separator.join(shown)


def _short(asset: Named) -> str:
    return asset.name if asset.name != asset.uri else asset.uri.rstrip("/").rpartition("/")[2][:60]
