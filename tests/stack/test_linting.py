"""`assetflow lint` on a broken project, on the flows of this repository, and on bad input. Contract 11.1 to 11.3."""

import json
from pathlib import Path

import pytest

from assetflow.core.lint import CHECKS
from assetflow.stack.linting import LintConfig, lint_files
from tests.cli.conftest import Call
from tests.cli.conftest import call as call
from tests.cli.conftest import home as home
from tests.golden import agrees
from tests.stack.broken_project import FAULTS, write_broken_project

ROOT = Path(__file__).parents[2]
MAKER = """\
from assetflow import Asset, flow

@flow(schedule=Asset("s3://nobody/updates"))
def report(): ...
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_broken_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def one_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "one.py"
    place.write_text(MAKER, encoding="utf-8")
    return place


@pytest.mark.rule("11.1")
def test_each_fault_of_a_broken_project_is_found_and_nothing_else(broken: Path, call: Call) -> None:
    answer = call("lint", "--format", "json")
    found = {(each["file"], each["code"]) for each in json.loads(answer.out)}
    # What is scheduled on the other asset of that name has no maker either.
    others = {("flows/af002.py", "AF004"), ("flows/cancelling.py", "AF002")}
    assert found == {(f"flows/{code.lower()}.py", code) for code in CHECKS} | others
    assert answer.code == 1
    assert set(FAULTS) == set(CHECKS)
    assert broken.exists()
    agrees("lint", json.loads(answer.out))


@pytest.mark.rule("11.1")
def test_the_text_names_the_place_the_fault_and_the_mend(broken: Path, call: Call) -> None:
    text = call("lint", str(broken / "flows" / "af004.py"), str(broken / "flows" / "maker.py")).out
    assert text == (
        "flows/af004.py:9 AF004 typing-error: it is scheduled on the asset s3://shop/order, which no flow here "
        "updates. Did you mean s3://shop/orders?\n"
        '    Correct the name, or list it as external = ["s3://shop/order"]\n'
        "1 warning found.\n"
    )


def test_annotations_of_github_and_sarif_name_the_line(one_flow: Path, call: Call) -> None:
    assert call("lint", str(one_flow), "--format", "github").out.startswith(
        "::warning file=one.py,line=3,title=AF004::report: it is scheduled on"
    )
    run = json.loads(call("lint", str(one_flow), "--format", "sarif").out)["runs"][0]
    assert [each["id"] for each in run["tool"]["driver"]["rules"]] == list(CHECKS)
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("AF004", "warning")
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


@pytest.mark.rule("11.3")
@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# assetflow: ignore=AF004", []),
        ("# assetflow: ignore=AF007, AF004", []),
        ("#assetflow:ignore", []),
        ("# assetflow: ignore=AF005", ["AF004"]),
    ],
)
def test_a_comment_ignores_a_finding(one_flow: Path, comment: str, left: list[str]) -> None:
    one_flow.write_text(MAKER.replace("def report(): ...", f"def report():  {comment}\n    ..."), encoding="utf-8")
    assert [each.code for each in lint_files([one_flow], LintConfig())] == left


@pytest.mark.rule("11.3")
def test_the_config_names_places_codes_and_what_comes_from_outside(one_flow: Path, call: Call) -> None:
    config = one_flow.with_name("pyproject.toml")
    for line in ('external = ["s3://nobody/*"]', 'ignore = ["AF004"]'):
        config.write_text(f'[tool.assetflow.lint]\npaths = ["one.py"]\n{line}\n', encoding="utf-8")
        assert call("lint").out == "Nothing found.\n"
    config.write_text('[tool.assetflow.lint]\npaths = ["one.py"]\n', encoding="utf-8")
    assert call("lint").code == 1


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("[tool.assetflow.lint]\nignores = []\n", "unknown key 'ignores'"),
        ('[tool.assetflow.lint]\nignore = "AF004"\n', "ignore is 'AF004'"),
        ('[tool.assetflow.lint]\nignore = ["AF999"]\n', "there is no check 'AF999'"),
        ("[tool.assetflow.lint\n", "cannot be read"),
        ("[tool.assetflow]\nlint = 3\n", "cannot be read"),
        ("[tool]\nassetflow = 3\n", "cannot be read"),
    ],
)
def test_a_config_that_is_none_is_refused(one_flow: Path, call: Call, config: str, said: str) -> None:
    one_flow.with_name("pyproject.toml").write_text(config, encoding="utf-8")
    answer = call("lint", "one.py")
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_places_that_are_not_there_are_refused(one_flow: Path, call: Call) -> None:
    assert "the file or folder does not exist" in call("lint", "nowhere").err
    assert "no file is named" in call("lint").err
    assert "there is no check 'AF1'" in call("lint", one_flow.name, "--ignore", "AF1").err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("concurrency_limit: {limit: 1, collision_strategy: CANCEL_NEW}", "Prefect would cancel runs whose updates"),
        ("concurrency_limit: {limit: 1, collision_strategy: ENQUEUE}", ""),
        ("concurrency_limit: 1, tags: [nightly], parameters: {day: 1}", ""),
        # Nothing starts it.
        ("concurrency_limit: {limit: 1, collision_strategy: CANCEL_NEW}, tags: ['assetflow:off']", ""),
    ],
)
def test_a_deployment_that_the_evaluator_would_refuse_is_found(one_flow: Path, given: str, said: str) -> None:
    text = f"deployments: [{{name: shop, entrypoint: 'one.py:report', {given}}}]"
    one_flow.with_name("prefect.yaml").write_text(text, encoding="utf-8")
    found = [each for each in lint_files([one_flow], LintConfig(external=["*"])) if each.code == "AF002"]
    assert [(each.line, said in each.message) for each in found] == ([(3, True)] if said else [])


@pytest.mark.rule("11.1")
def test_nothing_is_found_in_this_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_files([ROOT / "flows"], LintConfig()) == []
    # Tests update the assets, and several flows stand for one that is changed.
    assert lint_files([ROOT / "tests" / "examples"], LintConfig(ignore=("AF004", "AF008", "AF012"))) == []


READS = """\
from assetflow import Asset, flow, inlet_events, read, task

declared, other = Asset("s3://a/declared"), Asset("s3://a/other")
plain = "/tmp/plain"

@task(inlets=[declared])
def load(spark, given, other_name="s3://a/name"):
    read(declared, spark)
    spark.read.parquet(declared.uri)
    spark.read.parquet(plain)
    spark.read.csv("/tmp/plain")
    read(given)
    other = given
    read(other)
    {line}

@flow
def reads():
    load(None, None)
"""


@pytest.mark.rule("11.2")
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pass", []),
        ('spark.read.option("a", 1).orc("s3://a/literal")', ["s3://a/literal"]),
        ('spark.read.json("S3://a/literal/")', ["s3://a/literal"]),
        ('spark.write.parquet("s3://a/literal")', []),
        ('spark.read.json("s3://a/" + given)', []),
        ('inlet_events[Asset("s3://a/made")]', []),
        ('inlet_events["s3://a/literal"]', ["s3://a/literal"]),
    ],
)
def test_only_constants_count_as_read(one_flow: Path, line: str, found: list[str]) -> None:
    one_flow.write_text(READS.format(line=line), encoding="utf-8")
    reads = [each.message.split()[2].rstrip(",") for each in lint_files([one_flow], LintConfig())]
    assert reads == found
