"""What stands for an asset: the object of `@asset`, with the parameters of its function, and an asset of Prefect."""

import inspect
from typing import Any

import pytest
from prefect.assets import Asset as PrefectAsset
from prefect.assets import AssetProperties

from assetflow import Asset, asset
from assetflow.core.values.schedule_values import to_schedule
from assetflow.errors import InvalidAsset, InvalidFlow, InvalidSchedule
from assetflow.prefect_io.names import EVENTS_PARAMETER
from assetflow.types import AssetDefinition

PLANES = Asset("s3://lake/planes")


@asset(uri="s3://lake/orders", group="shop", extra={"team": "sales"})
def orders() -> int:
    return 3


@asset
def customers() -> None: ...


@asset(schedule=orders & customers)
def report(orders: Asset, customers: Asset, top: int = 10) -> None: ...


def test_a_function_becomes_a_flow_with_one_outlet() -> None:
    assert isinstance(orders, AssetDefinition)
    made = orders.asset
    assert (made.uri, made.name, made.group, made.extra) == ("s3://lake/orders", "orders", "shop", {"team": "sales"})
    assert (customers.asset.uri, customers.asset.name) == ("customers", "customers")
    assert orders.declaration.produces == (made,)
    assert orders.name == "orders"


def test_parameters_without_a_default_are_inlets_and_the_others_belong_to_the_flow() -> None:
    assert report.declaration.reads == (orders.asset, customers.asset)
    assert list(inspect.signature(report.fn).parameters) == ["top", EVENTS_PARAMETER]


@pytest.mark.parametrize("name", ["self", "context"])
def test_reserved_names_are_refused(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def made({name}): ...\ndef {name}(): ...", namespace)
    with pytest.raises(InvalidAsset, match=rf"parameter '{name}'") as parameter:
        asset(namespace["made"])
    with pytest.raises(InvalidAsset, match=name):
        asset(namespace[name])
    assert parameter.value.rule == "1.5"


def test_errors_of_wrong_calls_say_what_to_write() -> None:
    with pytest.raises(InvalidFlow, match="has no outlets"):
        asset.multi(outlets=[])
    with pytest.raises(InvalidFlow, match="Put @asset above a def"):
        asset(3)  # type: ignore[call-overload]
    with pytest.raises(InvalidSchedule, match=r"Asset\('orders'\)"):
        asset(schedule="orders")(lambda: None)


URI = "postgres://dev:5432/jaffle/orders"
PREFECTS = PrefectAsset(key="postgres://dev/jaffle/orders", properties=AssetProperties(name="orders"))


@pytest.mark.rule("1.2")
def test_an_asset_of_prefect_stands_for_its_key_in_schedules() -> None:
    orders = Asset(URI, name="orders")
    for given, meant in [
        (PREFECTS, orders),
        ([PREFECTS, PLANES], orders & PLANES),
        (PREFECTS | PLANES, orders | PLANES),
        (PLANES & PREFECTS, PLANES & orders),
    ]:
        condition = to_schedule(given).condition
        assert condition is not None
        assert condition == meant
        assert condition.describe() == meant.describe()
