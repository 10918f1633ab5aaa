"""`assetflow lint`: what is wrong with the schedules of a project, found without a server. Contract 11.1 to 11.3."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from rich.text import Text

from assetflow.cli.output import Hanging, print_json, show
from assetflow.core.lint import CHECKS, Finding
from assetflow.core.values.words import count, joined, shown
from assetflow.errors import LedgerError, LedgerMissing
from assetflow.ledger.read.reader import Reader

_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_OF_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}


def lint(
    *places: Path,
    format: Literal["text", "json", "sarif", "github"] = "text",  # noqa: A002 (the option's name)
    ignore: tuple[str, ...] = (),
) -> int:
    """Say what is wrong with the schedules of flows, without a server.

    The exit status is 1 if something is found. `# assetflow: ignore=AF007` in the line, or above the body of the flow,
    ignores a finding; `[tool.assetflow.lint]` in pyproject.toml has `paths`, `ignore` and `external`.

    Parameters
    ----------
    places
        Files and folders with flows; by default the `paths` of the config, else the files that prefect.yaml names.
    format
        How to print the findings: for people, as JSON, as SARIF for code scanning, or as annotations of GitHub Actions.
    ignore
        A code to leave out, such as AF012. Repeat it for several.
    """
    # Import only here what imports Prefect: `--help` does not need it.
    from assetflow.stack.linting import LintConfig, check_codes, lint_files, project_files

    here = Path.cwd()
    config = LintConfig.read(here)
    check_codes(ignore, "--ignore")
    files = list(places) or [here / each for each in config.paths] or project_files(here)
    found = lint_files(files, replace(config, ignore=(*config.ignore, *ignore)), _deployed())
    match format:
        case "text":
            show(*_lines(found))
        case "json":
            print_json(found)
        case "sarif":
            print_json(_sarif(found))
        case "github":
            sys.stdout.writelines(f"{_annotation(each)}\n" for each in found)
    return 1 if found else 0


def _deployed() -> list[str]:
    """Return the URIs and names that the ledger knows; none without a ledger. One that cannot be read is named."""
    try:
        with suppress(LedgerMissing), Reader.open() as reader:
            return [text for each in reader.assets.all() for text in (each.uri, *each.names)]
    except LedgerError as error:
        sys.stderr.write(f"The findings are those without the ledger: {shown(error)}\n")
    return []


def _lines(found: Sequence[Finding]) -> Iterator[Text | Hanging]:
    for each in found:
        place = f"{shown(each.file)}:{each.line} "
        yield Hanging(Text.assemble((place, "bold"), (each.code, _STYLES[each.level]), f" {shown(each.message)}"), 0, 4)
        if each.fix:
            yield Hanging(Text(shown(each.fix), "dim"), 4)
    levels = Counter(each.level for each in found)
    numbers = [count(levels[level], level) for level in _STYLES if levels[level]]
    yield Text(f"{joined(numbers)} found." if found else "Nothing found.", "" if found else "green")


def _annotation(finding: Finding) -> str:
    """Return a finding as a command of GitHub Actions, which has its own escapes."""
    said = f"{finding.message}. {finding.fix}".replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    file = finding.file.replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{_OF_GITHUB[finding.level]} file={file},line={finding.line},title={finding.code}::{said}"


def _sarif(found: Sequence[Finding]) -> dict[str, object]:
    """Return findings as SARIF 2.1.0, which code scanning reads."""
    rules = [{"id": code, "shortDescription": {"text": check.title}} for code, check in CHECKS.items()]
    driver = {"name": "assetflow", "semanticVersion": version("assetflow"), "rules": rules}
    run = {"tool": {"driver": driver}, "results": list(map(_result, found))}
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _result(finding: Finding) -> dict[str, object]:
    place = {"artifactLocation": {"uri": finding.file}, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.code,
        "level": finding.level,
        "message": {"text": f"{finding.message}. {finding.fix}"},
        "locations": [{"physicalLocation": place}],
    }
