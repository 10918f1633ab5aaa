"""`assetflow emit`: an update that no task makes (contract 2.6)."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, cast
from uuid import UUID, uuid4

from cyclopts import Parameter

from assetflow.cli.naming import this_user
from assetflow.cli.output import print_json, show, text
from assetflow.core.assets import Asset, AssetAlias
from assetflow.core.consumers import Decision
from assetflow.core.events import AssetEvent, Origin, Recording, check_extra
from assetflow.core.partitions import check_key
from assetflow.core.visible import shown
from assetflow.errors import InvalidEvent, LedgerError, RecordingFailed
from assetflow.ledger.ledger import Ledger
from assetflow.ledger.reader import Reader


@dataclass(frozen=True)
class Emitted:
    """What became of an update.

    Attributes:
        via: `ledger`: it is recorded and decided; `prefect`: it is durable there, and the evaluator takes it in.
        new: whether it was not recorded before.
        queued: the consumers in whose queues it waits.
        decisions: the decisions that it led to, each with its consumer.
    """

    event: AssetEvent
    via: str
    new: bool = True
    queued: Sequence[str] = ()
    decisions: Sequence[tuple[str, Decision]] = ()
    warnings: Sequence[str] = ()

    def as_json(self) -> dict[str, object]:
        return {
            "event": str(self.event.id),
            "uri": self.event.uri,
            "partition_key": self.event.partition_key,
            "via": self.via,
            "new": self.new,
            "queued": list(self.queued),
            "decisions": [
                {"decision": str(decision.id), "consumer": consumer, "target_key": decision.target_key}
                for consumer, decision in self.decisions
            ],
        }


def emit(
    uri: str,
    /,
    *,
    extra: str = "{}",
    partition: str | None = None,
    alias: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    id: UUID | None = None,  # noqa: A002 (the option's name)
    name: str | None = None,
    json: bool = False,
) -> None:
    """Record that an asset was updated. When this returns, the update is durable.

    It goes straight into the ledger if that is at hand and belongs to the Prefect that the settings name, and else
    through Prefect.

    Parameters
    ----------
    uri
        The asset.
    extra
        What there is to say about the update: a JSON object.
    partition
        The key of the partition that was updated.
    alias
        An alias that the update comes through; may be given several times.
    id
        The event's id: the same id twice is one event. Without it, each call is an event.
    name
        A readable name of the asset.
    json
        Print one JSON document.
    """
    event = AssetEvent(
        id=id or uuid4(),
        asset=Asset(uri, name=name),
        occurred=datetime.now(UTC),
        origin=Origin("cli", by=this_user()),
        extra=read_extra(extra),
        partition_key=None if partition is None else check_key(partition),
        aliases=tuple(sorted({AssetAlias(each).name for each in alias})),
    )
    recording = Recording(event.id, (event,))
    emitted = _into_ledger(recording) if _ledger_at_hand() else _through_prefect(recording)
    for warning in emitted.warnings:
        sys.stderr.write(f"{shown(warning)}\n")
    if json:
        print_json(emitted.as_json())
    else:
        show(*(text(line) for line in _told(emitted)))


def read_extra(given: str) -> dict[str, object]:
    """The extra that was typed.

    Raises:
        InvalidEvent: it is no JSON object; the error says where it stops being one.
    """
    try:
        value = cast(object, json_format.loads(given))
    except json_format.JSONDecodeError as error:
        near = given[max(0, error.pos - 20) : error.pos] + "⟨here⟩" + given[error.pos : error.pos + 20]
        raise InvalidEvent(
            f"it is not JSON: {error.msg}, in line {error.lineno}, column {error.colno}: {near}",
            where="--extra",
            rule="2.2",
            fix="""Write --extra '{"rows": 12}', in single quotes""",
        ) from error
    except RecursionError as error:
        raise InvalidEvent("it is nested too deeply", where="--extra", rule="2.2") from error
    return check_extra(value, where="--extra")


def _ledger_at_hand() -> bool:
    """Whether there is a ledger here that belongs to the Prefect that the settings name."""
    from prefect.settings import PREFECT_API_URL

    address = PREFECT_API_URL.value()
    with suppress(LedgerError), Reader.open() as reader:
        return address is not None and (reader.prefect_api_url() or "").rstrip("/") == address.rstrip("/")
    return False


def _into_ledger(recording: Recording) -> Emitted:
    with Ledger.open() as ledger:
        recorded, decisions = ledger.writer.record([recording], datetime.now(UTC))[0]
        event = recorded.events[0] if recorded.events else recording.events[0]
        receipts = ledger.reader.receipts(event.id)
    names = {receipt.receipt.consumer: receipt.consumer_name or "" for receipt in receipts}
    return Emitted(
        event=event,
        via="ledger",
        new=bool(recorded.events),
        queued=[each.consumer_name or "" for each in receipts if each.receipt.status == "queued"],
        decisions=[(names.get(decision.consumer, ""), decision) for decision in decisions],
        warnings=recorded.warnings,
    )


def _through_prefect(recording: Recording) -> Emitted:
    from assetflow.authoring.delivery import deliver
    from assetflow.prefect_io.rest import check_address

    # A task may bring up a server of its own; what is said here has to reach the evaluator.
    check_address()
    (event,) = recording.events
    try:
        deliver(recording)
    except RecordingFailed as error:
        raise RecordingFailed(
            f"the update of {event.uri} may not be recorded: {error.__cause__}",
            fix=f"Say it again with --id {event.id} when Prefect answers: the same id counts once",
        ) from error
    return Emitted(event, "prefect")


def _told(emitted: Emitted) -> list[str]:
    event = emitted.event
    key = "" if event.partition_key is None else f", partition {event.partition_key}"
    if emitted.via == "prefect":
        return [f"{event.uri}{key}: event {event.id} is recorded in Prefect; the evaluator decides what runs"]
    if not emitted.new:
        return [f"{event.uri}{key}: event {event.id} was recorded before, nothing changes"]
    lines = [f"{event.uri}{key}: event {event.id} is recorded"]
    for consumer, decision in emitted.decisions:
        target = "" if decision.target_key is None else f" for the partition {decision.target_key}"
        lines.append(f"  {consumer} runs{target}: decision {decision.id}")
    lines += [f"  waits in the queue of {consumer}" for consumer in dict.fromkeys(emitted.queued)]
    return lines if len(lines) > 1 else [*lines, "  no consumer takes it: see `assetflow events show`"]
