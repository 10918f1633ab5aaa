"""A template that is out of date forks no more, and is replaced by one that has imported what there is now."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from assetflow.worker import worker
from assetflow.worker.may_fork import Renewal
from assetflow.worker.worker import TemplateKeeper, TemplateProcess
from tests.environment.waiting import SECONDS, until


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module outside of the installed packages, as of an editable install."""
    file = tmp_path / "edited.py"
    file.write_text("VERSION = 1\n")
    os.utime(file, (1, 1))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "edited", raising=False)
    return file


def install(tmp_path: Path) -> None:
    (tmp_path / "site-packages" / "new.dist-info").mkdir()


def edit(tmp_path: Path) -> None:
    (tmp_path / "edited.py").write_text("VERSION = 2\n")


def remove(tmp_path: Path) -> None:
    (tmp_path / "edited.py").unlink()


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize("change", [install, edit, remove])
@pytest.mark.parametrize("when", ["during the imports", "after them"])
def test_a_change_of_what_is_imported_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], when: str
) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    current = Renewal()
    __import__("edited")
    if when == "during the imports":
        change(tmp_path)
    current.note_imports()
    if when == "after them":
        assert not current.is_due()
        change(tmp_path)
    # A file that is not there any more when the imports are noted has not changed since then.
    assert current.is_due() != (change is remove and when == "during the imports")


@pytest.mark.long
def test_a_live_template_refuses_and_is_replaced(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (module.parent / "job.py").write_text("import edited, sys; print(edited.VERSION, 'prefect' in sys.modules)\n")
    monkeypatch.setenv("PYTHONPATH", str(module.parent))

    def run() -> tuple[str, str]:
        """Return the socket of the template, and what a run says."""
        command = templates.command("job", ["edited"])
        assert command is not None
        done = subprocess.run(command, cwd=module.parent, capture_output=True, text=True, check=True)
        return command[-2], done.stdout.strip()

    class Watched(TemplateProcess):
        def __init__(self, place: Path, modules: Sequence[str]) -> None:
            super().__init__(place, modules)
            processes.append(self._process)

    processes: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(worker, "TemplateProcess", Watched)
    with TemplateKeeper() as templates:
        first = until(lambda: found if (found := run())[1] == "1 True" else None)[0]
        edit(module.parent)
        # This run finds out. It is an ordinary process, and reads what there is now.
        assert run() == (first, "2 False")
        second = until(lambda: found if (found := run())[1] == "2 True" else None)[0]
        assert second != first
    assert [each.wait(SECONDS) for each in processes] == [0] * len(processes)
