"""The flows of a shop: from what tills, warehouses and partners deliver to the dashboards."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assetflow import (
    Asset,
    AtLeast,
    Eager,
    FreshnessPolicy,
    Lazy,
    TriggeringAssetEvents,
    asset,
    triggering_asset_events,
)
from assetflow.partitions import IdentityMapper, TimeWindowMapper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LAKE = Path(os.environ.get("ASSETFLOW_HOME", "/tmp")) / "lake"
# While this file is there, a price list lacks lead times.
NO_LEAD_TIME = LAKE / "no-lead-time"


def source(name: str, group: str, freshness: FreshnessPolicy | None = None) -> Asset:
    """Return an asset that no flow here makes."""
    return Asset(f"s3://shop-landing/{group}/{name}", name=name, group=group, freshness=freshness)


payments = source("payments", "finance")
refunds = source("refunds", "finance")
exchange_rates = source("exchange_rates", "finance", FreshnessPolicy(timedelta(minutes=1)))
partner_settlements = source("partner_settlements", "finance")
ad_spend = source("ad_spend", "marketing")
newsletter_opens = source("newsletter_opens", "marketing")
web_clicks = source("web_clicks", "web")
warehouse_stock_frankfurt = source("warehouse_stock_frankfurt", "logistics")
warehouse_stock_rotterdam = source("warehouse_stock_rotterdam", "logistics")
supplier_price_lists = source("supplier_price_lists", "logistics")
support_tickets = source("support_tickets", "support")
product_catalogue = source("product_catalogue", "sales")


@asset(uri=(LAKE / "orders").as_uri(), group="sales")
def orders(spark: SparkSession, rows: int = 11_800) -> DataFrame:
    return spark.range(rows).selectExpr("id", "id % 97 AS customer", "id * 0.01 AS total")


@asset(uri=(LAKE / "customers").as_uri(), group="sales")
def customers(spark: SparkSession, rows: int = 2_400) -> DataFrame:
    return spark.range(rows).selectExpr("id", "concat('customer ', id) AS name")


@asset(uri="s3://shop/sales_report", group="sales", schedule=orders & customers)
def sales_report() -> None: ...


@asset(uri="s3://shop/orders_clean", group="sales", schedule=orders)
def orders_clean() -> None: ...


@asset(uri="s3://shop/customers_clean", group="sales", schedule=customers)
def customers_clean() -> None: ...


@asset(uri="s3://shop/payments_matched", group="finance", schedule=orders_clean & payments)
def payments_matched(triggering_asset_events: TriggeringAssetEvents = triggering_asset_events) -> None:
    for event in triggering_asset_events[payments]:
        float(str(event.extra["total"]))


@asset(
    uri="s3://shop/stock_by_warehouse",
    group="logistics",
    schedule=warehouse_stock_frankfurt | warehouse_stock_rotterdam,
)
def stock_by_warehouse() -> None: ...


days = TimeWindowMapper("hour", "day")


@asset(
    uri="s3://shop/clicks_by_day", group="web", schedule=Eager(partition_mapper_config={web_clicks: days}, lookback=5)
)
def clicks_by_day(web_clicks: Asset, partition_key: str) -> None: ...


@asset(
    uri="s3://shop/sessions_by_day",
    group="web",
    schedule=Eager(partition_mapper_config={clicks_by_day: IdentityMapper()}, lookback=5),
)
def sessions_by_day(clicks_by_day: Asset, partition_key: str) -> None: ...


@asset(uri="s3://shop/tickets_by_customer", group="support", schedule=support_tickets & customers_clean)
def tickets_by_customer() -> None: ...


@asset(uri="s3://shop/support_load", group="support", schedule=support_tickets.times(5))
def support_load() -> None: ...


@asset(uri="s3://shop/refunds_by_reason", group="finance", schedule=refunds)
def refunds_by_reason() -> None: ...


@asset(uri="s3://shop/open_invoices", group="finance", schedule=payments_matched)
def open_invoices() -> None: ...


@asset(
    uri="s3://shop/month_close",
    group="finance",
    schedule=payments_matched & refunds & partner_settlements,
    deadline=timedelta(seconds=30),
)
def month_close() -> None: ...


@asset(uri="s3://shop/revenue_by_day", group="finance", schedule=Eager())
def revenue_by_day(orders_clean: Asset) -> None: ...


@asset(uri="s3://shop/revenue_by_country", group="finance", schedule=Eager())
def revenue_by_country(revenue_by_day: Asset, customers_clean: Asset, exchange_rates: Asset) -> None: ...


@asset(uri="s3://shop/margin_by_product", group="finance", schedule=Eager())
def margin_by_product(orders_clean: Asset, supplier_price_lists: Asset, product_catalogue: Asset) -> None: ...


@asset(uri="s3://shop/customer_lifetime_value_by_acquisition_channel_and_country", group="marketing", schedule=Eager())
def customer_lifetime_value_by_acquisition_channel_and_country(
    customers_clean: Asset, revenue_by_country: Asset, ad_spend: Asset
) -> None: ...


@asset(
    uri="s3://shop/return_on_ad_spend_by_campaign",
    group="marketing",
    schedule=AtLeast(2, ad_spend, newsletter_opens, revenue_by_day),
)
def return_on_ad_spend_by_campaign() -> None: ...


@asset(uri="s3://shop/newsletter_audience", group="marketing", schedule=customers_clean, cooldown=timedelta(minutes=30))
def newsletter_audience() -> None: ...


@asset(
    uri="s3://shop/stock_forecast",
    group="logistics",
    schedule=(stock_by_warehouse & orders_clean).within(timedelta(hours=6)),
)
def stock_forecast() -> None: ...


@asset(uri="s3://shop/reorder_proposals", group="logistics", schedule=Eager())
def reorder_proposals(stock_forecast: Asset, supplier_price_lists: Asset) -> None:
    if NO_LEAD_TIME.exists():
        raise ValueError(f"3 articles of {stock_forecast.name} have no lead time in {supplier_price_lists.name}")


@asset(uri="s3://shop/churn_risk", group="ml", schedule=tickets_by_customer & revenue_by_day)
def churn_risk() -> None: ...


@asset(uri="s3://shop/recommendations", group="ml", schedule=orders_clean & customers_clean)
def recommendations() -> None:
    raise ConnectionError("model endpoint answers 503")


@asset(
    uri="s3://shop/sales_dashboard",
    group="dashboards",
    schedule=Lazy(),
    freshness=FreshnessPolicy(timedelta(hours=2), warn_after=timedelta(hours=1)),
)
def sales_dashboard(sales_report: Asset, revenue_by_country: Asset, margin_by_product: Asset) -> None: ...


@asset(
    uri="s3://shop/marketing_dashboard", group="dashboards", schedule=return_on_ad_spend_by_campaign | newsletter_opens
)
def marketing_dashboard() -> None: ...


@asset(uri="s3://shop/warehouse_dashboard", group="dashboards", schedule=Eager())
def warehouse_dashboard(stock_forecast: Asset, reorder_proposals: Asset) -> None: ...


@asset(
    uri="s3://shop/board",
    group="dashboards",
    schedule=Eager(),
    freshness=FreshnessPolicy(timedelta(days=1), deadline="0 9 * * *", timezone="Europe/Berlin"),
)
def board(revenue_by_country: Asset, margin_by_product: Asset, open_invoices: Asset) -> None: ...
