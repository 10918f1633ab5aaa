"""Show what an action would lead to, as `--dry-run` does."""

from __future__ import annotations

from collections.abc import Iterator

from assetflow.cli.output import print_json, show, text
from assetflow.core.values.words import count
from assetflow.operations.what_if import Preview


def show_preview(preview: Preview, json: bool, *, meant: str = "") -> None:
    """Print what an action would lead to, as lines or as one JSON document.

    Parameters:
        meant: a sentence on what the user probably meant.
    """
    if json:
        print_json(preview.as_json())
    else:
        show(*(text(line) for line in (*_lines(preview), *([f"  {meant}"] if meant else []))))


def _lines(preview: Preview) -> Iterator[str]:
    what = preview.what
    yield "Nothing is written. This would happen:"
    if what.known:
        yield "  nothing: the update is recorded already"
        return
    for run in what.starts:
        yield f"  {run.consumer} runs{_for(run.target_key)} now, with {count(run.updates, 'update')}"
    for queue in what.waits:
        yield f"  {queue.consumer}{_for(queue.target_key)} {queue.words}"
    yield from (f"  {words}" for words in what.refused)
    if what.is_empty:
        yield "  no consumer queues it: no deployed flow is scheduled on this asset"
    if preview.further:
        yield f"  {preview.further_words}"


def _for(target_key: str | None) -> str:
    return "" if target_key is None else f" for the partition {target_key}"
