"""`WebhookTrigger`: what others post to the server is an update. Contract 10.2, 10.8."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import ClassVar, Literal

from assetflow.core.values.addresses import (
    RULE,
    Address,
    PrefectBlock,
    is_variable,
    refuse_password,
    variables_of,
)
from assetflow.core.values.redaction import looks_secret
from assetflow.core.values.triggers import Format, MessageQueueTrigger, Trigger, check_reading
from assetflow.errors import InvalidWatcher

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
