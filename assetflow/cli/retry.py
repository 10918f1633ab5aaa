"""`assetflow retry`: let an Eager or Lazy consumer try again what it tried or waived. Contract 8.7."""

from __future__ import annotations

import sys

from assetflow.cli.output import print_json, show, text
from assetflow.core.words import count
from assetflow.errors import places
from assetflow.evaluator.liveness import downtime
from assetflow.ledger.ledger import Ledger
from assetflow.operations.deciding_ledger import Decider
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import find_consumer
from assetflow.operations.retrying import Retried
from assetflow.operations.retrying import retry as try_again


def retry(consumer: str, /, *, key: str | None = None, json: bool = False) -> None:
    """Let an Eager or Lazy consumer try again what it tried or waived: what is out of date is asked for now.

    A run that failed is not repeated for the same inputs, or only as often as `retries` says, and `catchup` waives what
    is not owed. This command forgets both.

    Parameters
    ----------
    consumer
        The consumer: flow/deployment, its id, or a flow with one consumer.
    key
        Only this target key; without it, all of them.
    json
        Print one JSON document.
    """
    with Ledger.open() as ledger, places(consumer="CONSUMER", key="--key"):
        record = find_consumer(ledger.reader, consumer)
        done = try_again(Installation(ledger, other_ledger=Decider(ledger.reader).other), record, key)
        evaluators = ledger.reader.evaluators()
    if json:
        print_json(done.as_json())
        return
    show(*(text(line) for line in _lines(done)))
    if done.decisions and not evaluators.alive:
        sys.stderr.write(f"{downtime(evaluators)}\n")


def _lines(done: Retried) -> list[str]:
    of = done.consumer if done.partition_key is None else f"{done.consumer}, key {done.partition_key}"
    if not done.decisions:
        return [f"{of}: nothing to run now", f"`assetflow plan {done.consumer}` says why"]
    made = [f"  {each.target_key or done.consumer} runs: decision {each.id}" for each in done.decisions]
    return [f"{of}: {count(len(made), 'run')} asked for", *made]
