"""`assetflow freshness`, `plan`, `retry` and `deadlines`: what is too old, and what happens next."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import cyclopts
from rich.text import Text

from assetflow.cli.layouts import UNKNOWN
from assetflow.cli.output import (
    NOTHING_KEPT,
    answer,
    empty_message,
    lists,
    reads,
    state_text,
    tell,
    text,
    time_cell,
    watchable,
)
from assetflow.cli.values import AsJson, AtLeastOne, Time
from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.values.words import count, rounded_in_words, some
from assetflow.errors import places
from assetflow.ledger.lease import downtime
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.reader import Reader
from assetflow.operations.deciding_ledger import Decider
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_consumer, number_of
from assetflow.operations.needs import planned
from assetflow.operations.runs_by_hand import Retried
from assetflow.operations.runs_by_hand import retry as try_again

_COLUMNS = ("asset", "uri", "state", "since", "lag", "policy", "data time", "made by", "due", "note")
_SPARE = ("uri", "data time", "since", "made by")


@lists
@reads
def freshness(reader: Reader, /, *, wide: bool = False, json: AsJson = False) -> int:
    """Show how fresh the assets with a freshness policy are.

    The exit status is 1 if one of them fails, else 3 if the state of one is not known now, because no evaluator is
    running or Prefect does not answer.

    Parameters
    ----------
    wide
        Show all columns, however wide the terminal is.
    """
    found = reader.policies.all()
    names = reader.assets.names([each.uri for each in found])
    now = datetime.now(UTC)
    document = [each.shown(now) for each in found]
    cells = (_cells(each, names[each.uri], now) for each in found)
    answer(
        document,
        _COLUMNS,
        cells,
        whole=("uri",),
        json=json,
        empty=empty_message(reader, "No deployed flow names an asset with freshness=FreshnessPolicy(...)."),
        spare=_SPARE,
        wide=wide,
    )
    if any(each.record.state == "fail" for each in found):
        return 1
    return UNKNOWN if any(each.why for each in found) else 0


def _cells(each: AssetFreshness, name: str, now: datetime) -> list[Text]:
    record, lag = each.record, each.lag(now)
    data_time = record.data_time
    return [
        text(name),
        text(each.uri),
        text(each.state_in_words, "magenta") if each.why else state_text(each.state_in_words, record.state),
        time_cell(record.state_since),
        Text("" if lag is None else rounded_in_words(lag)),
        text(record.policy.describe()),
        time_cell(data_time) if isinstance(data_time, datetime) else Text(data_time.value if data_time else ""),
        text(each.maker or ""),
        time_cell(record.due),
        text(each.describe_feasibility()),
    ]


@watchable
@reads
def plan(
    reader: Reader,
    consumer: str | None = None,
    /,
    *,
    key: str | None = None,
    at: Time | None = None,
    json: AsJson = False,
) -> None:
    """Show what each Eager or Lazy consumer would run now, what holds it back, and when it is looked at next.

    Parameters
    ----------
    consumer
        Only this one: flow/deployment, its id, or a flow with one consumer.
    key
        Only this key.
    at
        As of this later time, if nothing happens until then.
    """
    found = planned(reader, datetime.now(UTC), consumer=consumer, key=key, at=at)
    cells = (row for each in found for row in _rows(each))
    answer(
        found,
        ("consumer", "key", "plan", "looked at next"),
        cells,
        json=json,
        empty=empty_message(reader, NOTHING_KEPT),
    )


def _rows(of: PlannedConsumer) -> Iterator[list[Text]]:
    name = text(of.consumer)
    if not of.targets:
        yield [name, Text(), text(of.words, "dim"), Text()]
    for each in of.targets:
        style = "green" if each.verdict in ("run", "in_progress") else "yellow"
        yield [name, text(each.partition_key or ""), text(each.words, style), text(each.looked_at)]
    more = sum(of.counts.values()) - len(of.targets)
    if more > 0:
        yield [name, Text(f"and {more:,} more", "dim"), text(of.words), Text()]


def retry(consumer: str, /, *, key: str | None = None, all_failed: bool = False, json: AsJson = False) -> None:
    """Let a consumer try again. Of one that updates start, the last failed run runs again in Prefect, with its updates.

    An Eager or Lazy consumer does not repeat a run that failed for the same inputs, or only as often as `retries` says,
    and `catchup` waives what is not owed. This command forgets both: what is out of date is asked for now.

    Parameters
    ----------
    consumer
        The consumer: flow/deployment, its id, or a flow with one consumer.
    key
        Only this target key; without it, all of them.
    all_failed
        All failed runs of a consumer that updates start, instead of the last one.
    """
    with Ledger.open() as ledger, places(consumer="CONSUMER", key="--key", all_failed="--all-failed"):
        record = find_consumer(ledger.reader, consumer)
        here = Installation(ledger, other_ledger=Decider(ledger.reader).other)
        done = asyncio.run(try_again(here, record, key, all_failed=all_failed))
        evaluators = ledger.reader.evaluators()
    tell(done, *(text(line) for line in _lines(done)), json=json)
    if done.decisions and not evaluators.alive and not json:
        sys.stderr.write(f"{downtime(evaluators)}\n")


def _lines(done: Retried) -> list[str]:
    of = done.consumer if done.partition_key is None else f"{done.consumer}, key {done.partition_key}"
    if done.flow_runs:
        again = (f"  flow run {each}" for each in done.flow_runs)
        return [f"{of}: {count(len(done.flow_runs), 'failed run')} will run again in Prefect", *again]
    if not done.decisions:
        return [f"{of}: nothing to run now", f"`assetflow plan {done.consumer}` says why"]
    made = [f"  {each.target_key or done.consumer} runs: decision {each.id}" for each in done.decisions]
    return [f"{of}: {count(len(made), 'run')} asked for", *made]


deadlines_app = cyclopts.App(name="deadlines", help="Deadlines that were missed.")


@deadlines_app.command
@lists
@reads
def ls(reader: Reader, /, *, consumer: str | None = None, limit: AtLeastOne = 50, json: AsJson = False) -> None:
    """List the deadlines that passed without a decision, newest first.

    Parameters
    ----------
    consumer
        List only deadlines of this consumer: flow/deployment, its id, or a flow with one consumer.
    limit
        The largest number of deadlines to list.
    """
    found = reader.deadlines.missed(consumer=number_of(reader, consumer), limit=limit)
    names = reader.assets.names({uri for each in found for uri in each.missing})
    columns = ("#", "consumer", "key", "due", "looked at", "then", "queued", "not updated")
    cells = (
        [
            Text(str(each.number)),
            text(each.consumer_name),
            text(each.target_key or ""),
            time_cell(each.due),
            time_cell(each.at),
            Text(each.then),
            Text(str(each.queued)),
            text(some([names[uri] for uri in each.missing])),
        ]
        for each in found
    )
    answer(
        found, columns, cells, right=("#", "queued"), json=json, empty=empty_message(reader, "No deadline was missed.")
    )
