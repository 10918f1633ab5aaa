"""The docstrings of public names: their examples run, and what they say of parameters, errors and rules is there."""

from __future__ import annotations

import builtins
import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import assetflow.errors
from assetflow import listeners
from assetflow.core.values import uri
from tests.docs.public import documented, examples, members, public, run
from tests.environment.prefect_server import PrefectServer

CONTRACT = (Path(__file__).parents[2] / "docs" / "contract.md").read_text()
RULES = set(re.findall(r"^\*\*(\d+\.\d+)\*\*", CONTRACT, re.M))
PUBLIC = public()
MEMBERS = dict(member for name, value in PUBLIC.items() for member in members(name, value))
EXAMPLES = {name: test for name, value in MEMBERS.items() if (test := examples(name, value))}

# Examples that need more than Python; those with a Spark session are run in tests/spark.
WITH_PREFECT = ["assetflow.emit"]
WITH_SPARK = ["assetflow.publish", "assetflow.read", "assetflow.spark_task"]
WITH_A_SERVER = ["assetflow.testing.harness"]
PLAIN = [name for name in EXAMPLES if name not in (*WITH_PREFECT, *WITH_SPARK, *WITH_A_SERVER)]


@pytest.fixture(autouse=True)
def _leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uri, "_RULES", dict(uri._RULES))
    monkeypatch.setattr(listeners, "_registered", {})


@pytest.mark.parametrize("name", PLAIN)
def test_the_examples_of_a_docstring_run(name: str) -> None:
    run(EXAMPLES[name])


@pytest.mark.prefect
@pytest.mark.parametrize("name", WITH_PREFECT)
def test_the_examples_that_talk_to_prefect_run(name: str, prefect_here: PrefectServer) -> None:  # noqa: ARG001
    run(EXAMPLES[name])


@pytest.mark.prefect
@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", WITH_A_SERVER)
def test_the_test_in_a_docstring_passes(name: str, tmp_path: Path) -> None:
    """In a file, as somebody would write it: Prefect deploys no flow that has none."""
    source = "\n".join(example.source for example in EXAMPLES[name].examples)
    (tmp_path / "test_example.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["asset", "emit", "flow", "publish", "read", "simulate", "spark_task", "task"])
def test_what_everybody_uses_has_an_example(name: str) -> None:
    assert f"assetflow.{name}" in EXAMPLES


@pytest.mark.parametrize("name", MEMBERS)
def test_no_example_is_written_in_a_way_that_is_not_run(name: str) -> None:
    """Code that stands indented after an empty line, outside of sections, would be taken for an example."""
    text = inspect.getdoc(MEMBERS[name]) or ""
    assert text, "has no docstring"
    before_sections = re.split(r"^\w+:$", text, flags=re.M)[0]
    assert not re.search(r"^\n {4}\S", before_sections, re.M)


def test_a_wrong_example_is_noticed() -> None:
    for text in (">>> 1 + 1\n3\n", ">>> @task\n... def load(): ...\n...     return 1\n", ">>> missing\n"):
        test = doctest.DocTestParser().get_doctest(text, {}, "wrong", None, None)
        with pytest.raises(AssertionError, match="Failed example"):
            run(test)


SECTION = re.compile(r"^(Parameters|Attributes|Raises):\n((?: {4,}.*\n?|\n)+)", re.M)
ENTRY = re.compile(r"^ {4}(\w+(?:, \w+)*): ", re.M)


def sections(value: Any) -> dict[str, list[str]]:
    """Return what a docstring names in each of its sections."""
    found = SECTION.findall(inspect.getdoc(value) or "")
    return {title: [name for entry in ENTRY.findall(text) for name in entry.split(", ")] for title, text in found}


def parameters(value: Any) -> list[str]:
    """Return what a caller may pass; nothing for what only assetflow makes."""
    told = inspect.signature(value).parameters
    return [name for name in told if name != "self" and not name.startswith("_")]


def is_called(value: Any) -> bool:
    """Return True for functions, and for classes whose docstring explains how to make one."""
    return inspect.isroutine(value) or (isinstance(value, type) and "Parameters" in sections(value))


@pytest.mark.parametrize("name", [name for name, value in MEMBERS.items() if "Parameters" in sections(value)])
def test_the_parameters_are_those_of_the_signature(name: str) -> None:
    value = MEMBERS[name]
    if value is documented(assetflow.asset):
        value = value.__call__
    assert sorted(sections(MEMBERS[name])["Parameters"]) == sorted(parameters(value))


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isfunction(value)])
def test_each_parameter_of_a_public_function_is_explained(name: str) -> None:
    assert sections(PUBLIC[name]).get("Parameters", []) or not parameters(PUBLIC[name])


@pytest.mark.parametrize("name", [name for name, value in MEMBERS.items() if "Raises" in sections(value)])
def test_the_errors_are_there(name: str) -> None:
    named = sections(MEMBERS[name])["Raises"]
    assert [each for each in named if not hasattr(assetflow.errors, each) and not hasattr(builtins, each)] == []


@pytest.mark.parametrize("name", MEMBERS)
def test_the_rules_are_in_the_contract(name: str) -> None:
    text = inspect.getdoc(MEMBERS[name]) or ""
    passages = re.findall(r"[Cc]ontract ((?:\d+\.\d+(?:,? (?:and|to|or) |, )?)+)", text)
    assert {rule for passage in passages for rule in re.findall(r"\d+\.\d+", passage)} <= RULES
    assert not re.search(r"\(\d+\.\d+\)|\(\d+\.\d+[, ]", text), "say `contract 4.3`"
