"""A small shop in a ledger: what the tests of the commands look at."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4, uuid5

from assetflow.core.partitions import DayWindow, PartitionMapper, RollupMapper, StartOfDayMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.schedule_values import PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from tests.ledger.write.test_kept import BOARD, CORE, RAW, Place, kept

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERS = Asset("s3://lake/orders", name="orders", group="shop")
CUSTOMERS = Asset("s3://lake/customers", name="customers", group="shop")
HOURLY = Asset("s3://lake/hourly", name="hourly")
BY_DAY = RollupMapper(upstream_mapper=StartOfDayMapper(), window=DayWindow())
ROLLED_UP = PartitionedAssetTimetable(assets=HOURLY, default_partition_mapper=BY_DAY)


def deploy(
    ledger: Ledger,
    name: str,
    schedule: object,
    *,
    produces: tuple[Asset, ...] = (),
    now: datetime = NOON,
    **options: Any,
) -> Consumer:
    declaration = FlowDeclaration(ConsumerOptions(to_schedule(schedule), **options), produces=produces)
    deployment = uuid5(UUID(int=0), name)
    return ledger.writer.consumers.deploy(
        name, deployment, uuid4(), declaration_to_text(declaration), False, False, now
    )[0]


def update(ledger: Ledger, asset: Asset, minute: int, key: str | None = None, **fields: Any) -> list[Decision]:
    """One update, so many minutes after noon; its id comes from the minute."""
    moment = NOON + timedelta(minutes=minute)
    fields = {"origin": Origin("api")} | fields
    event = AssetEvent(event_id(minute), asset, moment, partition_key=key, **fields)
    return ledger.writer.events.record([Recording(event.id, (event,))], moment)[0][1]


def raw_core_board(
    ledger: Ledger, now: datetime, mapper: PartitionMapper | None = None, keys: Sequence[str | None] = (None,)
) -> Place:
    """Flows that keep raw → core → board up to date, and have done so for these keys."""
    place = Place(ledger, now)
    catchup = "latest" if mapper is None else "none"
    place.deploy("core/shop", kept([RAW], [CORE], mapper=mapper, catchup=catchup))
    place.deploy("board/shop", kept([CORE], [BOARD], mapper=mapper, catchup=catchup))
    for key in keys:
        (core,) = place.update(RAW, key)
        (board,) = place.run("core/shop", core, CORE)
        place.run("board/shop", board, BOARD)
    return place


def event_id(minute: int) -> UUID:
    return uuid5(UUID(int=0), f"event {minute}")
