"""For all tests: a clean environment, plain reasons for what is skipped, and nothing left running."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.environment import cpu_time
from tests.environment.needs import NEEDS, in_ci, missing
from tests.environment.ordering import longest_first
from tests.environment.prefect_server import PrefectServer, send_what_prefect_holds_back
from tests.environment.processes import left_running, mark_session, stop_spark_gateway

Report = pytest.TestReport | pytest.CollectReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

    from assetflow.ledger import Ledger
    from assetflow.testing import Harness
    from tests.ledger.write.test_kept import Place

HOME = Path(tempfile.mkdtemp(prefix="assetflow-tests-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

# Options for a JVM that ends before thorough compilation pays: half the CPU time of a short Spark session.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def _clean_environment() -> None:
    """What the developer's shell says about Prefect and assetflow is not for the tests."""
    for name in [name for name in os.environ if name.startswith(("PREFECT_", "ASSETFLOW_"))]:
        del os.environ[name]
    os.environ |= {
        "ASSETFLOW_HOME": str(HOME / "assetflow"),
        # Hypothesis keeps there what it has read in our modules, for the next process and the next run.
        "HYPOTHESIS_STORAGE_DIRECTORY": str(Path(__file__).parents[1] / ".hypothesis"),
        "PREFECT_HOME": str(HOME / "prefect"),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "SPARK_LAUNCHER_OPTS": SHORT_LIVED,
        "SPARK_SUBMIT_OPTS": SHORT_LIVED,
    }
    mark_session()


# Compile each module once, not in every process, nor in every child: containers often set PYTHONDONTWRITEBYTECODE.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Containers often set this one too. What a process writes to a pipe then arrives at once, and users see that later.
os.environ.pop("PYTHONUNBUFFERED", None)

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so their children: Prefect's worker
# ends on it, also after SIGTERM.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Prefect reads its settings when it is imported, so this cannot wait for a fixture.
_clean_environment()

hypothesis.settings.register_profile(
    "developer", deadline=None, database=DirectoryBasedExampleDatabase(HOME / "hypothesis" / "examples")
)
hypothesis.settings.register_profile("ci", deadline=None, database=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if in_ci() else "developer")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """With `--dist loadgroup`, give each group of `scheduling` to one process, and other tests to whichever is free."""
    if config.getoption("dist") != "loadgroup":
        return None
    from tests.environment.scheduling import Groups

    return Groups(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)
    for item in items:
        for marker in NEEDS:
            if item.get_closest_marker(marker) and (reason := missing(marker)):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    _keep_pyspark_out()
    before = cpu_time.used()
    yield
    if cpu_time.is_limited(item):
        cpu_time.refuse_long(cpu_time.used() - before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None]:
    _keep_pyspark_out()
    yield


def _keep_pyspark_out() -> None:
    """Make PySpark's loggers of errors propagate: pytest adds its handlers to others, and these change their format."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        if isinstance(logger := logging.root.manager.loggerDict.get(name), logging.Logger):
            logger.propagate = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Report, Report]:
    """In CI everything is there: a test that misses something has not been run, and nobody would see it."""
    report = yield
    if in_ci() and report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason.startswith("needs "):
            report.outcome = "failed"
            report.longrepr = f"{reason}, which this CI machine does not have"
    return report


pytest_make_collect_report = pytest_runtest_makereport


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_running() -> Iterator[None]:
    yield
    stop_spark_gateway()
    processes = left_running()
    assert not processes, "still running after the tests:\n" + "\n".join(map(str, processes))


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """A command sets up the log of its process; here it is the process of the tests."""
    loggers = [logging.getLogger(name) for name in ("assetflow", "assetflow.evaluator")]
    before = [(each.level, each.propagate, list(each.handlers)) for each in loggers]
    yield
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers


@pytest.fixture(scope="session")
def prefect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A Prefect server that all tests of the session share; who stops or kills it starts a server of their own."""
    with PrefectServer(tmp_path_factory.mktemp("prefect-server")) as server:
        yield server
        send_what_prefect_holds_back()


@pytest.fixture
def prefect_here(prefect_server: PrefectServer) -> Iterator[PrefectServer]:
    """The shared server, and Prefect in this process talks to it."""
    with prefect_server.used_here():
        yield prefect_server


@pytest.fixture
def h(prefect_here: PrefectServer) -> Iterator[Harness]:  # noqa: ARG001
    """An evaluator with an empty ledger in this process, on the shared server."""
    from assetflow.testing import harness

    with harness(use_running_server=True) as made:
        yield made


@pytest.fixture(scope="session")
def shared_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic Spark session of this process, which all tests of the session share."""
    from assetflow.spark.session import SparkProfile, get_session

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ASSETFLOW_HOME", str(tmp_path_factory.mktemp("spark-home")))
        # Another of Hadoop's file systems than `file:`, with the same files.
        mount = {"spark.hadoop.fs.viewfs.mounttable.here.link./all": "file:///"}
        session = get_session(SparkProfile(master="local[2]", conf=mount))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def new_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a ledger that was made at noon: copying it is faster than making one."""
    from assetflow.ledger import Ledger
    from tests.cli.shop import NOON

    place = tmp_path_factory.mktemp("new-ledger") / "ledger.db"
    Ledger.open(place, now=NOON).close()
    return place


@pytest.fixture
def ledger(tmp_path: Path, new_ledger: Path) -> Iterator[Ledger]:
    """A ledger of the test's own."""
    from assetflow.ledger import Ledger

    shutil.copy(new_ledger, tmp_path / "ledger.db")
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        yield ledger


@pytest.fixture
def stale(ledger: Ledger) -> Ledger:
    """B was made from A, which has changed since; C, which is made from B, is missing."""
    from assetflow import Eager
    from tests.ledger.making import NOW, A, B, C, deploy_maker, update

    deploy_maker(ledger, Eager(), [B], [A], "make-b/x", code_version="1")
    deploy_maker(ledger, Eager(), [C], [B], "make-c/x")
    for asset, version in ((A, "first"), (B, "made"), (A, "second")):
        ledger.writer.events.record([update(asset, data_version=version)], NOW)
    return ledger


@pytest.fixture
def failed(ledger: Ledger) -> Place:
    """The run of the flow `core/lake` has failed."""
    from tests.ledger.write.test_kept import CORE, RAW, Place, kept, only

    place = Place(ledger)
    place.deploy("core/lake", kept([RAW], [CORE]))
    place.end(only(place.update(RAW)), "failed")
    return place
