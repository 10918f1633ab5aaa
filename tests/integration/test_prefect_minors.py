"""The other minor version of Prefect that pyproject allows: the tests of what is spoken with Prefect, run with it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.environment.fresh import ROOT, make_environment, run_uv

pytestmark = [pytest.mark.long, pytest.mark.prefect, pytest.mark.timeout(1800)]

TESTS = (
    "tests/prefect_io",
    "tests/integration/test_prefect_internals.py",
    "tests/examples",
    "tests/worker/test_listening.py",
)
# What Prefect 3.9.1 asks of certifi is not on every index.
OVERRIDES = "certifi>=2025\nprefect=={version}\n"


def environment(version: str) -> Path:
    """An environment with the locked versions of everything but Prefect, kept below `.assetflow`; its `bin`."""
    folder = ROOT / ".assetflow" / f"prefect-{version}"
    if not (folder / "ready").exists():
        chosen = ("--extra=spark", "--extra=postgres", "--extra=demo", "--group=dev")
        locked = run_uv("export", "--frozen", "--no-emit-project", "--no-hashes", *chosen)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "locked.txt").write_text(locked)
        (folder / "overrides.txt").write_text(OVERRIDES.format(version=version))
        overrides = ["--override", str(folder / "overrides.txt")]
        bin_ = make_environment(folder / "env", "-r", str(folder / "locked.txt"), options=overrides)
        run_uv("pip", "install", "--python", str(bin_ / "python"), "--no-deps", "--editable", str(ROOT))
        (folder / "ready").touch()
    return folder / "env" / "bin"


@pytest.mark.parametrize(
    ("tests", "chosen"),
    [
        pytest.param(TESTS, "not long and not heavy and not faults", id="the road to Prefect"),
        pytest.param(["tests/worker"], "not heavy and not faults", id="the warm worker", marks=pytest.mark.heavy),
    ],
)
@pytest.mark.parametrize("version", ["3.9.1"])
def test_the_other_minor(version: str, tests: Sequence[str], chosen: str) -> None:
    python = environment(version) / "python"
    told = subprocess.run(
        [str(python), "-c", "import prefect; print(prefect.__version__)"], capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == version
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-m", chosen, *tests],
        cwd=ROOT,
        env=os.environ | {"PATH": os.pathsep.join((str(python.parent), os.environ["PATH"]))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
