"""`retry`: let a consumer try again, here or by assetflow's API."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote, urlencode
from uuid import UUID

from assetflow.errors import InvalidCall
from assetflow.settings import get_settings


def retry(consumer: str, partition_key: str | None = None, *, all_failed: bool = False) -> list[UUID]:
    """Let a consumer try again, and return the decisions that follow at once, or the flow runs that run again.

    >>> from assetflow import retry
    >>> def run_again_what_failed_last_night():
    ...     return retry("core/lake")

    Of a consumer that updates start, the last failed run runs again in Prefect, with the updates that it was given. An
    Eager or Lazy consumer does not repeat a run that failed for the same inputs, or only as often as `retries` says,
    and `catchup` waives what is not owed; `retry` forgets both, so that what is out of date is asked for. It writes to
    the ledger and to Prefect on this machine, or, without a ledger, calls the API at `ASSETFLOW_API_URL`. Contract 4.7,
    8.7.

    Parameters:
        consumer: the consumer, `flow/deployment`.
        partition_key: only this target key; without it, all of them.
        all_failed: all failed runs of a consumer that updates start, instead of the last one.

    Returns:
        The ids of the decisions, or of the flow runs. Other targets of an Eager or Lazy consumer wait for what holds
        them back; `assetflow plan` says for what.

    Raises:
        UnknownConsumer: no consumer on this machine has this name.
        InvalidCall: the name is not `flow/deployment`; or the consumer has no such key, or no failed runs to choose.
        Conflict: none of its runs has failed.
        LedgerForeign: another ledger decides.
        LedgerError: there is no ledger on this machine, and no address of an API; or it cannot be written.
        ApiUnreachable, ApiRefused: the API does not answer as expected, or it refuses the call.
    """
    flow, _, deployment = consumer.partition("/")
    if not flow or not deployment:
        raise InvalidCall(f"{consumer!r} is not flow/deployment", fix="`assetflow consumers ls` lists the names")
    if get_settings().uses_api:
        return _remote(flow, deployment, partition_key, all_failed)
    return asyncio.run(_local(flow, deployment, partition_key, all_failed))


async def _local(flow: str, deployment: str, key: str | None, all_failed: bool) -> list[UUID]:
    from assetflow.ledger import Ledger, Reader
    from assetflow.operations import runs_by_hand
    from assetflow.operations.deciding_ledger import Decider
    from assetflow.operations.installation import Installation
    from assetflow.operations.lookup import consumer_at

    with Reader.open() as reader:
        record, other = consumer_at(reader, flow, deployment), Decider(reader).other
        with Ledger.open() as ledger:
            done = await runs_by_hand.retry(
                Installation(ledger, other_ledger=other), record, key, all_failed=all_failed
            )
    return [*(each.id for each in done.decisions), *done.flow_runs]


def _remote(flow: str, deployment: str, key: str | None, all_failed: bool) -> list[UUID]:
    from assetflow.authoring.remote import RemoteApi

    path = f"/api/v1/consumers/{quote(flow, safe='')}/{quote(deployment, safe='')}/retry"
    given = ({} if key is None else {"target_key": key}) | ({"all_failed": "true"} if all_failed else {})
    with RemoteApi.of_settings() as api:
        answer = api.post(f"{path}?{urlencode(given)}" if given else path, {})
    made = [each["id"] for each in cast("Sequence[Mapping[str, Any]]", answer["decisions"])]
    return [UUID(each) for each in (*made, *cast("Sequence[str]", answer["flow_runs"]))]
