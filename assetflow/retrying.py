"""`retry`: let an Eager or Lazy consumer try again what it tried or waived, here or by assetflow's API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote, urlencode
from uuid import UUID

from assetflow.errors import InvalidCall
from assetflow.settings import get_settings


def retry(consumer: str, partition_key: str | None = None) -> list[UUID]:
    """Let an Eager or Lazy consumer try again what it tried or waived, and return the decisions that follow at once.

    >>> from assetflow import retry
    >>> def run_again_what_failed_last_night():
    ...     return retry("core/lake")

    A run that failed is not repeated for the same inputs, or only as often as `retries` says, and `catchup` waives what
    is not owed. `retry` forgets both, so that what is out of date is asked for. It writes to the ledger on this
    machine, or, without one, calls the API at `ASSETFLOW_API_URL`. Contract 8.7.

    Parameters:
        consumer: the consumer, `flow/deployment`.
        partition_key: only this target key; without it, all of them.

    Returns:
        The ids of the decisions. Other targets wait for what holds them back; `assetflow plan` says for what.

    Raises:
        UnknownConsumer: no consumer on this machine has this name.
        InvalidCall: the name is not `flow/deployment`; or the consumer is neither Eager nor Lazy, or has no such key.
        LedgerForeign: another ledger decides.
        LedgerError: there is no ledger on this machine, and no address of an API; or it cannot be written.
        ApiUnreachable, ApiRefused: the API does not answer as expected, or it refuses the call.
    """
    flow, _, deployment = consumer.partition("/")
    if not flow or not deployment:
        raise InvalidCall(f"{consumer!r} is not flow/deployment", fix="`assetflow consumers ls` lists the names")
    if get_settings().uses_api:
        return _remote(flow, deployment, partition_key)
    return _local(flow, deployment, partition_key)


def _local(flow: str, deployment: str, key: str | None) -> list[UUID]:
    from assetflow.ledger import Ledger, Reader
    from assetflow.operations import retrying
    from assetflow.operations.consumers import consumer_at
    from assetflow.operations.deciding_ledger import Decider
    from assetflow.operations.installation import Installation

    with Reader.open() as reader:
        record, other = consumer_at(reader, flow, deployment), Decider(reader).other
        with Ledger.open() as ledger:
            done = retrying.retry(Installation(ledger, other_ledger=other), record, key)
    return [each.id for each in done.decisions]


def _remote(flow: str, deployment: str, key: str | None) -> list[UUID]:
    from assetflow.authoring.remote import RemoteApi

    path = f"/api/v1/consumers/{quote(flow, safe='')}/{quote(deployment, safe='')}/retry"
    with RemoteApi.of_settings() as api:
        answer = api.post(path if key is None else f"{path}?{urlencode({'target_key': key})}", {})
    return [UUID(each["id"]) for each in cast("Sequence[Mapping[str, Any]]", answer["decisions"])]
