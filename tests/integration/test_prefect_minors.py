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
    """An environment with the locked versions of everything but Prefect, kept below `.assetflow`; its `bin`.

    It is made again when these versions or the project's own metadata have changed.
    """
    folder = ROOT / ".assetflow" / f"prefect-{version}"
    chosen = ("--extra=spark", "--extra=postgres", "--extra=demo", "--group=dev")
    locked = run_uv("export", "--frozen", "--no-emit-project", "--no-hashes", *chosen)
    overrides = OVERRIDES.format(version=version)
    wanted = f"{locked}{overrides}{(ROOT / 'pyproject.toml').read_text()}"
    made_of = folder / "made-of.txt"
    if not made_of.exists() or made_of.read_text() != wanted:
        made_of.unlink(missing_ok=True)
        _make(folder, locked, overrides)
        made_of.write_text(wanted)
    return folder / "env" / "bin"


def _make(folder: Path, locked: str, overrides: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "locked.txt").write_text(locked)
    (folder / "overrides.txt").write_text(overrides)
    options = ["--override", str(folder / "overrides.txt")]
    bin_ = make_environment(folder / "env", "-r", str(folder / "locked.txt"), options=options)
    run_uv("pip", "install", "--python", str(bin_ / "python"), "--no-deps", "--editable", str(ROOT))


def test_an_environment_is_made_again_when_the_lock_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made: list[str] = []
    locked = ["httpx==1"]
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    monkeypatch.setattr(f"{__name__}.run_uv", lambda *_: locked[0])
    monkeypatch.setattr(
        f"{__name__}._make", lambda folder, text, _: (folder.mkdir(parents=True, exist_ok=True), made.append(text))
    )
    (tmp_path / "pyproject.toml").write_text("one")
    environment("3.9.1")
    environment("3.9.1")
    locked[0] = "httpx==2"
    environment("3.9.1")
    (tmp_path / "pyproject.toml").write_text("two")
    environment("3.9.1")
    assert made == ["httpx==1", "httpx==2", "httpx==2"]


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
