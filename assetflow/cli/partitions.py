"""`assetflow partitions ls|gaps`: list the partitions of a consumer, or the keys that an asset lacks."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

import cyclopts
from rich.text import Text

from assetflow.cli.output import empty_message, id_cell, lists, reads, rows, tell, text, time_cell
from assetflow.cli.values import AsJson, AssetName, AtLeastOne, From, To, read_range
from assetflow.core.explain.conditions import LeafKeys, leaf_keys
from assetflow.core.partitions.ranges import KeySeries
from assetflow.core.rules.timers import series_to_look_at
from assetflow.core.values.words import count, some
from assetflow.errors import InvalidCall
from assetflow.ledger.read.explanations import names_of
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord, KeyDecisions
from assetflow.operations.lookup import find_consumer, find_uri

app = cyclopts.App(name="partitions", help="Partitions: what has run for which key, and what is missing.")

# For each kind of key, what one line of the map covers, and the ruler above the lines.
_LINES = {"hour": "%Y-%m-%d", "day": "%Y-%m", "week": "%Y", "month": "%Y", "quarter": "%Y", "year": "%Y"}
_RULERS = {
    "hour": "".join(f"{hour:<6}" for hour in range(0, 24, 6)).rstrip(),
    "day": "".join(f"{day:<5}" for day in range(1, 32, 5)).rstrip(),
    "month": "JFMAMJJASOND",
}


@app.command
@lists
@reads
def ls(reader: Reader, consumer: str, /, *, limit: AtLeastOne = 50, json: AsJson = False) -> None:
    """List the partitions of a consumer: pending ones with their received and missing keys, done and failed ones.

    Parameters
    ----------
    consumer
        flow/deployment, its id, or a flow with one consumer.
    limit
        The largest number of pending partitions, and of the latest ones that have run.
    """
    record = find_consumer(reader, consumer)
    if not record.consumer.schedule.is_partitioned:
        raise InvalidCall(f"{record.consumer.name} has no partitions", fix="`assetflow queue ls` shows its queue")
    pending = _pending(reader, record)
    decided = dict(list(reader.decisions.by_key(record.consumer.id).items())[::-1])
    waiting = dict(list(pending.items())[:limit])
    shown = dict(list(decided.items())[:limit])
    cells = [_pending_cells(key, leaves, decided.get(key)) for key, leaves in waiting.items()]
    cells += [_decided_cells(key, each) for key, each in shown.items() if key not in waiting]
    parts = rows(
        ("partition", "state", "received", "missing", "since", "flow run"),
        cells,
        whole=("partition", "flow run"),
        empty=empty_message(reader, "No partitions yet."),
        spare=("received", "since", "flow run"),
    )
    document = _as_json(record, waiting, len(pending), shown, decided)
    tell(document, text(_totals(record, len(pending), decided)), parts, json=json)


@app.command
def gaps(
    asset: AssetName,
    /,
    *,
    from_: From = None,
    to: To = None,
    every: str | None = None,
    key_format: str = "",
    timezone: str = "UTC",
    json: AsJson = False,
) -> int:
    """Show the keys of a range for which an asset was never updated. The exit status is 1 if there are any.

    Parameters
    ----------
    from_
        The time of the first key: 2026, 2026-11, 2026-11-20 or 2026-11-20T05.
    to
        The time of the last key, which is included.
    every
        The period of a key: hour, day, week, month, quarter or year. By default, that of the known keys.
    key_format
        The strftime format of a key. By default, that of the known keys, or of Airflow's mappers.
    timezone
        The time zone of the keys.
    """
    start, end = read_range(from_, to)
    with Reader.open() as reader:
        uri = find_uri(reader, asset)
        known = reader.partitions.keys(uri)
    series = series_to_look_at(every, key_format, timezone, lambda: known)
    wanted = series.between(start, end)
    missing = [key for key in wanted if key not in known]
    updated = len(wanted) - len(missing)
    document = {"uri": uri, "every": series.writer.kind, "format": series.writer.output_format}
    document |= {"keys": len(wanted), "updated": updated, "missing": missing}
    found = f"{updated} of {count(len(wanted), 'key')} updated" + (f", missing: {some(missing)}" if missing else "")
    tell(document, text(f"{uri}: {series.describe()}"), *_map(series, wanted, known), text(found), json=json)
    return 1 if missing else 0


def _pending(reader: Reader, record: ConsumerRecord) -> dict[str, tuple[LeafKeys, ...]]:
    schedule = record.consumer.schedule
    tokens_of = names_of(reader, schedule).tokens_of
    queues = {key: queue for key, queue in reader.queues.pending(record.consumer.id).items() if key is not None}
    return {key: leaf_keys(schedule, key, queues[key], tokens_of) for key in sorted(queues)}


def _as_json(
    record: ConsumerRecord,
    waiting: Mapping[str, tuple[LeafKeys, ...]],
    pending: int,
    shown: Mapping[str, KeyDecisions],
    decided: Mapping[str, KeyDecisions],
) -> dict[str, object]:
    return {
        "consumer": record.consumer.name,
        "totals": {"pending": pending, **_numbers(decided)},
        "pending": [{"target_key": key, "assets": leaves} for key, leaves in waiting.items()],
        "decided": [
            {
                "target_key": key,
                "run_state": each.state,
                "decision_id": each.latest,
                "flow_run_id": each.flow_run_id,
                "made": each.made,
                "backfills": each.backfills,
            }
            for key, each in shown.items()
        ],
    }


def _numbers(decided: Mapping[str, KeyDecisions]) -> dict[str, int]:
    done = sum(each.is_done for each in decided.values())
    running = sum(each.is_open for each in decided.values())
    return {"done": done, "running": running, "failed": len(decided) - done - running}


def _totals(record: ConsumerRecord, pending: int, decided: Mapping[str, KeyDecisions]) -> str:
    numbers = {"pending": pending, **_numbers(decided)}
    return f"{record.consumer.name}: " + ", ".join(f"{number} {name}" for name, number in numbers.items())


def _pending_cells(key: str, leaves: tuple[LeafKeys, ...], before: KeyDecisions | None) -> list[Text | str]:
    received = [_received(leaf) for leaf in leaves if leaf.received]
    missing = [
        f"{leaf.leaf}: {some(list(leaf.missing), 3) or 'nothing yet'}"
        for leaf in leaves
        if len(leaf.received) < leaf.needed
    ]
    state = "pending" if before is None else f"pending, {'done' if before.is_done else before.state.lower()} before"
    return [text(key), text(state, "yellow"), _below_each_other(received), _below_each_other(missing), "", ""]


def _below_each_other(lines: list[str]) -> Text:
    return Text("\n").join(map(text, lines))


def _received(leaf: LeafKeys) -> str:
    first, *rest = leaf.received
    keys = f"{first} … {rest[-1]}" if rest else first
    return f"{leaf.leaf}: {keys}" if leaf.needed == 1 else f"{leaf.leaf} {len(rest) + 1} of {leaf.needed}: {keys}"


def _decided_cells(key: str, each: KeyDecisions) -> list[Text | str]:
    style = "green" if each.is_done else "cyan" if each.is_open else "red"
    word = "done" if each.is_done else each.state.lower() if each.is_open else f"failed ({each.state})"
    return [text(key), text(word, style), "", "", time_cell(each.made), id_cell(each.flow_run_id)]


def _map(series: KeySeries, wanted: Mapping[str, datetime], known: Collection[str]) -> list[Text]:
    """Draw one mark for each key under a ruler: a line for each day of hourly keys, month of daily keys, or year."""
    lines: defaultdict[str, Text] = defaultdict(Text)
    mark, gap = ("■", "·") if (sys.stdout.encoding or "").lower().startswith("utf") else ("#", ".")
    for key, start in wanted.items():
        line = lines[start.strftime(_LINES[series.writer.kind])]
        if not line.plain:
            line.append(" " * _place(series, start))
        there = key in known
        line.append(mark if there else gap, "green" if there else "red")
    width = max((len(name) for name in lines), default=0)
    ruler = Text(" " * (width + 2) + _RULERS.get(series.writer.kind, ""), "dim")
    return [ruler, *(Text(f"{name}  ").append_text(line) for name, line in lines.items())]


def _place(series: KeySeries, start: datetime) -> int:
    """Return the position of the key in its line."""
    return {"hour": start.hour, "day": start.day - 1, "month": start.month - 1}.get(series.writer.kind, 0)
