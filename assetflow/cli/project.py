"""Say what is wrong with a project before a deploy: `assetflow lint` and `assetflow diff`. Contract 11.1 to 11.7."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

from cyclopts import Parameter, Token
from rich.text import Text

from assetflow.cli.output import Hanging, print_json, show
from assetflow.cli.values import Age, AsJson, this_user
from assetflow.core.compare import ShownDiff, Stage, stages_of
from assetflow.core.lint import CHECKS, Finding
from assetflow.core.values.words import count, joined, shown
from assetflow.errors import InvalidCall, LedgerError, LedgerMissing
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.read.reader import Reader
from assetflow.settings import get_settings

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


Reason = Literal["lost-events", "fewer-runs"]
_SIGNS = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
    "renamed": (">", "yellow"),
    "refused": ("!", "bold red"),
    "unread": ("!", "bold red"),
    "runs": ("▶", "green"),
    "lost": ("!", "yellow"),
    "replayed": ("•", ""),
}


def _reasons(_: object, tokens: Sequence[Token]) -> tuple[Reason, ...]:
    given = [each for token in tokens for each in token.value.split(",")]
    if unknown := [each for each in given if each not in get_args(Reason)]:
        raise ValueError(f"{unknown[0]!r} is not a reason; write lost-events, fewer-runs, or both")
    return tuple(cast("list[Reason]", given))


def diff(
    *places: Path,
    replay: Age | None = None,
    others_stay: bool = False,
    json: AsJson = False,
    markdown: bool = False,
    page: bool = False,
    exit_code: bool = False,
    fail_on: Annotated[tuple[Reason, ...], Parameter(converter=_reasons)] = (),
) -> int:
    """Show what a deploy would change, before it. Nothing is written.

    Compares the deployments of prefect.yaml with what the ledger has deployed.

    Parameters
    ----------
    places
        Files and folders with flows, instead of prefect.yaml. Deployments of other flows stay.
    replay
        Also fold what was recorded in this time, such as 7d, with both versions of each consumer that differs.
    others_stay
        Deployments that prefect.yaml does not have stay, because another project has them. Without it, they count as
        removed.
    markdown
        Print Markdown, for a comment on a pull request.
    page
        Also keep the comparison in the ledger, for the page /diff, which shows the last one that was kept.
    exit_code
        Exit with 1 if something would change, or if a flow cannot be imported.
    fail_on
        Exit with 1 if queued events would be lost (lost-events), or if a consumer would have had fewer runs in the
        replay (fewer-runs). Separate several with commas.
    """
    # Import only here what imports Prefect: `--help` does not need it.
    from assetflow.stack import linting
    from assetflow.stack.flow_files import plan_of

    if "fewer-runs" in fail_on and replay is None:
        raise InvalidCall("only a replay tells of fewer runs", where="--fail-on", fix="Add --replay 7d")
    now = datetime.now(UTC)
    with Reader.open() as reader:
        deployed = reader.comparing.deployed()
        plan = linting.of_files(places, deployed, now) if places else plan_of(Path.cwd())
        plan.is_whole &= not others_stay
        found = linting.diff(reader, plan, deployed, now, None if replay is None else now - replay)
    stages = list(stages_of(found))
    if json:
        print_json(found)
    elif markdown:
        sys.stdout.writelines(f"{line}\n" for line in _markdown(stages))
    else:
        show(*_stage_lines(stages))
    if page:
        _keep(ShownDiff(now, str(Path.cwd()), this_user(), stages))
    failed = ("lost-events" in fail_on and found.loses_events) or ("fewer-runs" in fail_on and found.has_fewer_runs)
    return int(failed or (exit_code and (found.changes_something or bool(found.problems))))


def _keep(shown: ShownDiff) -> None:
    """Keep a comparison for the page, and say where that is."""
    from assetflow.stack.linting import keep

    with Ledger.open() as ledger:
        keep(ledger, shown)
    sys.stderr.write(f"The page {get_settings().ui_url.rstrip('/')}/diff shows it.\n")


def _stage_lines(stages: Iterable[Stage]) -> Iterator[Text | Hanging]:
    for stage in stages:
        if stage.title:
            yield Text(stage.title, "bold")
        for line in stage.lines:
            sign, style = _SIGNS[line.sign]
            words = (f"{shown(line.name)} ", "bold"), shown(line.words)
            yield Hanging(Text.assemble((f"{sign} ", style), *words), 0, 2)
            for mark, text, color in (("-", line.before, "red"), ("+", line.after, "green")):
                if text is not None:
                    yield Hanging(Text(f"{mark} {shown(text)}", color), 4, 2)
            yield from (Hanging(Text(shown(note)), 4) for note in line.notes)
        if stage.note:
            yield Text(shown(stage.note), "dim")


def _markdown(stages: Iterable[Stage]) -> Iterator[str]:
    yield "### What this deploy would change"
    for stage in stages:
        yield from ("", f"#### {stage.title}", "") if stage.title else ("",)
        for line in stage.lines:
            yield f"- **{_plain(line.name)}** {_plain(line.words)}"
            yield from (f"  - before: {_plain(each)}" for each in [line.before] if each)
            yield from (f"  - after: {_plain(each)}" for each in [line.after] if each)
            yield from (f"  - {_plain(note)}" for note in line.notes)
        if stage.note:
            yield from ("", _plain(stage.note))


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it stands."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]<>|#" else each for each in shown(text))
