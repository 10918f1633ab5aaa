"""Names whose values are probably secrets."""

from __future__ import annotations

import re

# Parts of a key in lower case and without separators, as in `db_password`, `clientSecret`, `X-Api-Key`.
_SECRET = re.compile(
    r"passw|passphrase|secret|token|apikey|accesskey|privatekey|accountkey|signingkey|encryptionkey|credential|"
    r"authorization|cookie|xamz|connectionstring"
)
_SHORT = frozenset({"auth", "pwd", "sig", "signature", "pin", "bearer", "jwt", "sas"})
_SEPARATORS = re.compile(r"[^a-z0-9]+")


def looks_secret(key: str) -> bool:
    """Return True if the value under this key is probably a secret."""
    plain = _SEPARATORS.sub("", key.lower())
    return plain in _SHORT or _SECRET.search(plain) is not None
