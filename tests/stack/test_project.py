"""A project's files, and what is wrong with them, said before anything is started: where, and what to do."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from assetflow.errors import InvalidProject
from assetflow.stack.deploying import load, main
from assetflow.stack.environment import StackEnvironment, choose_port
from assetflow.stack.flow_files import read_project, source_files
from assetflow.stack.stack import Stack

FLOW = "from assetflow import flow\n\n@flow\ndef report(): ...\n\ndef plain(): ...\n"
GOOD = "deployments: [{name: shop, entrypoint: 'flows.py:report'}]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "flows.py").write_text(FLOW)
    monkeypatch.chdir(tmp_path)
    # What is loaded from here must not stand for this repository's package `flows` in later tests.
    with patch.dict(sys.modules), patch.object(sys, "path", [*sys.path]):
        sys.modules.pop("flows", None)
        yield tmp_path


def of(entrypoint: str) -> str:
    return f"deployments: [{{name: shop, entrypoint: '{entrypoint}'}}]"


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("", "prefect.yaml", "there are no deployments in it"),
        ("deployments: []", "prefect.yaml", "there are no deployments in it"),
        ("deployments: {a: b}", "prefect.yaml", "`deployments` is not a list"),
        ("- a", "prefect.yaml", "not a mapping"),
        ("deployments:\n  - name: [", "prefect.yaml, line 2, column 12", "not valid YAML: expected the node content"),
        ("deployments:\n\t- name: x", "prefect.yaml, line 2, column 1", "not valid YAML: found character"),
        ("\x00", "prefect.yaml", "cannot be read"),
        ("deployments: [x]", "prefect.yaml, deployment 1", "not a mapping"),
        ("deployments: [{entrypoint: 'flows.py:report'}]", "prefect.yaml, deployment 1", "name is missing"),
        ("deployments: [{name: 5}]", "prefect.yaml, deployment 1", "name is 5, which is not text"),
        ("deployments: [{name: shop}]", "prefect.yaml, deployment 1 (shop)", "entrypoint is missing"),
        (of("flows.py"), "prefect.yaml, deployment shop", "does not name a flow"),
        (of("flow"), "prefect.yaml, deployment shop", "does not name a flow"),
        (of("gone.py:report"), "prefect.yaml, deployment shop", "there is no file gone.py"),
        (of("broken.py:report"), "broken.py, line 2", "not valid Python: invalid syntax: def report(:"),
        (of("null.py:report"), "null.py", "not valid Python"),
        (GOOD.replace("}]", ", work_pool: mine}]"), "deployment 1 (shop)", "`work_pool` is not a mapping"),
    ],
)
def test_what_cannot_be_deployed_is_refused(folder: Path, text: str, where: str, message: str) -> None:
    (folder / "prefect.yaml").write_text(text)
    (folder / "broken.py").write_text("x = 1\ndef report(:\n")
    (folder / "null.py").write_bytes(b"x = '\x00'")
    with pytest.raises(InvalidProject) as refused:
        read_project(folder)
    assert where in refused.value.where
    assert message in refused.value.message
    assert refused.value.fix
    assert "\n" not in str(refused.value)


def test_a_file_that_hides_a_package_is_refused(folder: Path) -> None:
    (folder / "prefect.yaml").write_text(GOOD)
    (folder / "prefect.py").touch()
    with pytest.raises(InvalidProject, match=r"prefect\.py hides the package prefect"):
        read_project(folder)


@pytest.mark.parametrize(
    ("text", "entrypoint", "where", "message"),
    [
        ("x = 1\nimport no_such_package_of_mine\n", "wrong.py:f", "wrong.py, line 2", "there is no module no_such"),
        ("def f(): 1 / 0\nf()\n", "wrong.py:f", "wrong.py, line 1", "ZeroDivisionError: division by zero"),
        ("raise SystemError('a\\nb')\n", "wrong.py:f", "wrong.py, line 1", "cannot be imported: "),
        ("from assetflow import flow\n@flow(schedule=5)\ndef f(): ...\n", "wrong.py:f", "wrong.py, line 2", "schedule"),
        (FLOW, "wrong.py:gone", "wrong.py", "there is no gone in it"),
        (FLOW, "wrong.py:plain", "wrong.py", "plain is not a flow"),
        (FLOW, "no_such_package_of_mine.flows:f", "no_such_package_of_mine.flows", "there is no module"),
    ],
)
def test_a_flow_that_cannot_be_loaded(folder: Path, text: str, entrypoint: str, where: str, message: str) -> None:
    (folder / "wrong.py").write_text(text)
    with pytest.raises(InvalidProject) as refused:
        load(entrypoint)
    assert refused.value.where.startswith(where)
    assert message in refused.value.message
    assert refused.value.fix
    assert "\n" not in str(refused.value)


ASKS = "import httpx\nhttpx.get('http://127.0.0.1:1')\n"


def test_before_prefect_runs_a_flow_that_asks_it_is_left_for_the_deploy(folder: Path) -> None:
    (folder / "asks.py").write_text(ASKS)
    main([str(folder / "problem.json"), "asks.py:f", "flows.py:report"])
    assert not (folder / "problem.json").exists()
    with pytest.raises(SystemExit):
        main([str(folder / "problem.json"), "--deploy", "prefect.yaml", "asks.py:f"])
    assert "cannot be imported" in (folder / "problem.json").read_text()


def test_a_project_that_cannot_be_imported_starts_nothing(folder: Path) -> None:
    (folder / "flows.py").write_text("import gone_and_lost\n")
    (folder / "prefect.yaml").write_text(GOOD)
    told: list[str] = []
    environment = StackEnvironment(folder, folder / ".assetflow" / "dev", choose_port(None))
    with pytest.raises(InvalidProject, match="there is no module gone_and_lost"), Stack(environment, told.append):
        pass
    assert told == ["Stopping the stack"]


def test_python_and_the_list_of_deployments_but_no_environment_and_no_data(tmp_path: Path) -> None:
    for name in ("prefect.yaml", "a.py", "lib/b.py", "lake/x.csv", ".venv/c.py", "env/pyvenv.cfg", "env/d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = source_files(tmp_path)
    assert sorted(os.path.relpath(each, tmp_path) for each in found) == ["a.py", "lib/b.py", "prefect.yaml"]
    os.utime(tmp_path / "lib" / "b.py", ns=(1, 1))
    assert source_files(tmp_path) != found
