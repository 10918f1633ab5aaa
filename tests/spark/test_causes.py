"""The reason of an error of Spark, in one line."""

from __future__ import annotations

import pytest

from assetflow.spark.watch import reason_of


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "ValueError: "),
        ("first\nsecond", "ValueError: first"),
        ("Traceback (most recent call last):\n", "ValueError: Traceback (most recent call last):"),
        (
            'x: Traceback (most recent call last):\n  File "/flows/a.py", line 7, in f\n    g()\n'
            '  File "/v/site-packages/lib/b.py", line 9, in g\n    raise KeyError("k")\nKeyError: \'k\'\n SQLSTATE: 1',
            "KeyError: 'k' (/flows/a.py:7)",
        ),
        (
            '[DIVIDE_BY_ZERO] By zero.\n== DataFrame ==\n"__truediv__" was called from\n/flows/a.py:3\n',
            "ValueError: [DIVIDE_BY_ZERO] By zero. (/flows/a.py:3)",
        ),
        (
            "An error occurred while calling o7.save.\n: org.apache.spark.SparkException: [X] No.\n\tat org.a(B)",
            "SparkException: [X] No.",
        ),
    ],
)
def test_the_reason_of_an_error_is_one_line(text: str, reason: str) -> None:
    assert reason_of(ValueError(text)) == reason
