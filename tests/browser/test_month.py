"""A month is backfilled. On a shared start page, its decisions would stand above everything else."""

from datetime import timedelta

import pytest
from playwright.sync_api import expect

from assetflow.core.partitions import StartOfDayMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.schedule_values import PartitionedAssetTimetable
from tests.browser.shown import Shown, violations
from tests.browser.site import update
from tests.cli.shop import ORDERS, deploy

pytestmark = [pytest.mark.long, pytest.mark.browser]


def test_a_month_is_backfilled(shown: Shown) -> None:
    days = Asset("s3://lake/by-day", name="by-day")
    by_day = StartOfDayMapper(input_format="%Y-%m-%d", output_format="%Y-%m-%d")
    schedule = PartitionedAssetTimetable(assets=ORDERS, default_partition_mapper=by_day)
    deploy(shown.ledger, "again/shop", schedule, produces=(days,))
    for number, key in enumerate(("2026-10-30", "2026-11-01", "2026-11-20")):
        update(shown.ledger, days, timedelta(seconds=-number), key)
    page = shown.drawn("/")
    page.get_by_role("link", name="by-day").first.click()
    page.get_by_role("link", name="November 2026").first.click()
    expect(page.locator("#plan")).to_contain_text("30 runs: 2 partitions updated before, 28 never.")
    page.get_by_role("button", name="Start 30 runs").click()
    expect(page.locator("main")).to_contain_text("0 of 30 runs done, 4 running.")
    assert violations(page) == []
