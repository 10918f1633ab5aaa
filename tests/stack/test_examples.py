"""The examples of `deployments/` are true: their commands run, their settings exist, their texts agree."""

from __future__ import annotations

import configparser
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import prefect.settings
import pytest
import yaml

from assetflow.settings import Settings
from tests.environment.examples import DEPLOYMENTS, commands, env_file, with_our_python
from tests.environment.prefect_server import free_port
from tests.environment.project_stack import ROOT, until

UNITS = sorted((DEPLOYMENTS / "one-machine" / "systemd").glob("*.service"))
ENV_FILES = sorted(str(path.relative_to(DEPLOYMENTS)) for path in DEPLOYMENTS.rglob("*.env"))
OF_PREFECT_REDIS = {"PREFECT_REDIS_MESSAGING_URL"}


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_starts_what_the_page_starts(unit: Path) -> None:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.read_string(unit.read_text())
    command = parsed["Service"]["ExecStart"].removeprefix("/opt/pipelines/.venv/bin/")
    assert command in commands("one-machine")
    assert parsed["Service"]["Restart"] == "always"


@pytest.mark.parametrize("place", ENV_FILES)
def test_every_setting_is_one(place: str) -> None:
    ours = {f"ASSETFLOW_{name.upper()}" for name in Settings.model_fields}
    given = set(env_file(place)) - ours - OF_PREFECT_REDIS
    assert {name for name in given if not hasattr(prefect.settings, name)} == set()


def test_the_containers_run_what_the_page_runs() -> None:
    services = yaml.safe_load((DEPLOYMENTS / "replicas" / "compose.yaml").read_text())["services"]
    typed = {" ".join(word for word in block.split() if "$" not in word) for block in commands("replicas")}
    ours = [each for each in services.values() if "env_file" in each]
    assert len(ours) == 3
    for service in ours:
        words = [word for word in service["command"] if word not in ("--host", "0.0.0.0")]
        shown = {" ".join(word for word in block.split() if word not in ("--host", "--port")) for block in typed}
        assert " ".join(words) in shown | set(commands("one-machine"))
        assert (DEPLOYMENTS / "replicas" / service["env_file"]).exists()


@pytest.mark.heavy
@pytest.mark.prefect
@pytest.mark.timeout(300)
def test_the_commands_for_one_machine(tmp_path: Path) -> None:
    port = free_port()
    settings, server, assetflow, worker, deploy = (
        block.replace("4200", str(port)) for block in commands("one-machine")
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSETFLOW_"))}
    env = with_our_python(inherited) | {"HOME": str(tmp_path), "PREFECT_SERVER_API_PORT": str(port)}
    pool = f"http://127.0.0.1:{port}/api/work_pools/assetflow"
    with (
        running(f"{settings}\nexec {server}", env, tmp_path / "server.log"),
        running(f"{settings}\nexec {assetflow} --port 0", env, tmp_path / "assetflow.log"),
    ):
        until(lambda: answers(f"http://127.0.0.1:{port}/api/health"))
        with running(f"{settings}\nexec {worker}", env, tmp_path / "worker.log"):
            until(lambda: answers(pool))
            command = ["/bin/sh", "-ec", f"{settings}\n{deploy}"]
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / ".assetflow" / "ledger.db").exists()


@contextmanager
def running(script: str, env: dict[str, str], log: Path) -> Iterator[None]:
    """What a terminal of its own would run, until the block ends."""
    with log.open("ab") as output:
        command = ["/bin/sh", "-ec", script]
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output, start_new_session=True)
    try:
        yield
        assert process.poll() is None, log.read_text()[-3000:]
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(40)


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).is_success
    except httpx.TransportError:
        return False
