"""The tables of the pages are complete: settings, extras, lines of the log, metrics, verdicts, and words."""

import re
import tomllib
from pathlib import Path
from typing import cast, get_args

import pytest

from assetflow.core.freshness.records import ItemState, VerdictName
from assetflow.core.values.words import STATES, colour_of
from assetflow.settings import Settings
from tests.docs.pieces import ROOT

SETTINGS = (ROOT / "docs" / "settings.md").read_text()
LOG = (ROOT / "docs" / "log.md").read_text()
SETTING = re.compile(r"^\| `ASSETFLOW_(\w+)` \| (?:`([^`]*)`|empty) \| (.+) \|$", re.M)


def written(default: object) -> str:
    if default == Path.home() / ".assetflow":
        return "~/.assetflow"
    if isinstance(default, tuple):
        return ",".join(map(str, cast("tuple[object, ...]", default)))
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def test_every_setting_stands_there_with_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"ASSETFLOW_{name.upper()}", raising=False)
    defaults = {name: written(value) for name, value in Settings()}
    assert {name.lower(): default for name, default, _ in SETTING.findall(SETTINGS)} == defaults


LINES = re.findall(r"^\| `(.+)` \| .+ \|$", LOG, re.M)


def test_the_fixed_words_of_the_lines_of_the_log_are_in_the_code() -> None:
    code = "".join(
        path.read_text()
        for folder in ("api", "evaluator", "ledger", "cli")
        for path in (ROOT / "assetflow" / folder).rglob("*.py")
    )
    lines = [part for line in LINES for part in re.split(r"`(?:, | and )`", line)]
    fixed = {part.strip(" :") for line in lines for part in re.split(r"…|\d+ ?|'?flow/name'?:?|s3://", line)}
    assert len(lines) > 20
    assert [words for words in sorted(fixed) if len(words) > 3 and words not in code] == []


EXTRA = re.compile(r"^\| (`[a-z0-9]+`(?:, `[a-z0-9]+`)*) \| ", re.M)


def test_every_extra_stands_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = re.findall(r"`([a-z0-9]+)`", " ".join(EXTRA.findall(SETTINGS)))
    assert sorted(listed) == sorted(project["optional-dependencies"])


CODE = ("api/v1/health.py", "evaluator/runs/launch.py")


def test_each_metric_is_listed() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    table = page.partition("| metric | meaning |")[2].partition("\n\n")[0]
    listed = {name.removesuffix("_total") for name in re.findall(r"`(assetflow_\w+)", table)}
    code = "".join((ROOT / "assetflow" / file).read_text(encoding="utf-8") for file in CODE)
    assert listed == set(re.findall(r'"(assetflow_\w+)"', code))


STATUS = (ROOT / "docs" / "status.md").read_text(encoding="utf-8")


def first_column(title: str) -> set[str]:
    """Return what the rows of the table with this title begin with."""
    (rows,) = re.findall(rf"^\| {re.escape(title)} \|.*\n\|[ -|]+\n((?:\|.*\n)+)", STATUS, re.M)
    return {row.split("|")[1].strip() for row in rows.splitlines()}


def test_verdicts_and_states_are_those_of_plans_and_statuses() -> None:
    assert first_column("verdict") == set(get_args(VerdictName))
    assert first_column("state") == {*get_args(ItemState), "fresh, outdated"}


GLOSSARY = ROOT / "docs" / "glossary.md"


def test_the_table_of_states_is_that_of_the_product() -> None:
    table = GLOSSARY.read_text(encoding="utf-8").partition("## States, signs and colours")[2]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.M)[2:]
    colours = {"good": "green", "busy": "blue", "bad": "red", "wait": "amber", "off": "grey"}
    declared = [(colours[colour_of(sign)], ", ".join(states)) for sign, states in STATES.items()]
    assert sorted((colour, states) for _, colour, states in rows) == sorted(declared)
