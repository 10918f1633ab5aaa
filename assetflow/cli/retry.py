"""`assetflow retry`: let a consumer try again. Contract 4.7, 8.7."""

from __future__ import annotations

import asyncio
import sys

from assetflow.cli.output import print_json, show, text
from assetflow.core.values.words import count
from assetflow.errors import places
from assetflow.evaluator.liveness import downtime
from assetflow.ledger.ledger import Ledger
from assetflow.operations.deciding_ledger import Decider
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_consumer
from assetflow.operations.retrying import Retried
from assetflow.operations.retrying import retry as try_again


def retry(consumer: str, /, *, key: str | None = None, all_failed: bool = False, json: bool = False) -> None:
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
    json
        Print one JSON document.
    """
    with Ledger.open() as ledger, places(consumer="CONSUMER", key="--key", all_failed="--all-failed"):
        record = find_consumer(ledger.reader, consumer)
        here = Installation(ledger, other_ledger=Decider(ledger.reader).other)
        done = asyncio.run(try_again(here, record, key, all_failed=all_failed))
        evaluators = ledger.reader.evaluators()
    if json:
        print_json(done.as_json())
        return
    show(*(text(line) for line in _lines(done)))
    if done.decisions and not evaluators.alive:
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
