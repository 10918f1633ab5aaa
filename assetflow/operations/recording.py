"""Record updates, by hand or as others post them: in the ledger, or through Prefect for the one that decides there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from assetflow.core.json_data import fit_text
from assetflow.core.shapes import shape
from assetflow.core.values.addresses import PrefectBlock, with_variables
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import DecisionMade
from assetflow.core.values.events import AssetEvent, Origin, Recording, Versions, event_by_hand, observation
from assetflow.core.values.watchers import WebhookTrigger
from assetflow.core.watchers.intake import Message, Watched, intake_of
from assetflow.errors import AssetflowError, UnknownAsset, UnknownWatcher, WatchingFailed
from assetflow.settings import get_settings

if TYPE_CHECKING:
    from uuid import UUID

    from assetflow.ledger.read.assets import ListedAsset
    from assetflow.ledger.read.reader import Reader
    from assetflow.ledger.records import WatcherRecord
    from assetflow.operations.installation import Installation


@dataclass(frozen=True)
class RecordedUpdates:
    """The result of recording updates.

    Attributes:
        via: `ledger` if the updates are recorded there and decided; `prefect` if they are durable in Prefect, from
            which the evaluator will record them.
        events: the events that were not recorded before, with their sequences if they are in the ledger.
        decisions: the decisions that they led to.
        warnings: warnings for the user who recorded them.
    """

    events: Sequence[AssetEvent]
    decisions: Sequence[DecisionMade] = ()
    warnings: Sequence[str] = ()
    via: Literal["ledger", "prefect"] = "ledger"


def record(at: Installation, recording: Recording) -> RecordedUpdates:
    """Record updates durably. If another ledger decides now, send them to it through Prefect.

    Raises:
        PrefectUnreachable, PrefectRefused: the updates may not be recorded; repeating them with the same ids is safe.
    """
    other = at.other_ledger()
    return _into_ledger(at, recording) if other is None else _through_prefect(recording, other)


def record_here(at: Installation, recording: Recording) -> RecordedUpdates:
    """Record updates in this ledger only, for an answer that needs their sequences.

    Raises:
        LedgerForeign: another ledger decides, so that the updates would start nothing here.
    """
    fix = "Use the API of that ledger, or POST /api/v1/events here, which records in Prefect"
    at.check_decides("nothing is recorded", fix)
    return _into_ledger(at, recording)


def record_at_hand(recording: Recording) -> RecordedUpdates:
    """Record updates durably: in the ledger of the settings if it decides for their Prefect, else through Prefect.

    Raises:
        LedgerError: the ledger decides and cannot be written.
        PrefectUnreachable, PrefectRefused: the updates may not be recorded; repeating them with the same ids is safe.
    """
    if get_settings().has_no_ledger:
        return _at_address(recording, None)
    # Who only sends an update to Prefect does not wait for SQLAlchemy.
    from assetflow.ledger.ledger import Ledger
    from assetflow.operations.deciding_ledger import ledger_at_hand
    from assetflow.operations.installation import Installation

    at_hand = ledger_at_hand()
    if at_hand.decides:
        with Ledger.open() as ledger:
            recorded = _into_ledger(Installation(ledger), recording)
    else:
        recorded = _at_address(recording, at_hand.other)
    return replace(recorded, warnings=[*at_hand.warnings, *recorded.warnings])


def asset_at_hand(text: str, name: str | None = None) -> Asset:
    """Return the asset that a user names: the one with this name, else the one with this URI. Contract 2.6.

    Parameters:
        name: another name, which the asset gets.

    Raises:
        InvalidAsset: the text is not a name, and cannot be a URI.
    """
    asset = Asset(text)
    if not get_settings().has_no_ledger:
        # Who only sends an update to Prefect does not wait for SQLAlchemy.
        from assetflow.operations import deciding_ledger

        asset = deciding_ledger.asset_at_hand(text)
    return asset if name is None else Asset(asset.uri, name=name)


def update_asset(
    at: Installation,
    listed: ListedAsset,
    *,
    event_id: UUID | None = None,
    extra: object = None,
    partition_key: str | None = None,
    by: str = "",
) -> AssetEvent:
    """Record one update of an asset that the ledger knows, and return its event with the sequence.

    Parameters:
        event_id: `None` for a new one; an event that is recorded already is returned without its sequence.

    Raises:
        InvalidEvent, TooLarge: `where` is `extra` or `partition_key`.
        UnknownAsset: the asset breaks a rule that is newer than the asset; `where` is `asset`.
        LedgerForeign: another ledger decides.
    """
    now = at.now()
    origin = Origin("api", by=fit_text(by))
    event = event_by_hand(
        _asset(listed), id=event_id or uuid4(), occurred=now, origin=origin, extra=extra, partition_key=partition_key
    )
    return next(iter(record_here(at, Recording(event.id, (event,))).events), event)


def observe(at: Installation, asset: Asset, versions: Versions, *, origin: Origin) -> RecordedUpdates:
    """Record which versions of a source were seen; those that are new are updates. Contract 8.2.

    Raises:
        InvalidEvent: a flow makes the asset.
        PrefectUnreachable, PrefectRefused: as `record`.
    """
    return record(at, observation(asset, versions, id=uuid4(), occurred=at.now(), origin=origin))


def keep_refused(at: Installation, given: object, error: AssetflowError) -> None:
    """Keep an update that was posted and refused, with the reason. Contract 2.6."""
    at.ledger.writer.events.refuse(given, str(error), error.rule, "api", None, at.now())


def _at_address(recording: Recording, other: str | None) -> RecordedUpdates:
    """Record updates in the Prefect of the settings. Unlike a task, this starts no temporary Prefect server."""
    # `--help` does not need the HTTP client. A temporary server has no evaluator that would read from it.
    from assetflow.prefect_io.rest import check_address

    check_address()
    return _through_prefect(recording, other)


def _through_prefect(recording: Recording, other: str | None) -> RecordedUpdates:
    """Record updates in Prefect; what it becomes there, the evaluator decides.

    Parameters:
        other: the id of the ledger that has taken over from the one at hand; `None` if it is not known.
    """
    words = f"this ledger no longer decides, ledger {other} has taken over: the update goes through Prefect"
    warnings = [*([] if other is None else [words]), *through_prefect(recording)]
    return RecordedUpdates(recording.events, warnings=warnings, via="prefect")


def through_prefect(recording: Recording) -> list[str]:
    """Record updates in Prefect, durably, and announce them. Return warnings for the user.

    Raises:
        PrefectUnreachable, PrefectRefused: the updates may not be recorded; repeating them with the same ids is safe.
    """
    from assetflow.prefect_io import recordings
    from assetflow.prefect_io.rest import TaskApi

    with TaskApi.connect(patience=get_settings().recording_timeout) as api:
        recordings.keep(api, recording)
        try:
            recordings.announce(api, recording)
        except AssetflowError as error:
            return [f"The update is recorded, but the evaluator will find it only when it reads the record: {error}"]
    return []


def _asset(listed: ListedAsset) -> Asset:
    uri = listed.record.uri
    try:
        return Asset(uri, name=listed.name)
    except ValueError as error:
        raise UnknownAsset(f"{uri} is not an asset that can be updated here: {error}", where="asset") from error


def _into_ledger(at: Installation, recording: Recording) -> RecordedUpdates:
    recorded, decisions = at.ledger.writer.events.record([recording], at.now())[0]
    for _, error in recorded.refused:
        raise error
    if decisions:
        at.on_recorded()
    numbers = {each.consumer for each in decisions}
    names = {number: _name(at.ledger.reader, number) for number in numbers}
    made = [DecisionMade.of(names[each.consumer], each) for each in decisions]
    return RecordedUpdates(recorded.events, made, recorded.warnings)


def _name(reader: Reader, number: int) -> str:
    record = reader.consumers.get(number)
    return "" if record is None else record.consumer.name


@shape
class Received:
    """The outcome of a message."""

    status: Literal["recorded", "known", "filtered", "refused"]
    """`known`: its updates were recorded before. `refused`: it is kept, with the reason."""
    updates: int = 0
    """How many updates were recorded."""
    reason: str = ""


def find_webhook(at: Installation, name: str) -> tuple[WatcherRecord, WebhookTrigger]:
    """Return a watcher that others post to, and its webhook.

    Raises:
        UnknownWatcher: no deployed asset has a webhook of this name.
        WatchingFailed: it is paused.
    """
    found = next((each for each in at.ledger.reader.watchers.all() if each.name == name), None)
    if found is None or not isinstance(found.trigger, WebhookTrigger):
        raise UnknownWatcher(
            f"there is no webhook {name!r}", fix="Deploy a flow whose asset has a watcher of this name"
        )
    if found.paused:
        raise WatchingFailed(
            f"the watcher {name} is paused", fix=f"Send it again after `assetflow watchers resume {name}`"
        )
    return found, found.trigger


async def secret_of(at: Installation, webhook: WebhookTrigger) -> str:
    """Return the secret that messages are signed with.

    Raises:
        InvalidWatcher: the variable is not set in this process.
        WatchingFailed: Prefect has no such block.
        PrefectUnreachable, PrefectRefused
    """
    secret = webhook.secret
    if not isinstance(secret, PrefectBlock):
        return with_variables(secret, os.environ)
    # Import Prefect's client only here: commands do not need it.
    from assetflow.prefect_io.rest import read_url_block

    async with at.prefect() as api:
        found = await read_url_block(api, secret.name)
    if found is None:
        raise WatchingFailed(
            f"Prefect has no block {secret.name} with a secret", fix="Create a Secret block of this name"
        )
    return found


def receive(at: Installation, record: WatcherRecord, number: str, body: bytes) -> Received:
    """Record a message whose signature is right. One that cannot be an update is kept as refused.

    Raises:
        LedgerForeign: another ledger decides, so that the update would start nothing here.
    """
    at.check_decides("nothing is recorded", "Post to the server of that ledger")
    now = at.now()
    watched = Watched(record.name, record.trigger, record.assets)
    name = f"webhook {record.name}"
    intake = intake_of([(Message(body, number), number)], [watched], name, name.capitalize(), now)
    done = at.ledger.writer.watchers.record(intake, now)
    if record.state != "watching":
        at.ledger.writer.watchers.set_state([record.name], "watching", "", now)
    at.on_recorded()
    if intake.refused:
        return Received("refused", reason=intake.refused[0].reason)
    updates = sum(len(recorded.events) for recorded, _ in done)
    return Received("filtered" if intake.filtered else "recorded" if updates else "known", updates)
