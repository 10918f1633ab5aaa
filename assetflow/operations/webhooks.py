"""Receive what others post to watchers: check who sent it, and record it. Contract 10.8."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, cast

from assetflow.core.shapes import shape
from assetflow.core.values.addresses import PrefectBlock, with_variables
from assetflow.core.values.watchers import WebhookTrigger
from assetflow.core.watchers.intake import Message, Watched, intake_of
from assetflow.errors import UnknownWatcher, WatchingFailed
from assetflow.ledger.records import WatcherRecord
from assetflow.operations.installation import Installation


@shape
class Received:
    """The outcome of a message."""

    status: Literal["recorded", "known", "filtered", "refused"]
    """`known`: its updates were recorded before. `refused`: it is kept, with the reason."""
    updates: int = 0
    """How many updates were recorded."""
    reason: str = ""


@dataclass(frozen=True)
class Webhook:
    """A watcher that others post to."""

    record: WatcherRecord

    @property
    def trigger(self) -> WebhookTrigger:
        return cast(WebhookTrigger, self.record.trigger)


def find_webhook(at: Installation, name: str) -> Webhook:
    """Return the webhook of a watcher.

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
    return Webhook(found)


async def secret_of(at: Installation, webhook: Webhook) -> str:
    """Return the secret that messages are signed with.

    Raises:
        InvalidWatcher: the variable is not set in this process.
        WatchingFailed: Prefect has no such block.
        PrefectUnreachable, PrefectRefused
    """
    secret = webhook.trigger.secret
    if not isinstance(secret, PrefectBlock):
        return with_variables(secret, os.environ)
    # Import Prefect's client only here: commands do not need it.
    from assetflow.prefect_io.stored_values import read_url_block

    async with at.prefect() as api:
        found = await read_url_block(api, secret.name)
    if found is None:
        raise WatchingFailed(
            f"Prefect has no block {secret.name} with a secret", fix="Create a Secret block of this name"
        )
    return found


def receive(at: Installation, webhook: Webhook, number: str, body: bytes) -> Received:
    """Record a message whose signature is right. One that cannot be an update is kept as refused.

    Raises:
        LedgerForeign: another ledger decides, so that the update would start nothing here.
    """
    at.check_decides("nothing is recorded", "Post to the server of that ledger")
    record, now = webhook.record, at.now()
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
