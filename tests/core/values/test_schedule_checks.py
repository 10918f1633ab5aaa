"""What is refused where a schedule is written: it could be written down, and would never work as it is meant."""

from typing import Any

import pytest

from assetflow import Asset, PartitionedAssetTimetable
from assetflow.core.values.conditions import to_condition
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import check_schedule
from assetflow.errors import AssetflowError, InvalidPartition, InvalidSchedule, NameTaken
from assetflow.partitions import (
    ChainMapper,
    DayWindow,
    FanOutMapper,
    IdentityMapper,
    MinimumCount,
    ProductMapper,
    RollupMapper,
    StartOfDayMapper,
    StartOfHourMapper,
    WaitForAll,
    WeekWindow,
)
from tests.core.world import A, B

ORDERS, CUSTOMERS = Asset("s3://shop/orders", name="orders"), Asset("s3://shop/customers", name="customers")


def check(value: Any) -> None:
    check_schedule(to_schedule(value))


def partitioned(assets: Any, *targets: Any) -> PartitionedAssetTimetable:
    return PartitionedAssetTimetable(assets=assets, partition_mapper_config=dict.fromkeys(targets, StartOfDayMapper()))


def test_a_mapper_for_an_asset_that_is_not_in_the_schedule() -> None:
    for target in (CUSTOMERS, Asset.ref(name="order"), Asset.ref(uri=CUSTOMERS.uri)):
        with pytest.raises(InvalidSchedule) as caught:
            check(partitioned(ORDERS, target))
        assert repr(target) in caught.value.message
        assert "Add it to assets=" in caught.value.fix


@pytest.mark.parametrize(
    "make",
    [
        lambda wrong: PartitionedAssetTimetable(assets=ORDERS, default_partition_mapper=wrong),
        lambda wrong: PartitionedAssetTimetable(assets=ORDERS, partition_key_mapper=wrong),
        lambda wrong: PartitionedAssetTimetable(assets=ORDERS, partition_mapper_config={ORDERS: wrong}),
        lambda wrong: ProductMapper(IdentityMapper(), wrong),
        lambda wrong: ChainMapper(wrong, IdentityMapper()),
        lambda wrong: RollupMapper(upstream_mapper=wrong, window=DayWindow()),
        lambda wrong: FanOutMapper(upstream_mapper=wrong, window=DayWindow()),
        lambda wrong: FanOutMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow(), downstream_mapper=wrong),
    ],
)
def test_a_mapper_that_is_not_one(make: Any) -> None:
    for wrong, mend in ((StartOfDayMapper, "Write StartOfDayMapper(...)"), ("day", "StartOfDayMapper()"), (0, "0")):
        with pytest.raises(InvalidPartition) as caught:
            make(wrong)
        assert mend in str(caught.value)


BAD_FORMATS = [
    StartOfDayMapper(output_format="%Y-%Q"),
    StartOfDayMapper(output_format="%Y-%"),
    StartOfDayMapper(input_format="%Q"),
    StartOfDayMapper(input_format="%Y-W%V"),
    StartOfDayMapper(input_format="%d %d"),
]


@pytest.mark.parametrize("mapper", BAD_FORMATS)
@pytest.mark.parametrize(
    "inside",
    [
        lambda mapper: mapper,
        lambda mapper: ProductMapper(IdentityMapper(), mapper),
        lambda mapper: ChainMapper(ChainMapper(IdentityMapper(), mapper), IdentityMapper()),
        lambda mapper: RollupMapper(upstream_mapper=mapper, window=DayWindow(), wait_policy=MinimumCount(1)),
        lambda mapper: FanOutMapper(upstream_mapper=StartOfDayMapper(), window=WeekWindow(), downstream_mapper=mapper),
    ],
)
def test_a_format_that_stands_for_nothing_is_named(mapper: StartOfDayMapper, inside: Any) -> None:
    with pytest.raises(InvalidPartition) as caught:
        check(PartitionedAssetTimetable(assets=ORDERS, default_partition_mapper=inside(mapper)))
    assert mapper.input_format in caught.value.message or mapper.output_format in caught.value.message
    assert "%Y, %m, %d" in caught.value.fix


@pytest.mark.parametrize("value", ["s3://b/a", 5, None, {A}, object()])
def test_what_is_no_condition_is_refused(value: Any) -> None:
    with pytest.raises(InvalidSchedule, match="Asset"):
        to_condition(value)


def test_python_words_are_refused() -> None:
    with pytest.raises(InvalidSchedule, match="orders & customers"):
        bool(A and B)


@pytest.mark.parametrize(
    ("options", "mend"),
    [
        ({"window": DayWindow}, "Write DayWindow(...)"),
        ({"window": "day"}, "DayWindow()"),
        ({"wait_policy": WaitForAll}, "Write WaitForAll(...)"),
        ({"wait_policy": 3}, "MinimumCount(20)"),
    ],
)
def test_a_window_or_policy_that_is_not_one(options: Any, mend: str) -> None:
    with pytest.raises(InvalidPartition) as caught:
        RollupMapper(**{"upstream_mapper": StartOfHourMapper(), "window": DayWindow(), **options})
    assert mend in str(caught.value)


def test_one_name_for_two_uris() -> None:
    other = Asset("s3://shop/other", name="orders")
    for wrong in (ORDERS & other, ORDERS & Asset("orders")):
        with pytest.raises(NameTaken, match="'orders'") as caught:
            check(wrong)
        assert "another name" in caught.value.fix
    check(ORDERS | Asset("s3://shop/orders", name="more"))


@pytest.mark.parametrize("extra", [{"x": object()}, {"x": {1, 2}}, {"x": float("nan")}, {"x": b""}, [1], "x"])
def test_an_extra_that_is_not_json(extra: Any) -> None:
    with pytest.raises(AssetflowError) as caught:
        Asset("s3://shop/orders", extra=extra)
    assert "s3://shop/orders" in str(caught.value)
    assert caught.value.fix
