"""`assetflow init`: a project in an empty folder, and what it adds to one that is there."""

import re
from pathlib import Path

import pytest
import yaml

from assetflow.errors import InvalidProject
from assetflow.stack.flow_files import read_project
from assetflow.stack.new_project import Target, begin_project, with_deployments, write_deployment
from tests.cli.conftest import call as call
from tests.cli.conftest import home as home

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "start.md").read_text()
ADDED = "deployments:\n- name: new\n  entrypoint: flows.py:report\n"


def test_an_empty_folder_gets_the_project_of_the_tutorial_once(tmp_path: Path) -> None:
    told = ["wrote flows.py", "wrote prefect.yaml", "wrote test_flows.py", "wrote .gitignore"]
    assert [line.partition(":")[0] for line in begin_project(tmp_path)] == told
    shown = dict(re.findall(r"^```\w+ (?:title=\"|\{#)(\S+)[\"}]\n(.*?)^```", PAGE, re.M | re.S))
    for name in ("flows.py", "prefect.yaml", "test_flows.py"):
        assert (tmp_path / name).read_text() == shown[name]
    assert read_project(tmp_path).pools == ["assetflow"]
    before = {each: each.read_text() for each in tmp_path.iterdir()}
    assert list(begin_project(tmp_path)) == ["kept the flows: no example was written"]
    assert {each: each.read_text() for each in tmp_path.iterdir()} == before


def test_a_project_keeps_its_flows_and_its_lines(tmp_path: Path) -> None:
    mine = "# ours\ndeployments:\n  - name: a\n    entrypoint: flows/a.py:a  # the first\n\n# pools\npull: []\n"
    (tmp_path / "prefect.yaml").write_text(mine)
    (tmp_path / ".gitignore").write_text("lake/\n*.csv")
    (tmp_path / "flows").mkdir()
    list(begin_project(tmp_path))
    completed = (tmp_path / "prefect.yaml").read_text()
    assert [line for line in completed.splitlines() if line in mine.splitlines()] == mine.splitlines()
    entrypoints = ["flows/a.py:a", "shop.py:produce", "shop.py:report"]
    assert [each["entrypoint"] for each in yaml.safe_load(completed)["deployments"]] == entrypoints
    assert "from shop import" in (tmp_path / "test_shop.py").read_text()
    assert (tmp_path / ".gitignore").read_text() == "lake/\n*.csv\n.assetflow/\n.venv/\n__pycache__/\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing yet\n",
        "name: shop\n",
        "deployments:\n- name: a\n  entrypoint: a.py:a",
        "deployments:\n- name: a\n  tags:\n  - x\n\n\n",
        "deployments:\n    - {name: a}\n    # the end\nname: x\n",
    ],
)
def test_deployments_are_added_to_any_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "prefect.yaml").write_text(text)
    found = yaml.safe_load(with_deployments(tmp_path / "prefect.yaml", ADDED))
    before = yaml.safe_load(text) or {}
    assert found["deployments"] == [*before.pop("deployments", []), {"name": "new", "entrypoint": "flows.py:report"}]
    assert {name: found[name] for name in before} == before


@pytest.mark.parametrize(
    "text", ["deployments: []", "deployments: {a: b}", "- a", "deployments: [", "deployments:", "\x00"]
)
def test_a_file_that_takes_no_lines_is_refused_and_nothing_is_written(tmp_path: Path, text: str) -> None:
    (tmp_path / "prefect.yaml").write_text(text)
    with pytest.raises(InvalidProject):
        list(begin_project(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["prefect.yaml"]


@pytest.mark.parametrize("target", ["one-machine", "replicas"])
def test_the_files_for_other_machines_are_those_of_this_repository(tmp_path: Path, target: Target) -> None:
    list(write_deployment(tmp_path, target))
    source = ROOT / "deployments" / target
    for place in source.rglob("*.*"):
        written = (tmp_path / "deployments" / target / place.relative_to(source)).read_text()
        assert written == place.read_text() or place.suffix == ".md"
        assert "](../" not in written
    assert all(line.startswith("kept ") for line in write_deployment(tmp_path, target))
