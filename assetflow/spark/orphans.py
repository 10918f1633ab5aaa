"""Interrupt what a killed process of a flow run has left on a Connect server, when the flow run is run again.

The server keeps a session and its jobs when the client vanishes. So the id of a flow run's session is derived from the
flow run: a later process of the flow run finds the session and interrupts its jobs. A session that was closed properly
cannot be opened again; then the process uses the next id.
"""

from __future__ import annotations

import logging
from uuid import NAMESPACE_URL, UUID, uuid5

from assetflow.prefect_io.internals import flow_run_contexts
from assetflow.spark.causes import reason_of

logger = logging.getLogger("assetflow.spark")

_MOST_SESSIONS = 20
_CLOSED = "INVALID_HANDLE.SESSION_CLOSED"


def session_id(flow_run: UUID, number: int) -> UUID:
    """Return the id of a flow run's Connect session; `number` counts its sessions that were closed before."""
    return uuid5(NAMESPACE_URL, f"assetflow:flow-run:{flow_run}:{number}")


def take_over_session(url: str) -> str:
    """Return the address with the session of the current flow run, and interrupt what its earlier process left there.

    The address does not change outside a flow run, in a process that shares a flow run with others, and if the user has
    set a session id.
    """
    flow_run = _flow_run_of_process()
    if flow_run is None or ";session_id=" in url:
        return url
    for number in range(_MOST_SESSIONS):
        with_session = _with_session(url, session_id(flow_run, number))
        if _interrupt_all(with_session):
            return with_session
    return url


def _flow_run_of_process() -> UUID | None:
    contexts = list(flow_run_contexts())
    if not contexts or contexts[-1].detached or contexts[-1].flow_run is None:
        return None
    return contexts[-1].flow_run.id


def _with_session(url: str, session: UUID) -> str:
    # sc://host:port/;name=value;name=value
    parameters = url if "/;" in url else f"{url.rstrip('/')}/"
    return f"{parameters.rstrip(';')};session_id={session}"


def _interrupt_all(url: str) -> bool:
    """Interrupt everything that runs in a session. Return False if the session is closed."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import SparkConnectClient

    client = SparkConnectClient(url)
    try:
        interrupted = client.interrupt_all()
    except PySparkException as error:
        if _CLOSED in str(error):
            return False
        logger.warning(
            "Spark jobs of an earlier process of this flow run may still run; Spark could not be asked: %s",
            reason_of(error),
        )
    else:
        if interrupted:
            logger.info("Interrupted %d Spark operations of an earlier process of this flow run", len(interrupted))
    finally:
        client.close()
    return True
