"""A stored trigger that cannot be read here, so that it fails alone and the others go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from assetflow.errors import InvalidWatcher


@dataclass(frozen=True)
class UnreadableTrigger:
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
