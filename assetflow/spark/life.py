"""The life of the session that all tasks of a process share: whether it still answers, and who may end it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from assetflow.errors import SparkUnreachable
from assetflow.spark.connect import NO_ANSWER, in_time
from assetflow.spark.watch import is_remote, is_task_running, leave_call

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger("assetflow.spark")

_SECONDS_TO_ANSWER = 5.0


def lives(session: SparkSession) -> bool:
    """Ask Spark with one small call whether the session can be used, and end the session if it cannot.

    Raises:
        SparkUnreachable: the JVM or the Connect server is there, but does not answer.
    """
    problem = in_time(partial(_ask_server if is_remote() else _ask_jvm, session), _SECONDS_TO_ANSWER)
    if not problem:
        return True
    if problem == NO_ANSWER:
        # Other tasks may be at work in the session.
        raise SparkUnreachable(
            f"Spark has not answered within {_SECONDS_TO_ANSWER:.0f} seconds",
            fix="Try again. If this goes on, end the flow run or the Connect server, and run the flow again",
        )
    logger.warning("Spark has ended, and is started again: %s", problem)
    # A server that is gone would be asked for minutes to release the session.
    cast(Any, session).release_session_on_close = False
    end(session)
    return False


def end(session: SparkSession) -> None:
    """End a session although tasks may use it, and also if its JVM has ended before."""
    if is_remote():
        type(session).stop(session)
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Sessions

    context, spark, sessions = cast("tuple[Any, Any, Any]", (session.sparkContext, SparkContext, Sessions))
    process = getattr(spark._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        context._jsc = spark._gateway = spark._jvm = None
    spark.stop(context)
    sessions._instantiatedSession = sessions._activeSession = None


def _ask_server(session: Any) -> None:
    client = session.client
    request = client._config_request_with_metadata()
    request.operation.get_option.keys.append("spark.master")
    # PySpark's own call would try again for minutes. The request has the id of the server's session, so that a server
    # that was started anew refuses it.
    client._stub.Config(request, metadata=client._builder.metadata(), timeout=2 * _SECONDS_TO_ANSWER)


def _ask_jvm(session: Any) -> None:
    context = session.sparkContext._jsc
    if context is None or context.sc().isStopped():
        raise ConnectionError("its context was stopped")
    # This thread asks nothing else.
    leave_call(session)


def keep_for_tasks(session: SparkSession) -> None:
    """Let `stop()` of the session and of its context do nothing but warn while a task runs."""
    for owner in [session] if is_remote() else [session, session.sparkContext]:
        cast(Any, owner).stop = partial(_stop_unless_needed, type(owner).stop, owner)


def _stop_unless_needed(stop: Callable[[Any], None], owner: object) -> None:
    if is_task_running():
        logger.warning(
            "stop() of the %s has no effect in a task: all tasks of this process share it, and assetflow ends it",
            type(owner).__name__,
        )
    else:
        stop(owner)
