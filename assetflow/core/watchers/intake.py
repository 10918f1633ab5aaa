"""What watchers found, as the ledger records it: messages of queues and webhooks. Contract 10.2 to 10.5, 10.8."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import cast
from uuid import UUID, uuid5

from assetflow.core.grouping import grouped
from assetflow.core.json_data import fit_text
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.core.values.triggers import NOT_THERE, Trigger, last_name, value_at
from assetflow.core.values.watchers import MessageTrigger, Signs
from assetflow.core.values.words import shown
from assetflow.errors import AssetflowError, InvalidEvent, InvalidWatcher, TooLarge, WrongSignature


@dataclass(frozen=True)
class Watched:
    """A watcher, with the assets that it updates.

    Attributes:
        begun: False if the watcher never looked, so that what is there is known (contract 10.4).
    """

    name: str
    trigger: Trigger
    assets: tuple[Asset, ...]
    begun: bool = False


@dataclass(frozen=True)
class RefusedChange:
    """Something from outside that cannot be an update, with the reason. Contract 2.6.

    Attributes:
        id: the same for each delivery of the message.
        payload: what was sent.
        watchers: the names of the watchers that refuse it.
        rule: the number of the rule that it breaks.
    """

    id: UUID
    payload: object
    reason: str
    watchers: tuple[str, ...]
    rule: str | None = None


@dataclass(frozen=True)
class Note:
    """A message without an id that is recorded and not acknowledged. Contract 10.3.

    Attributes:
        token: what stands for its id.
        digest: the fingerprint of its content.
    """

    token: UUID
    digest: str


@dataclass(frozen=True)
class CursorStep:
    """How far a watcher has come: the items that it knows from now on, and those that it forgets."""

    watcher: str
    known: Mapping[str, object] = field(default_factory=dict[str, object])
    gone: Sequence[str] = ()


@dataclass
class WatcherIntake:
    """The recordings that are written in one transaction.

    Attributes:
        source: where it came from, without user and password.
        recordings: one for each message, or for each file or look (contract 10.2).
        refused: what cannot be an update.
        makers: the watchers that each event came by, by the id of the event.
        filtered: for each watcher, how many messages its filter did not want (contract 10.5).
        poison: the places of the messages that became no update because all that wanted them refused them.
        notes: the messages without ids among them.
        forget: the tokens of notes whose messages cannot come again.
        cursor: the step of the cursor, for what has one.
    """

    source: str
    recordings: list[Recording] = field(default_factory=list[Recording])
    refused: list[RefusedChange] = field(default_factory=list[RefusedChange])
    makers: dict[UUID, tuple[str, ...]] = field(default_factory=dict[UUID, "tuple[str, ...]"])
    filtered: dict[str, int] = field(default_factory=dict[str, int])
    poison: list[int] = field(default_factory=list[int])
    notes: list[Note] = field(default_factory=list[Note])
    forget: list[UUID] = field(default_factory=list[UUID])
    cursor: CursorStep | None = None


MOST_BYTES = 1_000_000
_NAMESPACE = UUID("3f6c6b52-93a7-5a1e-8a2f-7d0c7f1f4f10")
_SHOWN = 2_000


@dataclass(frozen=True)
class Message:
    """A message as a broker delivers it.

    Attributes:
        id: the broker's or the producer's id; `None` if it has none.
        redelivered: True if it may have been delivered before.
        sent: when it was sent, if the broker says so, UTC.
        gone: why the broker no longer has its content; empty if it has.
    """

    body: bytes
    id: str | None = None
    redelivered: bool = False
    sent: datetime | None = None
    gone: str = ""

    @property
    def digest(self) -> str:
        """The fingerprint of the content."""
        return sha256(self.body).hexdigest()


class Notes:
    """The messages without ids that are recorded and may come again. Contract 10.3.

    Parameters:
        noted: what the ledger has noted for the source.
    """

    def __init__(self, noted: Sequence[Note] = ()) -> None:
        self._tokens = grouped((each.digest, each.token) for each in noted)

    def take(self, message: Message) -> UUID | None:
        """Return the token of an equal message that is noted, if this one may be that one; each note once."""
        tokens = self._tokens.get(message.digest) if message.redelivered else None
        return tokens.pop() if tokens else None

    @property
    def left(self) -> list[UUID]:
        """The tokens that no message has taken."""
        return [token for tokens in self._tokens.values() for token in tokens]


def intake_of(
    messages: Sequence[tuple[Message, str]], watched: Sequence[Watched], source: str, label: str, now: datetime
) -> WatcherIntake:
    """Return what becomes of messages: one recording for each, with the updates of all watchers of the queue.

    Those of watchers with `within` are one recording for all of the messages. Contract 10.2.

    Parameters:
        messages: each with its id, or with the token that stands for it.
        source: where they come from, without user and password; ids follow from it (contract 10.2).
        label: the queue as people call it: "RabbitMQ orders".
    """
    intake = WatcherIntake(source)
    together: dict[UUID, AssetEvent] = {}
    for place, (message, number) in enumerate(messages):
        by = f"{label}, message {message.id}" if message.id is not None else label
        origin = Origin("watcher", by=fit_text(by))
        alone: dict[UUID, AssetEvent] = {}
        made = 0
        problems: dict[str, list[tuple[str, AssetflowError]]] = {}
        for each in watched:
            try:
                events = _events(message, number, each, source, origin, now)
            except AssetflowError as error:
                problems.setdefault(str(error), []).append((each.name, error))
                continue
            if events is None:
                intake.filtered[each.name] = intake.filtered.get(each.name, 0) + 1
            made += len(events or ())
            for event in events or ():
                (alone if cast(MessageTrigger, each.trigger).within is None else together)[event.id] = event
                intake.makers[event.id] = (*intake.makers.get(event.id, ()), each.name)
        if alone:
            intake.recordings.append(Recording(_id("message", source, number), tuple(alone.values())))
        if problems and not made:
            intake.poison.append(place)
        intake.refused += [_refused(message, number, source, by, each) for each in problems.values()]
    if together:
        numbers = (number for _, number in messages)
        intake.recordings.append(Recording(_id("batch", source, *numbers), tuple(together.values())))
    return intake


def _events(
    message: Message, number: str, watched: Watched, source: str, origin: Origin, now: datetime
) -> list[AssetEvent] | None:
    """Return the updates that a message is for a watcher; `None` if its filter does not want it."""
    trigger = cast(MessageTrigger, watched.trigger)
    data = _content(message, trigger)
    if not all(_equal(value_at(data, path), wanted) for path, wanted in trigger.filter.items()):
        return None
    key = None if trigger.partition_key is None else _name_at(data, trigger.partition_key)
    key = str(key) if isinstance(key, int) and not isinstance(key, bool) else key
    aliases = () if trigger.alias is None else (cast(str, _name_at(data, trigger.alias)),)
    extra = {"payload": data} if trigger.extra is None else {last_name(trigger.extra): _at(data, trigger.extra)}
    assets = watched.assets if trigger.asset is None else (Asset(cast(str, _name_at(data, trigger.asset))),)
    return [
        event_by_hand(
            asset,
            id=_id("update", source, number, asset.uri, str(key or "")),
            occurred=message.sent or now,
            origin=origin,
            extra=extra,
            partition_key=key,
            aliases=aliases,
        )
        for asset in assets
    ]


def _content(message: Message, trigger: MessageTrigger) -> object:
    if message.gone:
        raise InvalidEvent(message.gone, rule="10.2")
    if len(message.body) > MOST_BYTES:
        raise TooLarge(f"the message has {len(message.body):,} bytes, the limit is {MOST_BYTES:,}")
    if trigger.format == "bytes":
        return _text(message.body)
    try:
        return json.loads(message.body)
    except (ValueError, RecursionError) as error:
        raise InvalidEvent(
            f"the message is not JSON: {error}", rule="10.2", fix='Or watch it with format="bytes"'
        ) from (error)


def _text(body: bytes) -> object:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


def _at(data: object, path: str) -> object:
    value = value_at(data, path)
    if value is NOT_THERE:
        raise InvalidEvent(f"the message has no {path}", rule="10.2")
    return value


def _name_at(data: object, path: str) -> object:
    """Return the key, alias or URI at a path: null is none."""
    value = _at(data, path)
    if value is None:
        raise InvalidEvent(f"the message has null at {path}", rule="10.2")
    return value


def _equal(value: object, wanted: object) -> bool:
    # For Python, True is 1; for JSON, it is not.
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)


def _id(*parts: str) -> UUID:
    return uuid5(_NAMESPACE, fit_text("|".join(parts)))


def _refused(
    message: Message, number: str, source: str, by: str, problem: Sequence[tuple[str, AssetflowError]]
) -> RefusedChange:
    names = tuple(name for name, _ in problem)
    error = problem[0][1]
    payload = {"message": by, "content": fit_text(message.body[:_SHOWN].decode(errors="replace"))}
    return RefusedChange(_id("refused", source, number, str(error)), payload, shown(error), names, error.rule)


# How old, or how far ahead, the time of a message may be.
TOLERANCE = timedelta(minutes=5)
_SECONDS = re.compile(r"[0-9]{1,12}")
_PREFIX = "whsec_"
_STANDARD = ("webhook-id", "webhook-timestamp", "webhook-signature")
_GITHUB = ("x-github-delivery", "x-hub-signature-256")


def message_id(signs: Signs, headers: Mapping[str, str], now: datetime) -> str:
    """Return the id of a message whose headers may be signed, before anything is computed.

    Parameters:
        headers: by name in lower case.

    Raises:
        WrongSignature: a header is missing, or the time is too far away.
    """
    for name in _STANDARD if signs == "standard" else _GITHUB:
        if not headers.get(name, "").strip():
            raise WrongSignature(f"the header {name} is missing", fix="Sign the message as the watcher's trigger says")
    if signs == "github":
        return headers["x-github-delivery"]
    sent = headers["webhook-timestamp"]
    if not _SECONDS.fullmatch(sent) or abs(int(sent) - now.timestamp()) > TOLERANCE.total_seconds():
        raise WrongSignature(
            "webhook-timestamp is more than five minutes away from the time here", fix="Set the clock of the sender"
        )
    return headers["webhook-id"]


def check_signature(signs: Signs, headers: Mapping[str, str], body: bytes, secret: str) -> None:
    """Check the signature of a message.

    Raises:
        WrongSignature: it was not signed with this secret.
        InvalidWatcher: the secret cannot be one.
    """
    if signs == "github":
        wanted = f"sha256={hmac.new(secret.encode(), body, sha256).hexdigest()}"
        found = [headers["x-hub-signature-256"]]
    else:
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        wanted = f"v1,{base64.b64encode(hmac.new(_key(secret), signed, sha256).digest()).decode()}"
        found = headers["webhook-signature"].split()
    if not any(hmac.compare_digest(wanted.encode(), each.encode()) for each in found):
        raise WrongSignature(
            "the message is not signed with the watcher's secret", fix="Use the same secret here and there"
        )


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key:
        raise InvalidWatcher(
            "the secret of this webhook is not the base64 text that Standard Webhooks asks for",
            fix='Write it as "whsec_…", with the output of `openssl rand -base64 32`',
            rule="10.8",
        )
    return key
