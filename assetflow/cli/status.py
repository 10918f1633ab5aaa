"""`assetflow status`: show whether everything works, and what is waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.text import Text

from assetflow.cli.output import facts_table, reads, rows, tell, text, time_cell, watchable
from assetflow.cli.values import AsJson
from assetflow.core.values.words import ago, count, iso, shown
from assetflow.evaluator.process.status import InstallationStatus, installation_status
from assetflow.ledger.read.reader import Reader
from assetflow.operations.needs import Need, alike, needs_of


@watchable
@reads
def status(reader: Reader, /, *, json: AsJson = False) -> int:
    """Show whether an evaluator is running, how far it is behind Prefect, and what is waiting for a run.

    The exit status is 0 if all is well, and 1 if something needs attention: no evaluator is running, Prefect does not
    answer, an update is not recorded or a decision has no run after a minute, or the evaluator has failed at something
    for a minute."""
    condition = asyncio.run(installation_status(reader, datetime.now(UTC)))
    place = reader.place
    needed = needs_of(reader, condition.now, condition.servers)
    facts = facts_table((("ledger", text(place)), *_lines(condition)))
    troubles = [Text.assemble(("✗ ", "red"), text(problem)) for problem in condition.problems]
    tell(_as_json(condition, place) | {"needs": needed}, facts, *_needs(needed), *troubles, json=json)
    return int(bool(condition.problems))


def _lines(condition: InstallationStatus) -> list[tuple[str, Text]]:
    return [
        ("evaluator", _evaluator(condition)),
        *(
            (
                "stands by",
                text(f"process {each.holder.pid} on {each.holder.host}, since {_moment(each.since, condition)}"),
            )
            for each in condition.evaluators.standbys
        ),
        *_watchers(condition),
        ("Prefect", text(condition.prefect, "" if not condition.trouble else "red")),
        ("not recorded yet", _lag(condition)),
        ("without a run", _waiting(condition)),
        ("not begun", _number(len(condition.not_started), "runs wait for a worker")),
        ("undeliverable", _number(condition.undeliverable, "see `assetflow decisions ls --undeliverable`")),
        ("refused updates", _number(condition.refused, "see `assetflow events ls --refused`")),
        ("refused deployments", _number(condition.refused_deployments, "see `assetflow consumers refused`")),
        *(("note", text(words, "yellow")) for words in condition.notes.values()),
    ]


def _needs(needed: Sequence[Need]) -> list[RenderableType]:
    """Lay out what needs a person."""
    if not needed:
        return [Text("Nothing failed that was not made good.", "green")]
    cells = (
        [
            text(first.kind, "red"),
            text(f"{first.what} and {count(len(others), 'other')}" if others else first.what),
            text(first.error if others else first.words),
            Text(str(first.below) if first.below else ""),
            time_cell(first.since),
        ]
        for first, *others in alike(needed)
    )
    return [
        Text(),
        rows(
            (f"needs you ({len(needed)})", "", "why", "below", "since"),
            cells,
            right=("below",),
            empty="",
            spare=("since", "below"),
        ),
    ]


def _evaluator(condition: InstallationStatus) -> Text:
    lease = condition.evaluators.lease
    if lease is None:
        return Text("stopped; start it with `assetflow evaluator start`", "red")
    holder = f"process {lease.holder.pid} on {shown(lease.holder.host)}"
    if condition.evaluators.alive:
        return Text(f"running since {_moment(lease.since, condition)}, {holder}", "green")
    what = "silent" if condition.silent else "dead or frozen"
    return Text(f"{what}: {holder} last reported {_moment(lease.renewed, condition)}", "red")


def _watchers(condition: InstallationStatus) -> list[tuple[str, Text]]:
    """Return a line about the watchers, if there are any."""
    watching = condition.watching
    if not watching.watchers:
        return []
    if not watching.alive:
        return [("watchers", Text(f"{watching.watchers}; start them with `assetflow watcher start`", "red"))]
    failing = f", {len(watching.failing)} failing, see `assetflow watchers ls`" if watching.failing else ""
    return [("watchers", Text(f"{watching.watchers} watching{failing}", "red" if failing else "green"))]


def _lag(condition: InstallationStatus) -> Text:
    lag = condition.lag
    if lag is None:
        return Text("unknown: Prefect does not answer", "red")
    if lag.oldest is None:
        return Text("nothing")
    return Text(f"{count(lag.updates, 'update')}, the oldest from {_moment(lag.oldest, condition)}", "yellow")


def _waiting(condition: InstallationStatus) -> Text:
    if condition.oldest_waiting is None:
        return Text("nothing")
    reason = f": {shown(condition.waits_for)}" if condition.waits_for else ""
    since = _moment(condition.oldest_waiting, condition)
    return Text(f"{count(condition.waiting, 'decision')}, the oldest from {since}{reason}", "yellow")


def _number(number: int, see: str) -> Text:
    return Text(f"{number}, {see}", "yellow") if number else Text("0")


def _moment(value: datetime, condition: InstallationStatus) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC ({ago(value, condition.now)})"


def _as_json(condition: InstallationStatus, place: str) -> dict[str, object]:
    lease, lag = condition.evaluators.lease, condition.lag
    return {
        "ok": not condition.problems,
        "problems": condition.problems,
        "ledger": place,
        "evaluator": {
            "alive": condition.evaluators.alive,
            "silent": condition.silent,
            "since": iso(lease.since if lease else None),
            "last_sign": iso(lease.renewed if lease else None),
            "host": lease.holder.host if lease else None,
            "pid": lease.holder.pid if lease else None,
        },
        "standbys": [
            {
                "host": each.holder.host,
                "pid": each.holder.pid,
                "since": iso(each.since),
                "last_sign": iso(each.renewed),
            }
            for each in condition.evaluators.standbys
        ],
        "watchers": {
            "alive": condition.watching.alive,
            "last_sign": iso(condition.watching.last_sign),
            "watchers": condition.watching.watchers,
            "failing": [{"name": name, "reason": reason} for name, reason in condition.watching.failing.items()],
        },
        "prefect": {"url": condition.prefect, "reachable": not condition.trouble, "error": condition.trouble or None},
        "held_up": [{"name": each.name, "since": iso(each.since), "reason": each.reason} for each in condition.held_up],
        "lag": None if lag is None else {"updates": lag.updates, "oldest": iso(lag.oldest)},
        "waiting": {"decisions": condition.waiting, "oldest": iso(condition.oldest_waiting)},
        "not_begun": {
            "runs": len(condition.not_started),
            "oldest": iso(condition.not_started[0].since if condition.not_started else None),
        },
        "undeliverable": condition.undeliverable,
        "refused": condition.refused,
        "refused_deployments": condition.refused_deployments,
        "notes": list(condition.notes.values()),
    }
