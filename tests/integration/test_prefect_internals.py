"""What assetflow relies on inside Prefect; if one of these fails, Prefect has changed there."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import certifi
import httpx
import pytest
from prefect import flow, task
from prefect._internal import version_checking
from prefect.client import orchestration
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.results import ResultStore
from prefect.server.api import server
from prefect.server.schemas.schedules import CronSchedule, IntervalSchedule, RRuleSchedule
from prefect.settings import (
    PREFECT_API_DATABASE_CONNECTION_URL,
    PREFECT_API_SSL_CERT_FILE,
    PREFECT_API_TLS_INSECURE_SKIP_VERIFY,
    PREFECT_CLIENT_MAX_RETRIES,
    Settings,
    temporary_settings,
)
from prefect.states import Cancelled, Cancelling, Completed, Crashed, Failed, Paused, Pending, return_value_to_state
from prefect.transactions import transaction
from prefect.types import DateTime
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker

from assetflow.prefect_io.internals import (
    call_hooks,
    ends_completed,
    flow_run_contexts,
    in_user_transaction,
    leave_websockets_out_of_the_limit,
    on_commit_of_task,
    schedule_dates,
    share_certificates,
    start_by_command,
)
from tests.integration.recorded import in_flow

if TYPE_CHECKING:
    from prefect.server.schemas.schedules import SCHEDULE_TYPES

pytestmark = [pytest.mark.prefect, pytest.mark.usefixtures("prefect_here")]


def of_other_run(state: State[Any]) -> State[Any]:
    state.state_details.task_run_id = uuid4()
    return state


@pytest.mark.parametrize(
    "result",
    [
        None,
        1,
        [],
        {"a": 1},
        Completed(),
        Completed(name="Skipped"),
        Completed(name="Completed"),
        Failed(),
        Cancelled(),
        Crashed(),
        Paused(),
        of_other_run(Completed()),
        of_other_run(Completed(name="Cached")),
        of_other_run(Failed()),
        [of_other_run(Completed()), of_other_run(Completed(name="Skipped"))],
        [Completed(), Failed()],
        (Completed(), Completed()),
        [Completed(), Paused()],
        [Completed(), 1],
        {"a": Failed()},
    ],
    ids=repr,
)
async def test_a_result_is_judged_as_prefect_judges_it(result: object) -> None:
    expected = ends_completed(result)
    state: State[Any] = await return_value_to_state(result, result_store=ResultStore())
    assert expected == (state.is_completed() and state.name == "Completed")


@task
def asking() -> bool:
    return in_user_transaction()


@task
def nesting() -> tuple[bool, bool, bool]:
    plain = asking()
    with transaction():
        inside = asking()
        submitted = asking.submit().result()
    return plain, inside, submitted


def test_a_users_transaction_is_told_from_those_of_tasks() -> None:
    def body() -> list[object]:
        outside = [asking(), nesting(), asking.submit().result()]
        with transaction():
            inside = [asking(), nesting(), asking.submit().result()]
        return outside + inside

    assert in_flow(body) == [False, (False, True, True), False, True, (True, True, True), True]


def test_a_hook_runs_when_the_users_transaction_commits() -> None:
    order: list[str] = []

    @task
    def hooked() -> None:
        on_commit_of_task(lambda _: order.append("commit"))

    def body() -> None:
        with transaction():
            hooked()
            order.append("end of block")

    in_flow(body)
    assert order == ["end of block", "commit"]


def test_the_flow_runs_around_this_code_are_known_up_to_the_root() -> None:
    @task
    def names() -> list[str]:
        return [context.flow.name for context in flow_run_contexts() if context.flow]

    @flow(name="below")
    def below() -> list[str]:
        return names.submit().result()

    @flow(name="root")
    def root() -> list[str]:
        return below()

    assert root() == ["below", "root"]
    assert list(flow_run_contexts()) == []


@pytest.mark.parametrize(
    "schedule",
    [
        CronSchedule(cron="30 2 * * *", timezone="Europe/Berlin"),
        IntervalSchedule(interval=timedelta(hours=7), anchor_date=DateTime(2026, 3, 1, tzinfo=UTC)),
        RRuleSchedule(rrule="FREQ=DAILY;BYHOUR=3", timezone="UTC"),
    ],
    ids=["cron", "interval", "rrule"],
)
async def test_the_dates_of_a_schedule_are_those_that_prefect_schedules(schedule: SCHEDULE_TYPES) -> None:
    # In this week, clocks change in Berlin.
    start, end = datetime(2026, 3, 25, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
    expected = [datetime.fromisoformat(each.isoformat()) for each in await schedule.get_dates(start=start, end=end)]
    found = schedule_dates(schedule, start, end)
    assert found == sorted({each.astimezone(UTC) for each in expected if start <= each <= end})
    assert len(found) > 5


async def test_a_websocket_does_not_count_towards_the_limit_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "RequestLimitMiddleware", server.RequestLimitMiddleware)
    leave_websockets_out_of_the_limit()
    entered: list[str] = []

    async def app(scope: dict[str, str], receive: object, send: object) -> None:  # noqa: ARG001
        entered.append(scope["type"])
        await asyncio.Event().wait()

    limited = server.RequestLimitMiddleware(app, limit=1)
    going_on = [asyncio.create_task(limited({"type": kind}, None, None)) for kind in ("websocket", "http", "http")]
    await asyncio.wait(going_on, timeout=0.05)
    assert entered == ["websocket", "http"]
    for each in going_on:
        each.cancel()
    with temporary_settings({PREFECT_API_DATABASE_CONNECTION_URL: "sqlite+aiosqlite:///:memory:"}):
        found = server.create_app(ephemeral=True, ignore_cache=True)
    assert server.RequestLimitMiddleware in [each.cls for each in found.user_middleware]


SAYS = """
import os, sys
print(os.getpid() == os.getpgid(0), os.environ["PREFECT_CLIENT_MAX_RETRIES"], file=open(sys.argv[1], "w"))
sys.exit(3)
"""


class Hooks:
    """What a worker asks for hooks."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def run_cancellation_hooks(self, flow_run: FlowRun, state: State[Any]) -> None:
        self.called.append(f"cancellation {flow_run.name} {state.type.value}")

    async def run_crashed_hooks(self, flow_run: FlowRun, state: State[Any]) -> None:
        self.called.append(f"crashed {flow_run.name} {state.type.value}")


@pytest.mark.parametrize("as_engine", [True, False])
async def test_a_process_worker_starts_a_command_as_it_is_told(tmp_path: Path, as_engine: bool) -> None:
    """The hooks are called elsewhere. The process has a group and the job's environment, as Prefect's engine has."""

    @flow
    def commanded() -> None:
        """A flow that a process worker would have to find."""

    hooks, said = Hooks(), tmp_path / "said"
    configuration = ProcessJobConfiguration(
        command=shlex.join([sys.executable, "-c", SAYS, str(said)]),
        env={"PREFECT_CLIENT_MAX_RETRIES": "1"},
        working_dir=tmp_path,
    )
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 2}):
        async with get_client() as client:
            run = await client.create_flow_run(commanded, name="run", state=Pending())
            configuration.prepare_for_flow_run(run)
            worker = ProcessWorker(work_pool_name="pool")
            with start_by_command(hooks, as_engine=as_engine):
                await worker.run(run, configuration)
    assert said.read_text().split() == (["True", "1"] if as_engine else ["False", "2"])
    assert hooks.called == ["crashed run CRASHED"]


HOOKED = """
from pathlib import Path
from prefect import flow

def called(flow, flow_run, state):
    Path(f"{state.type.value}.called").touch()

@flow(on_cancellation=[called], on_crashed=[called], on_failure=[called])
def hooked():
    pass
"""


@pytest.mark.parametrize(
    ("state", "called"),
    [(Cancelling(), ["CANCELLING.called"]), (Crashed(), ["CRASHED.called"]), (Failed(), [])],
    ids=["cancelled", "crashed", "failed"],
)
async def test_the_hooks_of_a_state_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State[Any], called: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hooked.py").write_text(HOOKED)
    async with get_client() as client:
        flow_id = await client.create_flow_from_name(f"hooked-{uuid4().hex}")
        deployment = await client.create_deployment(
            flow_id, "hooked", entrypoint="hooked.py:hooked", path=str(tmp_path)
        )
        run = await client.create_flow_run_from_deployment(deployment)
    await call_hooks(run, state)
    assert [each for each in ("CANCELLING.called", "CRASHED.called") if os.access(each, os.F_OK)] == called


@pytest.fixture
def unpatched(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (orchestration, version_checking):
        monkeypatch.setattr(module, "ssl", ssl)
    monkeypatch.setattr(Settings, "to_environment_variables", Settings.to_environment_variables)


def contexts(monkeypatch: pytest.MonkeyPatch) -> list[ssl.SSLContext]:
    """The contexts with which Prefect makes its clients and reads the version of its server."""
    made: list[ssl.SSLContext] = []

    def note(_: object, **given: Any) -> None:
        made.append(given["verify"])
        raise httpx.ConnectError("only noted")

    get_client(sync_client=True)
    for kind in (httpx.Client, httpx.AsyncClient):
        monkeypatch.setattr(kind, "__init__", note)
    for way in (True, False):
        with pytest.raises(httpx.ConnectError):
            get_client(sync_client=way)
    asyncio.run(version_checking.check_server_version("http://nowhere/api", logging.getLogger(), raise_on_error=False))
    monkeypatch.undo()
    return made


@pytest.mark.usefixtures("unpatched")
def test_clients_share_the_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert len({id(each) for each in contexts(monkeypatch)}) == 3
    share_certificates()
    assert len({id(each) for each in contexts(monkeypatch)}) == 1
    own = tmp_path / "own.pem"
    own.write_bytes(Path(certifi.where()).read_bytes())
    with temporary_settings({PREFECT_API_SSL_CERT_FILE: str(own)}):
        before = contexts(monkeypatch)[0]
        os.utime(own, (1, 1))
        assert contexts(monkeypatch)[0] is not before


@pytest.mark.usefixtures("unpatched")
def test_a_client_that_trusts_everybody_shares_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    share_certificates()
    with temporary_settings({PREFECT_API_TLS_INSECURE_SKIP_VERIFY: True}):
        trusting = contexts(monkeypatch)
    assert {each.verify_mode for each in trusting} == {ssl.CERT_NONE}
    assert {each.verify_mode for each in contexts(monkeypatch)} == {ssl.CERT_REQUIRED}
