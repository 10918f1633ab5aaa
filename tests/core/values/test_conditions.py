"""Conditions as values: how they are written, read and evaluated."""

from typing import Any

import pytest

from assetflow.core.values.conditions import to_condition
from assetflow.errors import InvalidSchedule
from tests.core.world import A, B


@pytest.mark.parametrize("value", ["s3://b/a", 5, None, {A}, object()])
def test_what_is_no_condition_is_refused(value: Any) -> None:
    with pytest.raises(InvalidSchedule, match="Asset"):
        to_condition(value)


def test_python_words_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="orders & customers"):
        bool(A and B)
