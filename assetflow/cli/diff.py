"""`assetflow diff`: what a deploy would change, before it. Contract 11.4 to 11.8."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from rich.text import Text

from assetflow.cli.output import print_json, show
from assetflow.core.compare import Comparison, ConsumerChange
from assetflow.core.values.words import count, shown
from assetflow.ledger.read.reader import Reader

_SIGNS = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
    "renamed": (">", "yellow"),
    "refused": ("!", "bold red"),
}


def diff(
    *places: Path,
    others_stay: bool = False,
    json: bool = False,
    markdown: bool = False,
    exit_code: bool = False,
    fail_on: tuple[Literal["lost-events"], ...] = (),
) -> int:
    """Show what a deploy would change, before it. Nothing is written.

    Compares the deployments of prefect.yaml with what the ledger has deployed.

    Parameters
    ----------
    places
        Files and folders with flows, instead of prefect.yaml. Deployments of other flows stay.
    others_stay
        Deployments that prefect.yaml does not have stay, because another project has them. Without it, they count as
        removed.
    json
        Print one JSON document.
    markdown
        Print Markdown, for a comment on a pull request.
    exit_code
        Exit with 1 if something would change.
    fail_on
        Exit with 1 if queued events would be lost.
    """
    # Import only here what imports Prefect: `--help` does not need it.
    from assetflow.stack.diffing import diff as diff_flows
    from assetflow.stack.diffing import of_files, of_project

    now = datetime.now(UTC)
    with Reader.open() as reader:
        deployed = reader.comparing.deployed()
        wanted = of_files(places, deployed) if places else of_project(Path.cwd())
        wanted.are_all &= not others_stay
        found = diff_flows(reader, wanted, deployed, now)
    if json:
        print_json(found.as_json())
    elif markdown:
        sys.stdout.writelines(f"{line}\n" for line in _markdown(found))
    else:
        show(*_lines(found))
    failed = "lost-events" in fail_on and found.lost_events > 0
    return int(failed or (exit_code and found.changes_something))


def _lines(found: Comparison) -> Iterator[Text]:
    for problem in found.problems:
        yield Text.assemble(("cannot be looked at: ", "bold red"), shown(problem))
    for each in found.consumers:
        yield from _change(each)
    for run in found.runs:
        key = "" if run.target_key is None else f" [{run.target_key}]"
        yield Text.assemble(("▶", "green"), f" {shown(run.consumer)}{shown(key)} would run at once: {shown(run.words)}")
    for asset in found.assets:
        yield Text.assemble(("!", "yellow"), f" {shown(asset.words)}")
    if not found.changes_something:
        yield Text("Nothing would change.", "green")
    elif found.unchanged:
        yield Text(f"{count(found.unchanged, 'consumer')} would stay as they are.", "dim")


def _change(change: ConsumerChange) -> Iterator[Text]:
    sign, style = _SIGNS[change.kind]
    was = f" (was {change.was})" if change.was else ""
    yield Text.assemble((f"{sign} ", style), (shown(change.name), "bold"), shown(was), (f" {change.kind}", style))
    if change.before is not None and change.before != change.after:
        yield Text(f"    - {shown(change.before)}", "red")
    if change.after is not None:
        yield Text(f"    + {shown(change.after)}", "green" if change.before != change.after else "dim")
    for note in change.notes:
        yield Text(f"    {shown(note)}")


def _markdown(found: Comparison) -> Iterator[str]:
    yield "### What this deploy would change"
    yield ""
    yield from (f"- ⚠️ {_plain(each)}" for each in found.problems)
    if not found.changes_something:
        yield "Nothing would change."
        return
    if found.consumers:
        yield "| consumer | change | before | after | what follows |"
        yield "| --- | --- | --- | --- | --- |"
    for each in found.consumers:
        cells = (each.name, each.kind, each.before or "–", each.after or "–", " ".join(each.notes))
        yield f"| {' | '.join(map(_plain, cells))} |"
    yield ""
    yield from (f"- **{_plain(run.consumer)}** would run at once: {_plain(run.words)}" for run in found.runs)
    yield from (f"- {_plain(asset.words)}" for asset in found.assets)


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it stands."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]<>|#" else each for each in shown(text))
