"""Signatures of webhooks agree with the library of Standard Webhooks (contract 10.8)."""

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from assetflow.core.watchers.intake import check_signature, message_id
from assetflow.errors import WrongSignature

KEYS = st.binary(min_size=24, max_size=64)
NUMBERS = st.text("abc_-019", min_size=1, max_size=20)
BODIES = st.dictionaries(st.text(max_size=5), st.integers()).map(json.dumps)


def secret_of(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


def signed(secret: str, number: str, moment: datetime, body: str) -> dict[str, str]:
    signature = Webhook(secret).sign(number, moment, body)
    return {
        "webhook-id": number,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": f"v1,{base64.b64encode(b'other').decode()} {signature}",
    }


@given(KEYS, NUMBERS, BODIES)
def test_rule_10_8_what_the_library_signs_is_taken(key: bytes, number: str, body: str) -> None:
    now = datetime.now(UTC)
    headers = signed(secret_of(key), number, now, body)
    assert message_id("standard", headers, now) == number
    check_signature("standard", headers, body.encode(), secret_of(key))


@given(KEYS, NUMBERS, BODIES, st.sampled_from(["key", "id", "body"]))
def test_rule_10_8_what_the_library_refuses_is_refused(key: bytes, number: str, body: str, wrong: str) -> None:
    headers, secret = signed(secret_of(key), number, datetime.now(UTC), body), secret_of(key)
    Webhook(secret).verify(body, headers)
    if wrong == "key":
        secret = secret_of(key[::-1] + b"x")
    elif wrong == "id":
        headers["webhook-id"] += "x"
    else:
        body += " "
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, headers)
    with pytest.raises(WrongSignature):
        check_signature("standard", headers, body.encode(), secret)
