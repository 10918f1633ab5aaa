"""docs/tutorial-fresh.md, walked in `assetflow dev`: no table has a schedule, all are kept up to date."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from assetflow.errors import LedgerError
from assetflow.ledger import Reader
from assetflow.stack.environment import StackEnvironment, choose_port
from tests.environment.examples import ROOT, dev
from tests.environment.prefect_database import spare_first_start
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(900)]

PAGE = (ROOT / "docs" / "tutorial-fresh.md").read_text()
BLOCKS: dict[str, str] = dict(re.findall(r"^```\w+ (?:title=\"|\{#)(\S+)[\"}]\n(.*?)^```", PAGE, re.M | re.S))
SECONDS = 300.0


class Folder:
    """The folder of the tutorial, with `assetflow dev` running in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        for file in ("flows.py", "prefect.yaml"):
            (path / file).write_text(BLOCKS[file])
        self._shell(BLOCKS["data"])
        self.stack = StackEnvironment(path, path / ".assetflow" / "dev", choose_port(None))
        spare_first_start(self.stack.home)

    def step(self, name: str) -> str:
        """Give the commands of a block of the page to a shell in the second terminal; return what it prints."""
        return self._shell(f". .assetflow/dev/env\n{BLOCKS[name]}")

    def table(self, name: str) -> dict[str, float]:
        place = self.path / "data" / f"{name}.json"
        return json.loads(place.read_text()) if place.exists() else {}

    def runs(self) -> Counter[str]:
        """Return how many runs of each flow have completed."""
        try:
            with self.reader() as reader:
                ended = [each for each in reader.decisions.find(limit=100) if each.run_state == "Completed"]
        except LedgerError:
            return Counter()
        return Counter(each.consumer_name for each in ended)

    def told(self) -> list[tuple[str, str]]:
        """Return the changes of freshness that Prefect's log has, oldest first."""
        with self.reader() as reader:
            changes = reader.policies.changes()
        return [(Path(each.change.uri).stem, each.change.state) for each in reversed(changes) if each.stored]

    def reader(self) -> Reader:
        return Reader.open(self.stack.home / "ledger.db")

    def until_runs(self, **wanted: int) -> None:
        def are_there() -> bool:
            found = self.runs()
            return all(found[f"{name.replace('_', '-')}/air"] == count for name, count in wanted.items())

        until(are_there, seconds=SECONDS, told=lambda: f"{self.runs()}")

    def _shell(self, commands: str) -> str:
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        for name in ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_PROFILES_PATH"):
            env.pop(name, None)
        shell = ["bash", "-ec", commands]
        done = subprocess.run(shell, cwd=self.path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    monkeypatch.setenv("ASSETFLOW_SPARK_REMOTE", "")
    made, log = Folder(tmp_path), tmp_path / "dev.log"
    ports = ["--port", str(made.stack.port), "--pages-port", str(made.stack.pages_port)]
    with dev([sys.executable, "-m", "assetflow", "dev", *ports], tmp_path, log):
        yield made


def test_files_bugfix_and_a_worker_that_is_gone(folder: Folder) -> None:
    folder.until_runs(core=1, by_carrier=1)
    assert folder.table("carriers") == {"UA": -1, "AA": 33}
    assert "carriers.json" in folder.step("status")
    folder.step("arrives")
    folder.until_runs(core=2, by_carrier=2)
    assert folder.table("carriers") == {"UA": -1, "AA": 33, "B6": 12}
    folder.step("bugfix")
    folder.until_runs(core=3, by_carrier=3)
    assert folder.table("carriers") == {"UA": 1, "AA": 33, "B6": 12}
    assert folder.told() == []
    folder.step("gone")
    until(lambda: folder.told() == [("carriers", "warn")], seconds=SECONDS, told=lambda: f"{folder.told()}")
    folder.step("back")
    until(lambda: len(folder.told()) > 1, seconds=SECONDS, told=lambda: f"{folder.told()}")
    assert folder.told() == [("carriers", "warn"), ("carriers", "pass")]
    # `by_day` runs when it is nearly nine in New York.
    expected = {"core/air": 3, "by-carrier/air": 3}
    assert {name: count for name, count in folder.runs().items() if name != "by-day/air"} == expected
