"""What an update may hold: what is refused is named by its path, and what only comes along is made to fit."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import numpy
import pytest

from assetflow.core.explain.what_if import RunToStart, WhatIf
from assetflow.core.json_data import check_json
from assetflow.core.shapes import as_json, as_text
from assetflow.errors import InvalidEvent


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


def nested(levels: int) -> Any:
    data: list[Any] = []
    for _ in range(levels - 1):
        data = [data]
    return data


@pytest.mark.rule("2.7")
@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"n": 2**63}, "extra.n is an integer beyond 64 bits; integers lie within ±9223372036854775807"),
        ({"files": [{}, {}, {}, {"size": 2**64}]}, "extra.files[3].size is an integer"),
        ({"rate": float("nan")}, "extra.rate is not JSON: it is NaN"),
        ({"rate": (0.5, float("inf"))}, "extra.rate[1] is not JSON: it is Infinity"),
        ({"f": "caf\udce9"}, "extra.f holds the lone surrogate U+DCE9"),
        ({"f": "a\0b"}, "extra.f holds the character NUL"),
        ({"a b": {"é": object()}}, r'extra["a b"]["\u00e9"] is not JSON: it is of the type object'),
        ({"x": {"\udce9": 1}}, r'extra.x has the key "\udce9", which is not valid text'),
        ({"x": {(1, 2): 1}}, "extra.x is not JSON: it has a key that is a tuple"),
        ({float("nan"): 1}, "the key of extra is not JSON: it is NaN"),
        ({"x": {1: "a", "1": "b"}}, 'extra.x has two keys that both become "1"'),
        ({"x": Decimal("1.5")}, "extra.x is not JSON: it is of the type Decimal"),
        ({"x": numpy.float32("nan")}, "extra.x is not JSON: it is NaN"),
        ({"x": PurePosixPath("a\0b")}, "extra.x holds the character NUL"),
        ({"x": nested(50)}, "is nested more than 50 levels deep"),
    ],
)
def test_what_is_refused_is_named(data: Any, told: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        check_json(data, "extra", where="s3://shop/orders")
    error = caught.value
    assert told in error.message
    assert (error.where, error.rule) == ("s3://shop/orders", "2.7")
    assert error.fix
    str(error).encode()


@pytest.mark.parametrize(
    ("data", "plain"),
    [
        ({"n": [2**63 - 1, -(2**63) + 1, 0.5, True, None]}, {"n": [2**63 - 1, -(2**63) + 1, 0.5, True, None]}),
        ({1: "a", None: "b", False: "c", 0.5: "d"}, {"1": "a", "null": "b", "false": "c", "0.5": "d"}),
        ({"t": (1, 2), "c": Colour.RED, "s": Size.LARGE}, {"t": [1, 2], "c": "red", "s": 3}),
        (
            {"rows": numpy.int64(3), "rate": numpy.float32(0.5), "file": PurePosixPath("/lake/a"), "id": UUID(int=1)},
            {"rows": 3, "rate": 0.5, "file": "/lake/a", "id": "00000000-0000-0000-0000-000000000001"},
        ),
        (
            {"day": date(2026, 1, 2), "at": datetime(2026, 1, 2, 3, tzinfo=UTC)},
            {"day": "2026-01-02", "at": "2026-01-02T03:00:00+00:00"},
        ),
        ({"x": nested(49)}, {"x": nested(49)}),
        ({"f": "café 😀 \x1b\ufffd"}, {"f": "café 😀 \x1b\ufffd"}),
    ],
)
def test_what_is_accepted_becomes_plain_json(data: Any, plain: Any) -> None:
    found = check_json(data, "extra")
    assert found == plain
    # Of the types that JSON has, and not of others that equal them.
    assert repr(found) == repr(json.loads(json.dumps(found)))


def test_a_lone_surrogate_leaves_as_it_came() -> None:
    fact = WhatIf((RunToStart("a\ud800b", None, 1),))
    assert json.loads(as_text(WhatIf, fact)) == as_json(fact)
    assert b"\\ud800" in as_text(WhatIf, fact)
