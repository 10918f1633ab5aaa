"""`emit` refuses calls that cannot mean anything, before it sends anything."""

from __future__ import annotations

import pytest
import respx

from assetflow import emit
from assetflow.errors import InvalidCall

NO_ADDRESS = r"emit\(api_key=\.\.\.\) needs to=.*Write to="


@respx.mock
def test_an_api_key_without_an_address_is_refused() -> None:
    with pytest.raises(InvalidCall, match=NO_ADDRESS):
        emit("s3://shop/orders", api_key="secret")
