"""How often an open page looks again for what is not told live: that decisions got their runs, and that runs ended."""

from __future__ import annotations

from collections.abc import Iterable

from assetflow.ledger.records import DecisionRecord


def look_again(decisions: Iterable[DecisionRecord | None]) -> str:
    """A trigger of htmx for a page that shows these decisions; empty if nothing of them is open."""
    under_way = [each for each in decisions if each is not None and each.ended is None]
    if not under_way:
        return ""
    return "every 2s" if any(each.flow_run_id is None for each in under_way) else "every 10s"
