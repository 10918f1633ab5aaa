"""`assetflow watchers`: list, pause and resume what updates assets from outside."""

from __future__ import annotations

from collections.abc import Mapping

import cyclopts
from rich.text import Text

from assetflow.cli.output import answer, empty_message, lists, reads, show, state_text, tell, text, time_cell
from assetflow.cli.values import AsJson
from assetflow.core.values.words import count
from assetflow.errors import UnknownWatcher
from assetflow.ledger import Ledger
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import WatcherRecord
from assetflow.operations.installation import Installation
from assetflow.operations.lookup import switch_watcher

app = cyclopts.App(name="watchers", help="Watchers: queues and files that update assets.")


@app.command
@lists
@reads
def ls(reader: Reader, /, *, wide: bool = False, json: AsJson = False) -> None:
    """List the watchers: what each watches and updates, whether it works, its last update, and what waits.

    Parameters
    ----------
    wide
        Show all columns in full, however wide the terminal is.
    """
    listed = reader.watchers.all()
    names = reader.assets.names({asset.uri for each in listed for asset in each.assets})
    cells = (_cells(each, names) for each in listed)
    spare = ("updates", "waiting", "last", "watches")
    answer(
        listed,
        ("watcher", "watches", "asset", "state", "updates", "last", "waiting"),
        cells,
        right=("updates", "waiting"),
        json=json,
        empty=empty_message(reader, "No watchers yet: deploy a flow that names an asset with watchers=[...]."),
        spare=spare,
        wide=wide,
    )


@app.command(name="show")
@reads
def show_watcher(reader: Reader, name: str, /, *, json: AsJson = False) -> None:
    """Show one watcher: what it watches and updates, how it is, and what it has seen.

    Parameters
    ----------
    name
        The watcher.
    """
    found = next((each for each in reader.watchers.all() if each.name == name), None)
    if found is None:
        raise UnknownWatcher(f"there is no watcher {name!r}", fix="`assetflow watchers ls` lists them")
    tell(found, *_facts(found), json=json)


def _facts(each: WatcherRecord) -> list[Text]:
    """Return how a watcher is, line by line."""
    return [
        text(each.name, "bold"),
        text(f"watches {each.trigger.describe()}"),
        text(f"updates {', '.join(asset.name for asset in each.assets)}"),
        Text.assemble(f"{each.state} since ", time_cell(each.since)),
        *([text(f"error: {each.error}", "red")] if each.error else []),
        Text.assemble("last update: ", time_cell(each.last_update)),
        Text(f"{count(each.updates, 'update')}, {each.filtered} filtered, {each.refused} refused"),
    ]


@app.command
def pause(name: str) -> None:
    """Pause a watcher: what is outside stays there until it is resumed.

    Parameters
    ----------
    name
        The watcher.
    """
    _switch(name, paused=True)
    show(Text.assemble("paused ", text(name)))


@app.command
def resume(name: str) -> None:
    """Resume a paused watcher.

    Parameters
    ----------
    name
        The watcher.
    """
    _switch(name, paused=False)
    show(Text.assemble("resumed ", text(name)))


def _cells(record: WatcherRecord, names: Mapping[str, str]) -> tuple[Text | str, ...]:
    state = record.state
    told = f"{state}: {record.error}" if record.error and state == "failing" else state
    return (
        text(record.name),
        text(record.trigger.describe()),
        text(", ".join(names[asset.uri] for asset in record.assets)),
        state_text(told, state),
        str(record.updates),
        time_cell(record.last_update),
        "" if record.lag is None else str(record.lag),
    )


def _switch(name: str, *, paused: bool) -> None:
    with Ledger.open() as ledger:
        switch_watcher(Installation(ledger), name, paused=paused)
