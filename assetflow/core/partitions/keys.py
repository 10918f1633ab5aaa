"""What a partition key may be (contract 2.5)."""

from __future__ import annotations

from assetflow.errors import InvalidEvent

MAX_KEY_LENGTH = 250


def check_key(key: object) -> str:
    """The partition key, unchanged, if it may be one: text, not blank, at most 250 characters.

    Raises:
        InvalidEvent: it may not.
    """
    if not isinstance(key, str):
        raise InvalidEvent(
            f"The partition key {key!r} is a {type(key).__name__}", fix="Give a text, such as str(key).", rule="2.5"
        )
    if not key.strip():
        raise InvalidEvent("The partition key is blank", fix="Give at least one visible character.", rule="2.5")
    if len(key) > MAX_KEY_LENGTH:
        raise InvalidEvent(
            f"The partition key {key[:40]!r}… has {len(key)} characters, the limit is {MAX_KEY_LENGTH}",
            fix="Shorten it.",
            rule="2.5",
        )
    return key
