"""Worlds to destroy, and the line that sums up what was lost in all of them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.environment.postgres import chosen_database, new_database
from tests.environment.prefect_server import PrefectServer
from tests.environment.replicas import replicas
from tests.faults.judge import Verdict, judge
from tests.faults.proxy import Proxy
from tests.faults.world import World

VERDICTS: dict[str, Verdict] = {}

Judged = Callable[..., Verdict]


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A server for the worlds of one module: it may be killed, as long as it runs again afterwards.

    With TEST_PREFECT=replicas it is one of two, on Postgres and Redis.
    """
    home = tmp_path_factory.mktemp("faults-server")
    if os.environ.get("TEST_PREFECT") == "replicas":
        with replicas(home) as (server, _):
            yield server
        return
    with PrefectServer(home) as server:
        yield server


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The address of the world's ledger; none for a file in its home.

    A test may ask for "sqlite" or "postgres"; all others have the database that TEST_DATABASE names.
    """
    asked: str | None = getattr(request, "param", None)
    if asked == "sqlite":
        yield None
        return
    with new_database() if asked == "postgres" else chosen_database() as url:
        yield url


@pytest.fixture
def on_a_file(database: str | None) -> None:
    """For tests about a ledger that is a file, and has one evaluator at a time."""
    if database is not None:
        pytest.skip("about a ledger that is a file, and TEST_DATABASE names another one")


@pytest.fixture
def world(own_server: PrefectServer, tmp_path: Path, database: str | None) -> Iterator[World]:
    """A world without consumers and with no evaluator started."""
    world = World(own_server, tmp_path / "home", database=database)
    yield world
    world.close()


@pytest.fixture
def proxy(own_server: PrefectServer) -> Iterator[Proxy]:
    with Proxy(own_server.port) as proxy:
        yield proxy


@pytest.fixture
def behind(own_server: PrefectServer, proxy: Proxy, tmp_path: Path, database: str | None) -> Iterator[World]:
    """A world whose evaluator reaches Prefect through the proxy."""
    world = World(own_server, tmp_path / "home", through=proxy.api_url, database=database)
    yield world
    world.close()


@pytest.fixture
def judged(request: pytest.FixtureRequest) -> Judged:
    """Judge a world, and fail if anything was lost, doubled or wrong."""

    def judge_now(world: World, **given: object) -> Verdict:
        world.wait_for_marks()
        verdict = judge(world, **given)  # pyright: ignore[reportArgumentType]
        module = request.path.stem.removeprefix("test_")
        VERDICTS[module] = VERDICTS.get(module, Verdict()) + verdict
        assert verdict.is_good, f"{verdict}\n" + "\n".join([*verdict.lost, *verdict.doubled, *verdict.wrong][:40])
        return verdict

    return judge_now


def pytest_unconfigure() -> None:
    for module, verdict in VERDICTS.items():
        print(f"{module}: {verdict}")  # noqa: T201
    if VERDICTS:
        print(sum(VERDICTS.values(), Verdict()))  # noqa: T201 (the suite's last line)
