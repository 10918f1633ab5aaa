"""An installation with an API: another environment, for whoever sends it updates."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.environment.prefect_server import PrefectServer
from tests.integration.installation import Installation

KEY = "a-long-random-text"


class ServedInstallation(Installation):
    """An installation whose evaluator and API are one process."""

    url = ""
    files: int | None = None
    """How many files the server may have open; None for as many as the machine allows."""

    def start(self, *arguments: str, crash_at: str = "", ready: bool = True) -> subprocess.Popen[bytes]:
        assert not crash_at
        env = self.server.env | {"ASSETFLOW_HOME": str(self.home), "ASSETFLOW_API_KEY": KEY}
        command = [sys.executable, "-m", "assetflow", "server", "start", "--take-over", "--port", "0", *arguments]
        if self.files is not None:
            command = ["sh", "-c", f'ulimit -n {self.files} && exec "$@"', "sh", *command]
        with (self.home / "evaluator.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if ready:
            self.until(self._is_ready)
        self.url = re.findall(r"listening on (\S+)", self.log)[-1]
        return self._process

    def client(self) -> httpx.Client:
        """A client of its API, with the key."""
        return httpx.Client(base_url=self.url, headers={"x-api-key": KEY}, timeout=30)


@contextmanager
def served(server: PrefectServer, home: Path, *, files: int | None = None) -> Iterator[ServedInstallation]:
    """Another environment: a Prefect server, a ledger and an API of its own; here, no Prefect is configured."""
    assert "PREFECT_API_URL" not in os.environ
    installation = ServedInstallation(server, home)
    installation.files = files
    try:
        installation.start()
        yield installation
    finally:
        installation.close()
