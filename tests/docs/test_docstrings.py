"""The docstrings of public names: their examples run, and what they say of parameters, errors and rules is there."""

import builtins
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
from tests.docs.public import documented, examples, failures, members, public, run
from tests.environment.prefect_server import PrefectServer

CONTRACT = (Path(__file__).parents[2] / "docs" / "contract.md").read_text()
RULES = set(re.findall(r"^\*\*(\d+\.\d+)\*\*", CONTRACT, re.M))
PUBLIC = public()
MEMBERS = dict(member for name, value in PUBLIC.items() for member in members(name, value))
TEXTS = {name: inspect.getdoc(value) or "" for name, value in MEMBERS.items()}
EXAMPLES = {name: test for name, value in MEMBERS.items() if (test := examples(name, value))}

# Examples that need more than Python; those with a Spark session are run in tests/spark.
WITH_PREFECT = ["assetflow.emit"]
WITH_SPARK = ["assetflow.checks.staged", "assetflow.publish", "assetflow.read", "assetflow.spark_task"]
WITH_A_SERVER = ["assetflow.testing.harness"]
PLAIN = [name for name in EXAMPLES if name not in (*WITH_PREFECT, *WITH_SPARK, *WITH_A_SERVER)]


@pytest.fixture(autouse=True)
def _leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uri, "_RULES", dict(uri._RULES))
    monkeypatch.setattr(listeners, "_registered", {})


def test_the_examples_of_the_docstrings_run() -> None:
    assert "\n".join(failed for name in PLAIN if (failed := failures(EXAMPLES[name]))) == ""


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


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name, text in TEXTS.items() if not text] == []


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


def test_the_parameters_are_those_of_the_signature() -> None:
    told = {name: sorted(named) for name, value in MEMBERS.items() if (named := sections(value).get("Parameters"))}
    assert told == {name: sorted(parameters(called(MEMBERS[name]))) for name in told}


def called(value: Any) -> Any:
    """Return what the "Parameters" of a docstring are those of: `asset` is an object that is called."""
    return value.__call__ if value is documented(assetflow.asset) else value


def test_each_parameter_of_a_public_function_is_explained() -> None:
    functions = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}
    assert [
        name for name, value in functions.items() if parameters(value) and "Parameters" not in sections(value)
    ] == []


def test_the_errors_are_there() -> None:
    named = [(name, error) for name, value in MEMBERS.items() for error in sections(value).get("Raises", [])]
    assert [each for each in named if not hasattr(assetflow.errors, each[1]) and not hasattr(builtins, each[1])] == []


def test_the_rules_are_in_the_contract() -> None:
    passage = re.compile(r"[Cc]ontract ((?:\d+\.\d+(?:,? (?:and|to|or) |, )?)+)")
    named = {name: set(re.findall(r"\d+\.\d+", " ".join(passage.findall(text)))) for name, text in TEXTS.items()}
    assert {name: rules - RULES for name, rules in named.items() if rules - RULES} == {}
