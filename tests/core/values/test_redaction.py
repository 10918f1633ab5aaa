"""What is not shown, what is shown as an escape, and how large an extra from outside may be."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from assetflow.core.values.addresses import REDACTED, looks_secret, redact, redacted, without_passwords
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin, SourceFlowRun
from assetflow.core.values.words import shown

SECRETS = (
    "password DB_PASSWORD passwd clientSecret api-key X-Api-Key apiKey access_token Authorization "
    "sig pwd cookie aws_secret_access_key private-key credentials X-Amz-Signature"
)


@pytest.mark.parametrize("key", SECRETS.split())
def test_secret_keys(key: str) -> None:
    assert looks_secret(key)
    assert redact({key: "x"}) == {key: REDACTED}


def test_what_is_below_is_redacted_and_the_original_stays() -> None:
    data = {"a": [{"token": {"b": 1}}, (1, {"secret": [1]})], "none": {"password": None}, "max_tokens": 7}
    redacted = {"a": [{"token": REDACTED}, [1, {"secret": REDACTED}]], "none": {"password": None}, "max_tokens": 7}
    assert redact(data) == redacted
    assert data["a"][0] == {"token": {"b": 1}}  # pyright: ignore[reportIndexIssue]
    assert redact("x") == "x"


def test_an_event_is_shown_without_secrets() -> None:
    run = SourceFlowRun(uuid4(), parameters={"db": {"password": "x"}})
    asset = Asset("s3://b/a", extra={"token": "x", "team": "y"})
    event = AssetEvent(uuid4(), asset, datetime.now(UTC), Origin("task", flow_run=run), {"secret": "x", "rows": 1})
    shown = redacted(event)
    assert (shown.extra, shown.asset.extra) == ({"secret": REDACTED, "rows": 1}, {"token": REDACTED, "team": "y"})
    assert shown.source_flow_run is not None
    assert shown.source_flow_run.parameters == {"db": {"password": REDACTED}}
    assert event.extra == {"secret": "x", "rows": 1}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://u:secret@host:4200/api", "http://host:4200/api"),
        ("http://token@host/api", "http://host/api"),
        ("wss://u:p%40q@[::1]:4200/x", "wss://[::1]:4200/x"),
        ("no answer from 'https://u:s@a/api' and http://u:s@b", "no answer from 'https://a/api' and http://b"),
        ("postgresql://u:s@host/db", "postgresql://host/db"),
        ("abfss://lake@account.dfs.core.windows.net/orders", "abfss://lake@account.dfs.core.windows.net/orders"),
        ("s3://bucket/user@mail.org/x:y@z", "s3://bucket/user@mail.org/x:y@z"),
        ("http://host/path?mail=a@b.org", "http://host/path?mail=a@b.org"),
        ('{"url":"http://host","mail":"a:b@c"}', '{"url":"http://host","mail":"a:b@c"}'),
    ],
)
def test_addresses_are_shown_without_passwords(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


INVISIBLE = "\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *((f"a{each}b", f"a\\u{ord(each):04x}b") for each in INVISIBLE),
        ("a\x1b[31mb\n\U000e0001", "a\\x1b[31mb\\n\\U000e0001"),
        ("Grüße, 数据 – s3://lake/ä", "Grüße, 数据 – s3://lake/ä"),
        (7, "7"),
    ],
)
def test_what_cannot_be_seen_becomes_an_escape(given: object, expected: str) -> None:
    assert shown(given) == expected
    assert shown("a\nb\x07", keep="\n") == "a\nb\\x07"
