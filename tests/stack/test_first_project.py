"""docs/start.md, walked word by word: a fresh environment with nothing but the wheel, in a folder elsewhere."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from assetflow.ledger import Reader
from tests.environment.examples import dev
from tests.environment.fresh import ROOT, build_wheel, make_environment, write_locked
from tests.environment.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.spark, pytest.mark.timeout(900)]

PAGE = (ROOT / "docs" / "start.md").read_text()
BLOCKS: dict[str, str] = dict(re.findall(r"^```\w+ (?:title=\"|\{#)(\S+)[\"}]\n(.*?)^```", PAGE, re.M | re.S))
(SAMPLE,) = re.findall(r"^```\n(report/shop.*?)^```", PAGE, re.M | re.S)
SECONDS = 240.0


@dataclass(frozen=True)
class Newcomer:
    """Somebody with a folder and an environment, and no settings at all."""

    folder: Path
    bin: Path

    @property
    def env(self) -> dict[str, str]:
        names = ("ASSET_TEST_SESSION", "JAVA_HOME", "SPARK_SUBMIT_OPTS")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        path = os.pathsep.join((str(self.bin), os.environ["PATH"]))
        return kept | {"HOME": str(self.folder.parent), "PATH": path, "LANG": "C.UTF-8"}

    def shell(self, commands: str) -> str:
        """Give commands to a shell in the folder; what it prints."""
        shell = ["bash", "-ec", commands]
        done = subprocess.run(shell, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    home = tmp_path_factory.mktemp("newcomer")
    write_locked(home / "constraints.txt")
    wheel = build_wheel(home / "dist")
    # What the page has pip do, with the versions of the lock file.
    wanted = re.findall(r"pip install 'assetflow(\[[^']*\])'", BLOCKS["install"])
    assert wanted == ["[spark]"]
    constraints = ["--constraint", str(home / "constraints.txt")]
    bin_ = make_environment(home / "env", f"{wheel}{wanted[0]}", "pytest", options=constraints)
    folder = home / "shop"
    folder.mkdir()
    made = Newcomer(folder, bin_)
    made.shell(BLOCKS["init"])
    return made


@pytest.fixture(scope="module")
def stack(newcomer: Newcomer) -> Iterator[Path]:
    """The page's first terminal; what it prints."""
    log = newcomer.folder.parent / "dev.log"
    with dev(["bash", "-c", f"exec {BLOCKS['dev'].strip()}"], newcomer.folder, log, newcomer.env):
        yield log


def test_the_page_is_true(newcomer: Newcomer, stack: Path) -> None:
    source, run, explain = BLOCKS["use"].strip().splitlines()
    newcomer.shell(f"{source}\n{run}\n{explain}")
    until(lambda: run_states(newcomer) == ["Completed"], seconds=SECONDS)
    assert anonymous(newcomer.shell(f"{source}\n{explain}")) == anonymous(SAMPLE)
    newcomer.shell(f"{source}\n{BLOCKS['emit']}")
    until(lambda: len(run_states(newcomer)) == 2)
    until(lambda: "held up" not in newcomer.shell(f"{source}\nassetflow status || true"))
    # The page has pip install pytest, which the lock file brings here.
    install, test = BLOCKS["test"].strip().splitlines()
    assert install == "pip install pytest"
    assert "1 passed" in newcomer.shell(test)
    assert f"prefect deployment run {run.split()[-1]}" in stack.read_text()
    assert not set(stack.read_text()) & set("╭╰│\x1b")
    assert not (newcomer.folder.parent / ".assetflow").exists()


def run_states(newcomer: Newcomer) -> list[str | None]:
    """Return the state of the run of each decision."""
    with Reader.open(newcomer.folder / ".assetflow" / "dev" / "ledger.db") as reader:
        return [each.run_state for each in reader.decisions.find()]


def anonymous(told: str) -> str:
    """Return what is told without its times and ids, whose ends the page leaves out, and without line breaks."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", told)
    return " ".join(re.sub(r"\b[0-9a-f]{8}-[0-9a-f-…]+", "ID", text).split())
