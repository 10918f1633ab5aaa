"""The Spark session of a process: one, shared by all tasks, in one of two modes.

Classic (the default) runs Spark in a JVM of this process, where every feature of Spark works. Connect talks to a
server: Spark's own local one, which all flow runs of a project share, so that only the first has to start a JVM, or one
at any `sc://` address. Spark allows a process only one mode for its life. A session that no longer answers is started
again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, cast

from assetflow.errors import SparkNotInstalled, SparkSettingsConflict, SparkUnreachable
from assetflow.settings import get_settings, spark_text
from assetflow.spark.connect import (
    NO_ANSWER,
    give_up_early,
    in_time,
    own_local_server,
    probe_connect,
    probe_master,
    stop_recorded_server,
)
from assetflow.spark.java import use_java
from assetflow.spark.watch import is_remote, is_task_running, leave_call, logger, take_over_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Mode = Literal["classic", "connect"]


@dataclass(frozen=True, slots=True)
class SparkProfile:
    """The Spark that a task asks for.

    Parameters:
        master: the master of a classic session, or of Spark's local Connect server.
        remote: empty for a classic session, `local` for Spark's own local Connect server, or `sc://host:port`.
        conf: Spark configuration, on top of assetflow's own for local masters.
    """

    master: str = "local[*]"
    remote: str = ""
    conf: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    @classmethod
    def from_settings(cls) -> SparkProfile:
        """Return the profile in the settings (`ASSETFLOW_SPARK_MASTER`, `_REMOTE`, `_CONF`)."""
        given = get_settings()
        return cls(given.spark_master, given.spark_remote, given.spark_conf)

    def override(
        self, *, master: str | None = None, remote: str | None = None, conf: Mapping[str, object] | None = None
    ) -> SparkProfile:
        """Return this profile with some parts replaced: `conf` key by key; `remote=""` asks for a classic session."""
        merged = {**self.conf, **{key: spark_text(value) for key, value in (conf or {}).items()}}
        return replace(
            self,
            master=self.master if master is None else master,
            remote=self.remote if remote is None else remote,
            conf=merged,
        )

    @property
    def mode(self) -> Mode:
        """`connect` if there is a remote, else `classic`."""
        return "connect" if self.remote else "classic"

    @property
    def is_local(self) -> bool:
        """True if Spark runs on this machine, so that assetflow chooses its configuration."""
        return self.remote in ("", "local") and self.master.partition("[")[0] in ("local", "local-cluster")

    def full_conf(self) -> dict[str, str]:
        """`conf` on top of assetflow's own configuration for this machine."""
        return {**(_local_conf() if self.is_local else {}), **self.conf}


def _local_conf() -> dict[str, str]:
    return {
        # Spark's default of 200 doubles the time of small jobs.
        "spark.sql.shuffle.partitions": str(max(2, min(4, os.cpu_count() or 2))),
        "spark.sql.warehouse.dir": str(get_settings().home / "spark" / "warehouse"),
        # Not the machine's name, which may not resolve, and not open to the network.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Allow any number of flow runs side by side: by default Spark gives up after 16 taken ports.
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
    }


@dataclass(slots=True)
class _Process:
    """The session and the profile of this process, guarded by `lock`."""

    lock: Lock = field(default_factory=Lock)
    session: SparkSession | None = None
    profile: SparkProfile | None = None
    conf: dict[str, str] = field(default_factory=dict[str, str])


_process = _Process()


def get_session(profile: SparkProfile | None = None) -> SparkSession:
    """Return the session of this process. The first call starts it or connects, and so does a call after its end.

    While a task runs, `stop()` of the session or of its context only warns: all tasks of the process use it.

    Parameters:
        profile: the profile that the caller needs; by default that of the settings. Configuration that a live session
            can change is changed for the whole process; a warning in the log names the rest.

    Raises:
        SparkNotInstalled: PySpark is missing.
        JavaNotFound: no Java that Spark can run on was found.
        SparkUnreachable: the master, the Connect server or the JVM of the session does not answer within 5 seconds.
        SparkSettingsConflict: the process is in the other mode, or connected to another server.
    """
    wanted = profile or SparkProfile.from_settings()
    _check_installed(wanted)
    with _process.lock:
        _check_mode(wanted)
        session = _process.session
        if session is None or not lives(session):
            session = _process.session = _start(wanted)
            keep_for_tasks(session)
            _process.profile = wanted
            _process.conf = wanted.full_conf()
        elif wanted != _process.profile or wanted.full_conf() != _process.conf:
            _adapt(session, wanted)
        return session


def start_local_server() -> None:
    """Start Spark's local Connect server of this `ASSETFLOW_HOME`, unless it is running, and send it a first query.

    A JVM and its first query take seconds, for which no flow run then has to wait.

    Raises:
        SparkNotInstalled, JavaNotFound, SparkUnreachable, SparkSettingsConflict: as `get_session`.
    """
    session = get_session(SparkProfile.from_settings().override(remote="local"))
    session.range(2).groupBy().count().collect()


def stop_local_server() -> bool:
    """Stop Spark's local Connect server of this `ASSETFLOW_HOME`, if one is running, and no other.

    This closes the session of this process first, since PySpark would otherwise wait for minutes at exit.

    Returns:
        True if a server was stopped.
    """
    with _process.lock:
        if _process.session is not None and _process.profile is not None and _process.profile.remote == "local":
            end(_process.session)
            _process.session = None
        return stop_recorded_server()


def _check_installed(wanted: SparkProfile) -> None:
    for package in ("pyspark", "grpc") if wanted.mode == "connect" else ("pyspark",):
        if find_spec(package) is None:
            raise SparkNotInstalled(
                f"the Python package {package} is not installed", fix="Run: pip install 'assetflow[spark]'"
            )


def _check_mode(wanted: SparkProfile) -> None:
    live = _process.profile
    live_mode = live.mode if live else _mode_of_foreign_session()
    if live_mode is not None and live_mode != wanted.mode:
        raise _conflict(f"this process has a {live_mode} Spark session, and this call asks for a {wanted.mode} one")
    if live is not None and live.remote != wanted.remote:
        raise _conflict(
            f"this process is connected to Spark at {live.remote!r}, and this call asks for {wanted.remote!r}"
        )


def _conflict(message: str) -> SparkSettingsConflict:
    return SparkSettingsConflict(
        message,
        fix="Give all tasks of a flow the same remote=, or run them in separate flows",
    )


def _mode_of_foreign_session() -> Mode | None:
    """Return the mode of a session that the user's own code started before the first call here, or `None`."""
    from pyspark import SparkContext
    from pyspark.sql.utils import is_remote

    if is_remote():
        return "connect"
    return "classic" if SparkContext._active_spark_context is not None else None  # pyright: ignore[reportPrivateUsage]


def _start(wanted: SparkProfile) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("assetflow")
    if wanted.remote == "local":
        session = _on_local_server(builder, wanted)
        _warn_of_differences(session, wanted)
        return session
    for key, value in wanted.full_conf().items():
        builder = builder.config(key, value)
    if wanted.remote:
        probe_connect(wanted.remote)
        return builder.remote(take_over_session(wanted.remote)).getOrCreate()
    use_java()
    if wanted.master.startswith("spark://"):
        probe_master(wanted.master)
    session = builder.master(wanted.master).getOrCreate()
    _warn_of_differences(session, wanted)
    return session


def _on_local_server(builder: SparkSession.Builder, wanted: SparkProfile) -> SparkSession:
    use_java()
    conf = wanted.full_conf()
    url = own_local_server(wanted.master, conf)
    probe_connect(url)
    session = builder.remote(take_over_session(url)).getOrCreate()
    # A running server refuses settings that it takes only at its start, and PySpark warns about each.
    for key, value in conf.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    give_up_early(session)
    return session


def _adapt(session: SparkSession, wanted: SparkProfile) -> None:
    """Change the configuration of the live session where that is possible, and log the rest."""
    changed = {key: value for key, value in wanted.conf.items() if _process.conf.get(key) != value}
    for key, value in changed.items():
        if session.conf.isModifiable(key):
            logger.info("Spark setting %s is now %s, for all tasks of this process", key, value)
            session.conf.set(key, value)
            _process.conf[key] = value
    _warn_of_differences(session, replace(wanted, conf=changed))


def _warn_of_differences(session: SparkSession, wanted: SparkProfile) -> None:
    static = {key: value for key, value in wanted.conf.items() if not session.conf.isModifiable(key)}
    if not wanted.remote.startswith("sc://"):
        static["spark.master"] = wanted.master
    for key, value in static.items():
        live = session.conf.get(key, None)
        if live != value:
            logger.warning(
                "Spark runs with %s=%s, and a task asks for %s. This setting cannot change while Spark runs: the task "
                "gets the current value",
                key,
                live,
                value,
            )


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
    """End a session although tasks may use it, and also if its JVM has ended before or ends at this moment."""
    if is_remote():
        type(session).stop(session)
        return
    from pyspark import SparkContext
    from pyspark.sql import SparkSession as Sessions

    context, spark, sessions = cast("tuple[Any, Any, Any]", (session.sparkContext, SparkContext, Sessions))
    if _jvm_has_ended(spark):
        context._jsc = spark._gateway = spark._jvm = None
    spark.stop(context)
    sessions._instantiatedSession = sessions._activeSession = None


def _jvm_has_ended(spark: Any) -> bool:
    from py4j.protocol import Py4JError  # pyright: ignore[reportMissingTypeStubs]

    process = getattr(spark._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        return True
    try:
        # A process that is killed closes its port a moment before it has ended.
        if spark._jvm is not None:
            spark._jvm.System.nanoTime()
    except (OSError, Py4JError):
        return True
    return False


def _ask_server(session: Any) -> None:
    client = session.client
    request = client._config_request_with_metadata()
    request.operation.get_option.keys.append("spark.master")
    # PySpark's own call would try again for minutes. The request has the id of the server's session, so that a server
    # that was started again refuses it.
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
