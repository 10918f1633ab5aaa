"""The check of partition keys (contract 2.5)."""

from __future__ import annotations

from assetflow.core.json_data import is_plain_text
from assetflow.errors import InvalidEvent

MAX_KEY_LENGTH = 250
# A URI and two keys fit into a row of an index of Postgres.
MAX_KEY_BYTES = 575


def check_key(key: object) -> str:
    """Return a partition key, unchanged. Contract 2.5.

    Raises:
        InvalidEvent: the key is not valid text, is blank, or is longer than 250 characters or 575 bytes.
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
    if len(key.encode(errors="surrogatepass")) > MAX_KEY_BYTES:
        raise InvalidEvent(
            f"The partition key {key[:40]!r}… has more than {MAX_KEY_BYTES} bytes", fix="Shorten it.", rule="2.5"
        )
    if not is_plain_text(key):
        raise InvalidEvent(
            f"The partition key {key!a} is not valid text", fix="Leave out NUL and lone surrogates.", rule="2.5"
        )
    return key
