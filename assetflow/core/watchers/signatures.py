"""Signatures of webhooks: HMAC-SHA256 as Standard Webhooks and GitHub write it. Contract 10.8."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256

from assetflow.core.values.other_triggers import Signs
from assetflow.errors import InvalidWatcher, WrongSignature

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
