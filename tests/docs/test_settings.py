"""docs/settings.md and docs/log.md are complete and true: settings and defaults, lines of the log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

from assetflow.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "settings.md").read_text()
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
    assert {name.lower(): default for name, default, _ in SETTING.findall(PAGE)} == defaults


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
