"""`assetflow diff`: what a deploy would change, before it. Contract 11.4 to 11.8."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

from cyclopts import Parameter, Token
from rich.text import Text

from assetflow.cli.output import print_json, show
from assetflow.cli.values import Age, AsJson
from assetflow.core.compare import LIMITS, Comparison, ConsumerChange
from assetflow.core.values.words import count, shown
from assetflow.errors import InvalidCall
from assetflow.ledger.read.reader import Reader

Reason = Literal["lost-events", "fewer-runs"]
_SIGNS = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
    "renamed": (">", "yellow"),
    "refused": ("!", "bold red"),
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
    exit_code
        Exit with 1 if something would change, or if a flow cannot be imported.
    fail_on
        Exit with 1 if queued events would be lost (lost-events), or if a consumer would have had fewer runs in the
        replay (fewer-runs). Separate several with commas.
    """
    # Import only here what imports Prefect: `--help` does not need it.
    from assetflow.stack.diffing import diff as diff_flows
    from assetflow.stack.diffing import of_files, of_project

    if "fewer-runs" in fail_on and replay is None:
        raise InvalidCall("only a replay tells of fewer runs", where="--fail-on", fix="Add --replay 7d")
    now = datetime.now(UTC)
    with Reader.open() as reader:
        deployed = reader.comparing.deployed()
        wanted = of_files(places, deployed) if places else of_project(Path.cwd())
        wanted.are_all &= not others_stay
        found = diff_flows(reader, wanted, deployed, now, None if replay is None else now - replay)
    if json:
        print_json(found.as_json())
    elif markdown:
        sys.stdout.writelines(f"{line}\n" for line in _markdown(found))
    else:
        show(*_lines(found))
    failed = ("lost-events" in fail_on and found.lost_events > 0) or ("fewer-runs" in fail_on and found.has_fewer_runs)
    return int(failed or (exit_code and (found.changes_something or bool(found.problems))))


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
    if found.replayed:
        yield Text("What was recorded, with both versions:", "bold")
        yield from (Text.assemble((f"  {shown(each.name)} ", "bold"), shown(each.words)) for each in found.replayed)
        yield Text(f"  {LIMITS}", "dim")
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
    if found.replayed:
        yield from ("", "#### What was recorded, with both versions", "")
        yield from (f"- **{_plain(each.name)}** {_plain(each.words)}" for each in found.replayed)
        yield from ("", LIMITS)


def _plain(text: str) -> str:
    """Return a text that Markdown shows as it stands."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]<>|#" else each for each in shown(text))
