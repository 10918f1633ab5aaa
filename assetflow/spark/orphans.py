"""What a flow run that was killed has left on a Connect server is ended by the process that runs it again.

The server keeps a session, and its jobs, whose client has vanished. So a flow run's session has an id that follows
from the flow run: who comes later finds it and interrupts what is at work there. A session that was closed in order
cannot be had again; then the next id counts.
"""

from __future__ import annotations

import logging
from uuid import NAMESPACE_URL, UUID, uuid5

from assetflow.prefect_io.internals import flow_run_contexts

logger = logging.getLogger("assetflow.spark")

_MOST_SESSIONS = 20
_CLOSED = "INVALID_HANDLE.SESSION_CLOSED"


def session_id(flow_run: UUID, number: int) -> UUID:
    """The id of a flow run's Connect session; the number counts those that were closed before."""
    return uuid5(NAMESPACE_URL, f"assetflow:flow-run:{flow_run}:{number}")


def take_over_session(url: str) -> str:
    """The address with the session of the flow run that runs here; what an earlier process of it left is interrupted.

    Outside of a flow run, in a process that shares one with others, and with a session id of the user's own, the
    address stays as it is.
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
    """Interrupt all that is at work in a session; false if the session is closed."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import SparkConnectClient

    client = SparkConnectClient(url)
    try:
        interrupted = client.interrupt_all()
    except PySparkException as error:
        if _CLOSED in str(error):
            return False
        logger.warning("What an earlier process of this flow run left in Spark was not looked for: %s", error)
    else:
        if interrupted:
            logger.info("Interrupted %d Spark operations of an earlier process of this flow run", len(interrupted))
    finally:
        client.close()
    return True
