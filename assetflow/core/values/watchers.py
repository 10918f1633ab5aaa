"""`AssetWatcher`, a name for something outside that updates an asset; and `WebhookTrigger`, for what others post."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Literal, cast

from assetflow.core.json_data import MAX_KEY_LENGTH, check_key
from assetflow.core.values.addresses import (
    RULE,
    Address,
    PrefectBlock,
    address_from_json,
    is_variable,
    looks_secret,
    refuse_password,
    variables_of,
)
from assetflow.core.values.table_triggers import DeltaTableTrigger, IcebergTableTrigger, SQLTrigger
from assetflow.core.values.triggers import FileTrigger, Format, MessageQueueTrigger, Trigger, check_reading
from assetflow.errors import InvalidEvent, InvalidWatcher, not_a

Signs = Literal["standard", "github"]


@dataclass(frozen=True)
class WebhookTrigger(Trigger):
    """Signed messages that others post to `/hooks/{watcher}` of `assetflow server start`, each of which is an update.

    >>> from assetflow import Asset, AssetWatcher
    >>> from assetflow.watchers import WebhookTrigger
    >>> pushes = WebhookTrigger("${GITHUB_SECRET}", signs="github", filter={"ref": "refs/heads/main"})
    >>> code = Asset("https://github.com/shop/models", watchers=[AssetWatcher("pushes", pushes)])

    A message is answered after its update is recorded. Contract 10.2, 10.5, 10.8.

    Parameters:
        secret: what messages are signed with: `"${VARIABLE}"`, a variable of the server's process, or `block(...)`.
        signs: "standard" for Standard Webhooks, whose signature covers the id, the time and the body, or "github",
            whose signature covers the body.
        extra: the path of what becomes the update's extra, under the last name of the path; by default the whole
            message, under `payload`.
        partition_key: the path of the partition key.
        asset: the path of the URI of the updated asset, instead of the asset that has the watcher.
        alias: the path of the name of an alias through which the update comes.
        filter: paths and the values that they must have; other messages are counted.

    Raises:
        InvalidWatcher: the secret itself stands there, or a path or another option cannot work.
    """

    secret: Address
    _: KW_ONLY
    signs: Signs = "standard"
    extra: str | None = None
    partition_key: str | None = None
    asset: str | None = None
    alias: str | None = None
    filter: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    kind: ClassVar[str] = "webhook"

    def __post_init__(self) -> None:
        names = variables_of(self.secret) if isinstance(self.secret, str) else []
        if not isinstance(self.secret, PrefectBlock) and self.secret != "".join(f"${{{name}}}" for name in names[:1]):
            raise InvalidWatcher(
                "the secret of a webhook stands in the code, where everybody could read it who sees the deployment",
                fix='Write a variable of the process that serves, "${GITHUB_SECRET}", or block("secret/github")',
                rule=RULE,
            )
        if self.signs not in ("standard", "github"):
            raise InvalidWatcher(f"signs is {self.signs!r}", fix='Write "standard" or "github"', rule="10.8")
        check_reading(self)

    @property
    def format(self) -> Format:
        """Messages are JSON."""
        return "json"

    @property
    def within(self) -> timedelta | None:
        """Each message is a recording of its own."""
        return None

    @property
    def place(self) -> str:
        """The secret's name; the path on the server follows from the watcher's name."""
        return f"webhook {self.secret}"

    def describe(self) -> str:
        """Return the trigger in words: "webhook, signed as by GitHub"."""
        return "webhook, signed as by GitHub" if self.signs == "github" else "webhook, signed as by Standard Webhooks"


# The triggers whose messages are read by dotted paths.
MessageTrigger = MessageQueueTrigger | WebhookTrigger

_SPEC = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class ClassTrigger(Trigger):
    """A class of your own that watches something.

    >>> from assetflow import Asset, AssetWatcher
    >>> from assetflow.watchers import ClassTrigger
    >>> mails = ClassTrigger("shop.mails:Mails", options={"folder": "orders", "password": "${MAIL_PASSWORD}"})
    >>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-mails", mails)])

    The class has `async def watch(self, cursor)`, which yields a `Change` for each update. When the code after a
    `yield` goes on, the change is recorded. It runs in a process of its own, and is started anew with the cursor of the
    last recorded change whenever it fails. Contract 10.2, 10.4.

    Parameters:
        path: the module and the class: "shop.mails:Mails". The process that watches has to be able to import it.
        options: the arguments of the class, as JSON. A secret among them is refused: write `"${MAIL_PASSWORD}"`, a
            variable of the process that watches.

    Raises:
        InvalidWatcher: the path does not name a class in a module, or an option is a secret or is not JSON.
    """

    path: str
    _: KW_ONLY
    options: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    kind: ClassVar[str] = "class"

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or not _SPEC.fullmatch(self.path):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidWatcher(f"{self.path!r} does not name a class in a module", fix='Write "shop.mails:Mails"')
        try:
            json.dumps(self.options, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidWatcher(f"the options are not JSON: {error}", fix="Use texts, numbers and lists") from error
        for name, value in self.options.items():
            if isinstance(value, str):
                refuse_password(value)
            if looks_secret(name) and not (isinstance(value, str) and is_variable(value)):
                raise InvalidWatcher(
                    f"the option {name} is a secret, which everybody could read who sees the deployment",
                    fix=f'Write it as a variable: {{"{name}": "${{SECRET}}"}}',
                    rule="10.1",
                )

    @property
    def place(self) -> str:
        """The class with its options."""
        return f"{self.path} {json.dumps(self.options, sort_keys=True)}"

    def describe(self) -> str:
        """Return the trigger in words: "class shop.mails:Mails"."""
        return f"class {self.path}"


@dataclass(frozen=True)
class UnreadableTrigger(Trigger):
    """A stored trigger that this program cannot read: a later one wrote it, or a package with its broker is missing.

    Attributes:
        data: what is stored.
        error: why it cannot be read.
    """

    data: Mapping[str, object] = field(hash=False)
    error: InvalidWatcher = field(hash=False, compare=False)
    kind: ClassVar[str] = "unreadable"

    @property
    def place(self) -> str:
        """The stored text."""
        return json.dumps(self.data, sort_keys=True)

    def as_json(self) -> dict[str, object]:
        """Return what is stored."""
        return dict(self.data)

    def describe(self) -> str:
        """Return that it cannot be read, and its kind."""
        return f"{self.data.get('kind')}, which cannot be read here"


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


# What reads those fields of triggers that are other values in JSON.
_READERS: Mapping[str, Callable[[Any], object]] = {
    **dict.fromkeys(("url", "secret"), address_from_json),
    **dict.fromkeys(("every", "within"), _span),
}
_KINDS: Mapping[object, Callable[..., Trigger]] = {
    each.kind: each
    for each in (
        MessageQueueTrigger,
        FileTrigger,
        DeltaTableTrigger,
        IcebergTableTrigger,
        SQLTrigger,
        ClassTrigger,
        WebhookTrigger,
    )
}


def trigger_from_json(data: Mapping[str, object]) -> Trigger:
    """Return the trigger that `as_json` wrote.

    Raises:
        InvalidWatcher: it has a kind or an option that this version does not know, or an option that cannot work.
    """
    kind = data.get("kind")
    if kind not in _KINDS:
        raise InvalidWatcher(f"a stored watcher has the unknown kind {kind!r}", fix="Update assetflow", rule="10.1")
    try:
        given = {name: _READERS[name](value) if name in _READERS else value for name, value in data.items()}
        return _KINDS[kind](**{name: value for name, value in given.items() if name != "kind"})
    except (TypeError, KeyError) as error:
        raise InvalidWatcher(f"a stored watcher cannot be read: {error}", fix="Update assetflow") from error


def stored_trigger(data: Mapping[str, object]) -> Trigger:
    """Return the trigger that `as_json` wrote, or an `UnreadableTrigger` that says why it cannot be read."""
    try:
        return trigger_from_json(data)
    except InvalidWatcher as error:
        return UnreadableTrigger(data, error)


_FIX = 'Write AssetWatcher("orders-queue", MessageQueueTrigger("amqp://mq.internal", queue="orders"))'


@dataclass(frozen=True)
class AssetWatcher:
    """Something outside that updates an asset, such as messages of a queue, files or new versions of a table.

    >>> from assetflow import Asset, AssetWatcher, flow
    >>> from assetflow.watchers import MessageQueueTrigger
    >>> queue = MessageQueueTrigger("amqp://mq.internal", queue="orders")
    >>> orders = Asset("s3://shop/orders", watchers=[AssetWatcher("orders-queue", queue)])
    >>> @flow(schedule=orders)
    ... def report(): ...

    `assetflow watcher start` runs the watchers of all deployed flows. Contract 10.1.

    Parameters:
        name: the watcher's name, for people, of at most 250 characters. In all deployments it stands for one and the
            same trigger.
        trigger: what is watched: a trigger of `assetflow.watchers`.

    Raises:
        InvalidWatcher: the name is blank or too long, or `trigger` is not a trigger.
    """

    name: str
    trigger: Trigger

    def __post_init__(self) -> None:
        try:
            check_key(self.name)
        except InvalidEvent as error:
            raise InvalidWatcher(
                f"{self.name!r:.60} is not a name for a watcher, a text of 1 to {MAX_KEY_LENGTH} characters",
                fix=_FIX,
                rule="10.1",
            ) from error
        if not isinstance(cast(object, self.trigger), Trigger):
            raise not_a(InvalidWatcher, self.trigger, "a trigger", _FIX, where=f"watcher {self.name!r}", rule="10.1")

    def as_json(self) -> dict[str, object]:
        """Return the watcher as JSON."""
        return {"name": self.name, "trigger": self.trigger.as_json()}


def watcher_from_json(data: object) -> AssetWatcher:
    """Return the watcher that was written.

    Raises:
        InvalidWatcher: its trigger cannot be read by this version.
    """
    given = cast("Mapping[str, object]", data)
    return AssetWatcher(cast(str, given["name"]), trigger_from_json(cast("Mapping[str, object]", given["trigger"])))


def check_watchers(watchers: object, where: str) -> tuple[AssetWatcher, ...]:
    """Return the watchers of an asset. Contract 10.1.

    Raises:
        InvalidWatcher: a value is not a watcher, or two triggers have one name.
    """
    if not isinstance(watchers, list | tuple):
        raise InvalidWatcher(f"watchers is {watchers!r}", where=where, fix="Write watchers=[AssetWatcher(...)]")
    found = cast("list[object]", watchers)
    for each in found:
        if not isinstance(each, AssetWatcher):
            raise not_a(InvalidWatcher, each, "a watcher", _FIX, where=where, rule="10.1")
    named = cast("list[AssetWatcher]", found)
    if conflict := second_trigger(named):
        raise InvalidWatcher(
            f"the name {conflict!r} stands for two triggers", where=where, fix="Give each its own name", rule="10.1"
        )
    return tuple({each.name: each for each in named}.values())


def second_trigger(watchers: Iterable[AssetWatcher]) -> str | None:
    """Return a name that stands for two different triggers, or `None`. Contract 10.1."""
    known: dict[str, Trigger] = {}
    for each in watchers:
        if known.setdefault(each.name, each.trigger) != each.trigger:
            return each.name
    return None
