"""Modules that a template imports on the user's word."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from assetflow.worker import keeper
from assetflow.worker.keeper import MOST_TEMPLATES, TemplateKeeper
from tests.worker.conftest import Seam, a_template

pytestmark = pytest.mark.long

COUNTS = """
with open("imported", "a") as file:
    file.write("once ")
"""
STARTS_A_THREAD = """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
"""
SAYS_ITS_PARENT = "import os, counts; print(os.getppid())"


def test_a_module_is_imported_once_for_all_runs(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text(COUNTS)
    with a_template(tmp_path / "socket", "counts", cwd=tmp_path) as template:
        seam = Seam(template, tmp_path / "socket", tmp_path)
        assert {seam.run(SAYS_ITS_PARENT)[1] for _ in range(2)} == {f"{template.pid}\n"}
    assert (tmp_path / "imported").read_text() == "once "


def test_a_module_that_cannot_be_imported_is_named_and_done_without(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text("")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)")
    with a_template(tmp_path / "socket", "leaves", "no_such_module", cwd=tmp_path, stderr=subprocess.PIPE) as template:
        assert Seam(template, tmp_path / "socket", tmp_path).run(SAYS_ITS_PARENT)[1] == f"{template.pid}\n"
        assert template.stderr is not None
        said = [template.stderr.readline() for _ in range(2)]
    assert said == [
        "preload: leaves cannot be imported, and flow runs do without it (SystemExit: 3)\n",
        "preload: no_such_module cannot be imported, and flow runs do without it (ModuleNotFoundError: No module named "
        "'no_such_module')\n",
    ]


def test_a_module_that_starts_a_thread_makes_runs_ordinary_processes(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text("")
    (tmp_path / "starts.py").write_text(STARTS_A_THREAD)
    with a_template(tmp_path / "socket", "starts", cwd=tmp_path, stderr=subprocess.PIPE) as template:
        status, parent, _ = Seam(template, tmp_path / "socket", tmp_path).run(SAYS_ITS_PARENT)
        assert template.stderr is not None
        assert template.stderr.readline() == (
            "flow runs start as ordinary processes: an imported module has started a thread\n"
        )
    assert (status, parent) == (0, f"{os.getpid()}\n")


class FakeTemplate:
    """What the keeper sees of a template process."""

    def __init__(self, place: Path, modules: tuple[str, ...]) -> None:
        self.command = f"{place.name} {' '.join(modules)}"
        self.takes_runs = True
        self.is_kept = True

    def let_go(self) -> None:
        self.is_kept = False


def test_one_template_for_each_set_of_modules_and_the_least_used_one_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[FakeTemplate] = []

    def start(place: Path, modules: tuple[str, ...]) -> FakeTemplate:
        made.append(FakeTemplate(place, modules))
        return made[-1]

    monkeypatch.setattr(keeper, "TemplateProcess", start)
    monkeypatch.setattr(keeper, "CAN_FORK", True)
    with TemplateKeeper() as templates:
        for name in ["a", "b", "c", "a", ""]:
            templates.command([name] if name else [])
        assert len(made) == MOST_TEMPLATES
        assert templates.command(["d"]) == "5.socket d"
        assert [each.command for each in made if not each.is_kept] == ["3.socket b"]
        made[0].takes_runs = False
        assert templates.command() == "6.socket "
    assert not any(each.is_kept for each in made)
