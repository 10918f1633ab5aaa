"""Make events for the tests of authoring."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import AssetEvent, Origin

START = datetime(2026, 1, 1, tzinfo=UTC)


def event(number: int, asset: Asset | str = "s3://b/a", *aliases: str) -> AssetEvent:
    """Return the event with this number, which occurred `number` hours after `START`."""
    return AssetEvent(
        id=UUID(int=number),
        asset=Asset(asset) if isinstance(asset, str) else asset,
        occurred=START + timedelta(hours=number),
        origin=Origin("api"),
        extra={"number": number},
        aliases=aliases,
    )
