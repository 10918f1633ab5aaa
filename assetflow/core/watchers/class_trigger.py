"""The trigger of a class of your own, which runs in a process of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from assetflow.core.secret_names import looks_secret
from assetflow.core.values.addresses import is_variable, refuse_password
from assetflow.core.watchers.options import changed_fields
from assetflow.errors import InvalidWatcher

_SPEC = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class ClassTrigger:
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

    def as_json(self) -> dict[str, object]:
        """Return the trigger as JSON, without what is as by default."""
        return {"kind": self.kind, **changed_fields(self, options=dict(self.options))}

    def describe(self) -> str:
        """Return the trigger in words: "class shop.mails:Mails"."""
        return f"class {self.path}"
