"""How often an open page reloads what the live stream does not send: new runs of decisions, and ends of runs."""

from __future__ import annotations

from collections.abc import Iterable

from assetflow.ledger.records import DecisionRecord


def look_again(decisions: Iterable[DecisionRecord | None]) -> str:
    """Return the htmx trigger for a page that shows these decisions; empty if all their runs have ended."""
    under_way = [each for each in decisions if each is not None and each.ended is None]
    if not under_way:
        return ""
    return "every 2s" if any(each.flow_run_id is None for each in under_way) else "every 10s"
