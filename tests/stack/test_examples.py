"""The examples of `deployments/` are true: their commands run, their settings exist, their texts agree."""

import configparser
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import prefect.settings
import pytest
import yaml

from assetflow.ledger.sql.engine import OLDEST_POSTGRES
from assetflow.settings import Settings
from tests.environment.examples import DEPLOYMENTS, ROOT, answers, commands, env_file, plain_environment, running
from tests.environment.prefect_server import free_port
from tests.environment.waiting import until

UNITS = sorted((DEPLOYMENTS / "one-machine" / "systemd").glob("*.service"))
ENV_FILES = sorted(str(path.relative_to(DEPLOYMENTS)) for path in DEPLOYMENTS.rglob("*.env"))
OF_PREFECT_REDIS = {"PREFECT_REDIS_MESSAGING_URL"}
REPLICAS = DEPLOYMENTS / "replicas"
COMPOSE = yaml.safe_load((REPLICAS / "compose.yaml").read_text())
CONTAINERS = COMPOSE["services"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_unit_starts_what_the_page_starts_and_is_enabled(unit: Path) -> None:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.read_string(unit.read_text())
    command = parsed["Service"]["ExecStart"].removeprefix("/opt/pipelines/.venv/bin/")
    assert command in commands("one-machine")
    assert parsed["Service"]["Restart"] == "always"
    (enabled,) = re.findall(r"^systemctl enable --now (.+)$", (DEPLOYMENTS / "one-machine/README.md").read_text(), re.M)
    assert unit.stem in enabled.split()


@pytest.mark.parametrize("place", ENV_FILES)
def test_every_setting_is_one(place: str) -> None:
    ours = {f"ASSETFLOW_{name.upper()}" for name in Settings.model_fields}
    given = set(env_file(place)) - ours - OF_PREFECT_REDIS
    assert {name for name in given if not hasattr(prefect.settings, name)} == set()


def test_the_containers_run_what_the_page_runs_and_what_they_name_is_there() -> None:
    typed = {*commands("replicas"), *commands("one-machine")}
    ours = [service["command"] for service in CONTAINERS.values() if "env_file" in service]
    assert len(ours) == 5
    for command in ours:
        assert " ".join(command).replace(" --host 0.0.0.0", "") in typed
    for service in CONTAINERS.values():
        assert (REPLICAS / service.get("env_file", "assetflow.env")).is_file()
        for needed, how in service.get("depends_on", {}).items():
            assert ("healthcheck" in CONTAINERS[needed]) == (how["condition"] == "service_healthy")
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or (REPLICAS / source).is_file()
    assert int(CONTAINERS["postgres"]["image"].partition(":")[2]) >= OLDEST_POSTGRES


@pytest.mark.parametrize("place", ["replicas/assetflow.env", "replicas/prefect-server.env"])
def test_the_hosts_are_containers(place: str) -> None:
    hosts = {urlsplit(value).hostname for value in env_file(place).values() if "://" in value}
    assert hosts
    assert hosts <= set(CONTAINERS)


@pytest.mark.long
@pytest.mark.prefect
@pytest.mark.timeout(300)
def test_the_commands_for_one_machine(tmp_path: Path) -> None:
    port = free_port()
    settings, server, assetflow, watcher, worker, deploy = (
        block.replace("4200", str(port)) for block in commands("one-machine")
    )
    env = plain_environment() | {"HOME": str(tmp_path), "PREFECT_SERVER_API_PORT": str(port)}
    pool = f"http://127.0.0.1:{port}/api/work_pools/assetflow"
    with (
        running(f"{settings}\nexec {server}", env, tmp_path / "server.log"),
        running(f"{settings}\nexec {assetflow} --port 0", env, tmp_path / "assetflow.log"),
    ):
        until(lambda: answers(f"http://127.0.0.1:{port}/api/health"))
        with (
            running(f"{settings}\nexec {watcher}", env, tmp_path / "watcher.log"),
            running(f"{settings}\nexec {worker}", env, tmp_path / "worker.log"),
        ):
            until(lambda: "ready: the watchers" in (tmp_path / "watcher.log").read_text())
            until(lambda: answers(pool))
            command = ["/bin/sh", "-ec", f"{settings}\n{deploy}"]
            done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert (tmp_path / ".assetflow" / "ledger.db").exists()
