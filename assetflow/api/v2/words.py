"""Airflow's words for ours: Dags for consumers and flows, numbers for aliases, runs and their states, orders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256

from assetflow.core.explanation.words import iso
from assetflow.errors import InvalidCall, UnknownAsset, UnknownConsumer
from assetflow.ledger.catalog import ListedAsset
from assetflow.ledger.catalog_events import ConsumedBy
from assetflow.ledger.lookup import find_consumer
from assetflow.ledger.reader import Reader
from assetflow.ledger.records import ConsumerRecord

DEFAULT = 50
MOST = 100


def dag_id(name: str) -> str:
    """The Dag that a consumer or deployment `flow/deployment` is."""
    return name.replace("/", ".")


def consumer_of(reader: Reader, dag: str) -> ConsumerRecord:
    """The consumer that is meant by a Dag: `flow.deployment`, or the deployment's id.

    Raises:
        UnknownConsumer: there is none; the error names what comes close.
    """
    if reader.catalog.consumer_number(dag) is None and dag.isdigit():
        raise UnknownConsumer(f"no Dag is called {dag!r}", where="path.dag_id")
    return find_consumer(reader, dag)


def asset_numbered(reader: Reader, number: int) -> ListedAsset:
    """The asset with a number.

    Raises:
        UnknownAsset: there is none.
    """
    found = reader.catalog.asset(number=number)
    if found is None:
        raise UnknownAsset(
            f"the asset with ID `{number}` was not found", where="asset_id", fix="GET /api/v2/assets lists the assets"
        )
    return found


def alias_number(name: str) -> int:
    """The number of an alias: it follows from the name, so that it is the same in every ledger."""
    return int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:6])


def alias_to_json(name: str) -> dict[str, object]:
    return {"id": alias_number(name), "name": name, "group": ""}


def page_size(limit: int) -> int:
    """As in Airflow: 100 at most; 0 is 50."""
    return min(limit or DEFAULT, MOST)


def order_of(given: Collection[str], allowed: Collection[str]) -> list[tuple[str, bool]]:
    """Names to order by, each with whether it descends.

    Raises:
        InvalidCall: it cannot be ordered by that.
    """
    found: list[tuple[str, bool]] = []
    for each in given:
        name, descends = each.removeprefix("-"), each.startswith("-")
        if name not in allowed:
            raise InvalidCall(
                f"it cannot be ordered by {each!r}", where="query.order_by", fix=f"Known are {', '.join(allowed)}"
            )
        found.append((name, descends))
    return found


def alternatives(pattern: str | None) -> Sequence[str]:
    """The texts of a pattern, which are separated by `|`."""
    return [each for each in (pattern or "").split("|") if each]


def run_to_json(each: ConsumedBy, sequence: int) -> dict[str, object]:
    """A run that consumed an event; it has the id of its decision as long as it is not started."""
    return {
        "run_id": str(each.flow_run_id or each.decision),
        "dag_id": dag_id(each.consumer_name),
        "logical_date": None,
        "start_date": iso(each.launched or each.made),
        "end_date": iso(each.ended),
        "state": _state(each),
        "data_interval_start": None,
        "data_interval_end": None,
        "partition_key": each.target_key,
        "triggering": each.newest == sequence,
    }


def _state(each: ConsumedBy) -> str:
    match each.status:
        case "waiting":
            return "queued"
        case "launched":
            return "running"
        case _:
            return "success" if each.run_state == "Completed" else "failed"
