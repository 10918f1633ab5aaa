"""What is not shown, and how large an extra from outside may be."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from assetflow.core.assets import Asset
from assetflow.core.events import AssetEvent, Origin, SourceFlowRun
from assetflow.core.limits import check_limits
from assetflow.core.redaction import REDACTED, looks_secret, redact, redacted
from assetflow.errors import InvalidEvent, TooLarge


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "DB_PASSWORD",
        "passwd",
        "clientSecret",
        "api-key",
        "X-Api-Key",
        "apiKey",
        "access_token",
        "Authorization",
        "sig",
        "pwd",
        "cookie",
        "aws_secret_access_key",
        "private-key",
        "credentials",
        "X-Amz-Signature",
    ],
)
def test_secret_keys(key: str) -> None:
    assert looks_secret(key)
    assert redact({key: "x"}) == {key: REDACTED}


@pytest.mark.parametrize(
    "key", ["key", "partition_key", "design", "rows", "passed", "signal", "author", "pinned", "keys"]
)
def test_other_keys(key: str) -> None:
    assert redact({key: "x"}) == {key: "x"}


def test_what_is_below_is_redacted_and_the_original_stays() -> None:
    data = {"a": [{"token": {"b": 1}}, (1, {"secret": [1]})], "none": {"password": None}, "max_tokens": 7}
    assert redact(data) == {
        "a": [{"token": REDACTED}, [1, {"secret": REDACTED}]],
        "none": {"password": None},
        "max_tokens": 7,
    }
    assert data["a"][0] == {"token": {"b": 1}}  # pyright: ignore[reportIndexIssue]
    assert redact("x") == "x"


def test_depth_is_no_limit() -> None:
    deep: object = {"password": "x"}
    for _ in range(5000):
        deep = [deep]
    found = redact(deep)
    while isinstance(found, list):
        found = found[0]
    assert found == {"password": REDACTED}


def test_an_event_is_shown_without_secrets() -> None:
    run = SourceFlowRun(uuid4(), parameters={"db": {"password": "x"}})
    asset = Asset("s3://b/a", extra={"token": "x", "team": "y"})
    event = AssetEvent(uuid4(), asset, datetime.now(UTC), Origin("task", flow_run=run), {"secret": "x", "rows": 1})
    shown = redacted(event)

    assert (shown.extra, shown.asset.extra) == ({"secret": REDACTED, "rows": 1}, {"token": REDACTED, "team": "y"})
    assert shown.source_flow_run is not None
    assert shown.source_flow_run.parameters == {"db": {"password": REDACTED}}
    assert event.extra == {"secret": "x", "rows": 1}


def test_extras_from_outside_are_limited() -> None:
    deep: dict[str, object] = {}
    for _ in range(49):
        deep = {"a": deep}
    check_limits({"a": "x" * 65_000})
    check_limits(deep)
    with pytest.raises(InvalidEvent, match="levels"):
        check_limits({"a": {"b": deep}})
    with pytest.raises(TooLarge, match="bytes"):
        check_limits({"a": "é" * 33_000})
