"""Translate to and from Airflow's terms: Dags for consumers, numbers for aliases, run states, sort orders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Annotated

from fastapi import Path, Query

from assetflow.api.requests import LARGEST, Text
from assetflow.core.values.words import iso
from assetflow.errors import InvalidCall, UnknownAsset, UnknownConsumer
from assetflow.ledger.read.assets import ListedAsset
from assetflow.ledger.read.events import ConsumedBy
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import ConsumerRecord
from assetflow.operations.lookup import find_consumer

DEFAULT = 50
MOST = 100


def dag_id(name: str) -> str:
    """Return the Dag id of a consumer or deployment `flow/deployment`."""
    return name.replace("/", ".")


def consumer_of(reader: Reader, dag: str) -> ConsumerRecord:
    """Return the consumer for a Dag id: `flow.deployment`, or the deployment's id.

    Raises:
        UnknownConsumer: no consumer matches; the error names similar ones.
    """
    if reader.consumers.number_of(dag) is None and dag.isdigit():
        raise UnknownConsumer(
            f"no Dag is called {dag!r}",
            where="path.dag_id",
            fix="Name it as flow.deployment, or by the deployment's id",
        )
    return find_consumer(reader, dag)


def asset_numbered(reader: Reader, number: int) -> ListedAsset:
    """Return the asset with this number.

    Raises:
        UnknownAsset: no asset has it.
    """
    found = reader.assets.get(number=number)
    if found is None:
        raise UnknownAsset(
            f"the asset with ID `{number}` was not found", where="asset_id", fix="GET /api/v2/assets lists the assets"
        )
    return found


def alias_number(name: str) -> int:
    """Return the number of an alias: a hash of its name, so that it is the same in every ledger."""
    return int.from_bytes(sha256(name.encode("utf-8", "surrogatepass")).digest()[:6])


def alias_to_json(name: str) -> dict[str, object]:
    return {"id": alias_number(name), "name": name, "group": ""}


def page_size(limit: int) -> int:
    """Return the page size for a limit, as Airflow does: at most 100, and 50 for 0."""
    return min(limit or DEFAULT, MOST)


def order_of(given: Collection[str], allowed: Collection[str]) -> list[tuple[str, bool]]:
    """Return the names to order by, each with True if the order is descending.

    Raises:
        InvalidCall: the list cannot be ordered by one of the names.
    """
    found: list[tuple[str, bool]] = []
    for each in given:
        name, descends = each.removeprefix("-"), each.startswith("-")
        if name not in allowed:
            raise InvalidCall(
                f"cannot order by {each!r}", where="query.order_by", fix=f"Order by one of {', '.join(allowed)}"
            )
        found.append((name, descends))
    return found


def alternatives(pattern: str | None) -> Sequence[str]:
    """Split a pattern at `|`."""
    return [each for each in (pattern or "").split("|") if each]


def run_to_json(each: ConsumedBy, sequence: int) -> dict[str, object]:
    """Return a run that consumed an event. Before the run exists, its id is that of the decision."""
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


Limit = Annotated[int, Query(ge=0, le=LARGEST, description="The largest number of items, at most 100.")]
Offset = Annotated[int, Query(ge=0, le=LARGEST)]
OrderBy = Annotated[list[Text], Query(description="Names to order by; `-` before a name means descending.")]
Pattern = Annotated[Text | None, Query(description="A part, in any case; `%` and `_` are wildcards, `|` separates.")]
Prefix = Annotated[Text | None, Query(description="A beginning, case-sensitive; `|` separates several.")]
AssetId = Annotated[int, Path(ge=0, le=LARGEST, examples=[1])]
DagId = Annotated[
    Text,
    Path(
        min_length=1,
        max_length=1000,
        description="`flow.deployment`, or the deployment's id.",
        examples=["report.nightly"],
    ),
]
