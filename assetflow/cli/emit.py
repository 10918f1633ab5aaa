"""`assetflow emit`: record an update that no task made. Contract 2.6."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, cast
from uuid import uuid4

from cyclopts import Parameter

from assetflow.cli.output import tell, text
from assetflow.cli.values import AsJson, Id, this_user
from assetflow.core.json_data import MOST_LEVELS, RULE, fit_text
from assetflow.core.values.assets import check_data_version
from assetflow.core.values.consumers import DecisionMade
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand, key_by_hand, observation
from assetflow.core.values.words import shown
from assetflow.errors import InvalidEvent, PrefectRefused, PrefectUnreachable, PrefectUnset, RecordingFailed, places
from assetflow.operations.recording import RecordedUpdates, asset_at_hand, record_at_hand
from assetflow.operations.what_if import Effects, effects_of, meant


def emit(
    asset: str,
    /,
    *,
    extra: str = "{}",
    key: str | None = None,
    alias: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    data_version: str | None = None,
    id: Id | None = None,  # noqa: A002 (the option's name)
    name: str | None = None,
    dry_run: bool = False,
    json: AsJson = False,
) -> None:
    """Record that an asset was updated. The update is durable when this command returns.

    The command writes to the ledger if this machine can open it and it belongs to the Prefect server in the settings.
    Otherwise it sends the update to Prefect.

    Parameters
    ----------
    asset
        The asset's URI, or its name.
    extra
        Details of the update: a JSON object.
    key
        The key of the partition that was updated.
    alias
        An alias that the update comes through; may be given several times.
    data_version
        The version of the data. The same version again starts no Eager flow.
    id
        The event's id. The same id twice counts as one event; without an id, each call makes a new event.
    name
        A readable name of the asset.
    dry_run
        Record nothing; say which consumers would start, and what the others would still need.
    """
    with places(extra="--extra", partition_key="--key", aliases="--alias", data_version="--data-version"):
        event = event_by_hand(
            asset_at_hand(asset, name),
            id=id or uuid4(),
            occurred=datetime.now(UTC),
            origin=Origin("cli", by=fit_text(this_user())),
            extra=read_extra(extra),
            partition_key=key,
            aliases=alias,
            data_version=data_version,
        )
    if dry_run:
        _preview(event, json)
        return
    recorded, effects = _record(event)
    _warn(recorded)
    event = next(iter(recorded.events), event)
    document = {
        "event_id": event.id,
        "uri": event.uri,
        "partition_key": event.partition_key,
        "via": recorded.via,
        "new": bool(recorded.events),
        "queued": list(effects.queued),
        "refused": list(effects.refused),
        "decisions": recorded.decisions,
    }
    tell(document, *map(text, _outcome_lines(event, recorded, effects)), json=json)


def _warn(recorded: RecordedUpdates) -> None:
    for warning in recorded.warnings:
        sys.stderr.write(f"{shown(warning)}\n")


def _preview(event: AssetEvent, json: bool) -> None:
    from assetflow.cli.layouts import show_preview
    from assetflow.ledger.read.reader import Reader
    from assetflow.operations.what_if import if_updated

    with Reader.open() as reader:
        preview = if_updated(reader, [event], event.occurred)
        show_preview(preview, json, meant=meant(reader, event.uri) if preview.is_empty else "")


def read_extra(given: str) -> object:
    """Parse the `--extra` option as JSON.

    Raises:
        InvalidEvent: the text is not JSON; the error shows the place of the mistake.
    """
    try:
        return cast(object, json_format.loads(given))
    except json_format.JSONDecodeError as error:
        near = given[max(0, error.pos - 20) : error.pos] + "⟨here⟩" + given[error.pos : error.pos + 20]
        raise InvalidEvent(
            f"not valid JSON: {error.msg}, in line {error.lineno}, column {error.colno}: {near}",
            where="extra",
            rule="2.2",
            fix="""Write --extra '{"rows": 12}', in single quotes""",
        ) from error
    except RecursionError as error:
        raise InvalidEvent(f"extra is nested more than {MOST_LEVELS} levels deep", where="extra", rule=RULE) from error


def _record(event: AssetEvent) -> tuple[RecordedUpdates, Effects]:
    """Record an update, and return what that led to and which consumers queue or refuse it."""
    try:
        recorded = record_at_hand(Recording(event.id, (event,)))
    except PrefectUnset:
        raise
    except (PrefectUnreachable, PrefectRefused) as error:
        raise RecordingFailed(
            f"the update of {event.uri} may not be recorded: {error}",
            fix=f"Repeat it with --id {event.id} when Prefect answers: the same id counts once",
        ) from error
    if recorded.via == "prefect":
        return recorded, Effects()
    # Who only sends an update to Prefect does not wait for SQLAlchemy.
    from assetflow.ledger.lease import downtime
    from assetflow.ledger.read.reader import Reader

    with Reader.open() as reader:
        effects, down = effects_of(reader, event), downtime(reader.evaluators())
    return replace(recorded, warnings=[*recorded.warnings, *([] if down is None else [str(down)])]), effects


def _outcome_lines(event: AssetEvent, recorded: RecordedUpdates, effects: Effects) -> list[str]:
    key = "" if event.partition_key is None else f", partition {event.partition_key}"
    if recorded.via == "prefect":
        return [
            f"{event.asset.name}{key}: event {event.id} is recorded in Prefect; the evaluator decides what runs",
            "  which flows take it, and which refuse it and why: "
            f"`assetflow explain --event {event.id}` beside the evaluator",
        ]
    if not recorded.events:
        return [f"{event.asset.name}{key}: event {event.id} was recorded before; nothing changes"]
    lines = [f"{event.asset.name}{key}: event {event.id} is recorded", *_runs(recorded.decisions)]
    for consumer, paused in effects.queued.items():
        lines.append(f"  waits in the queue of {consumer}" + (", which is paused" if paused else ""))
    lines += [f"  {words}" for words in effects.refused]
    if len(lines) == 1:
        lines.append("  no consumer queues it: no deployed flow is scheduled on this asset")
    return [*lines, *([f"  {effects.meant}"] if effects.meant else [])]


def observe(asset: str, version: str, /, *, key: str | None = None, json: AsJson = False) -> None:
    """Record which version of a source was seen. If it is not the newest one, that is an update of the asset.

    Parameters
    ----------
    asset
        The asset's URI, or its name. No deployed flow may make it.
    version
        The version, such as an ETag.
    key
        The partition key of which this is the version.
    """
    with places(partition_key="--key"):
        key = None if key is None else key_by_hand(key)
    source = asset_at_hand(asset)
    seen = observation(
        source,
        {key: check_data_version(version, where="VERSION")},
        id=uuid4(),
        occurred=datetime.now(UTC),
        origin=Origin("cli", by=fit_text(this_user())),
    )
    recorded = record_at_hand(seen)
    _warn(recorded)
    (item,) = seen.observed
    number = next((str(event.id) for event in recorded.events), None)
    told = {"uri": item.uri, "partition_key": key, "data_version": version, "via": recorded.via, "event": number}
    place = f"{source.name}{'' if key is None else f', partition {key}'}"
    tell(told, *(text(line) for line in _lines(place, number, recorded)), json=json)


def _lines(place: str, number: str | None, recorded: RecordedUpdates) -> list[str]:
    if recorded.via == "prefect":
        return [f"{place}: the observation is in Prefect; the evaluator decides whether it is an update"]
    if number is None:
        return [f"{place}: that is the newest version; nothing changes"]
    return [f"{place}: event {number} is recorded", *_runs(recorded.decisions)]


def _runs(decisions: Sequence[DecisionMade]) -> Iterator[str]:
    for each in decisions:
        target = "" if each.target_key is None else f" for the partition {each.target_key}"
        yield f"  {each.consumer} runs{target}: decision {each.id}"
