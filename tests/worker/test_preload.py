"""Modules that a template imports on the user's word."""

import subprocess
import textwrap
from pathlib import Path

import pytest

from assetflow.worker import worker
from assetflow.worker.worker import MOST_TEMPLATES, TemplateKeeper
from tests.worker.conftest import Seam, a_template

pytestmark = pytest.mark.long

# What an import may leave behind that a child would find broken.
UNFIT = {
    "a thread": (
        """
        import threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True, name="mine").start()
        """,
        "has started a thread (mine)",
    ),
    "a connection": (
        """
        import os, socket
        os.environ["LEFT"] = "by unfit"
        os.chdir("/")
        ends = socket.socketpair()
        """,
        "has opened a connection or an event loop",
    ),
}
SAYS_ITS_PARENT = "import os, counts; print(os.getppid())"
SAYS_WHAT_IS_IMPORTED = """
import os, sys
print(os.getppid(), "counts" in sys.modules, "unfit" in sys.modules, "LEFT" in os.environ)
"""


def test_a_module_that_cannot_be_imported_is_named_and_done_without(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text("")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)")
    with a_template(tmp_path / "socket", "leaves", "no_such_module", cwd=tmp_path, stderr=subprocess.PIPE) as template:
        assert Seam(template, tmp_path / "socket", tmp_path).run(SAYS_ITS_PARENT)[1] == f"{template.pid}\n"
        assert template.stderr is not None
        said = [template.stderr.readline() for _ in range(2)]
    assert said == [
        "preload: leaves cannot be imported (SystemExit: 3), and flow runs do without it\n",
        "preload: no_such_module cannot be imported (ModuleNotFoundError: No module named 'no_such_module'), and flow "
        "runs do without it\n",
    ]


@pytest.mark.parametrize(("code", "reason"), UNFIT.values(), ids=UNFIT)
def test_a_module_with_which_no_process_could_fork_is_named_and_done_without(
    tmp_path: Path, code: str, reason: str
) -> None:
    (tmp_path / "counts.py").write_text("")
    (tmp_path / "unfit.py").write_text(textwrap.dedent(code))
    with a_template(tmp_path / "socket", "counts", "unfit", cwd=tmp_path, stderr=subprocess.PIPE) as template:
        said = Seam(template, tmp_path / "socket", tmp_path).run(SAYS_WHAT_IS_IMPORTED)
        assert template.stderr is not None
        assert template.stderr.readline() == f"preload: unfit {reason}, and flow runs do without it\n"
    assert said == (0, f"{template.pid} True False False\n", "")


class FakeTemplate:
    """What the keeper sees of a template process."""

    def __init__(self, place: Path, modules: tuple[str, ...]) -> None:
        self.name = f"{place.name} {' '.join(modules)}"
        self.takes_runs = True
        self.is_kept = True

    def command(self, module: str) -> list[str]:
        return [self.name, module]

    def let_go(self) -> None:
        self.is_kept = False


def test_one_template_for_each_set_of_modules_and_the_least_used_one_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakeTemplate] = []

    def start(place: Path, modules: tuple[str, ...]) -> FakeTemplate:
        made.append(FakeTemplate(place, modules))
        return made[-1]

    monkeypatch.setattr(worker, "TemplateProcess", start)
    monkeypatch.setattr(worker, "CAN_FORK", True)
    with TemplateKeeper() as templates:
        for name in ["a", "b", "c", "a", ""]:
            templates.command("job", [name] if name else [])
        assert len(made) == MOST_TEMPLATES
        assert templates.command("job", ["d"]) == ["5.socket d", "job"]
        assert [each.name for each in made if not each.is_kept] == ["3.socket b"]
        made[0].takes_runs = False
        assert templates.command("job") == ["6.socket ", "job"]
    assert not any(each.is_kept for each in made)
