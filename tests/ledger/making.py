"""Short forms for tests: assets, recordings, declarations and consumers."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4, uuid5

from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import AssetEvent, Origin, Recording
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
A, B, C = (Asset(f"s3://lake/{name}") for name in "abc")


def event(asset: Asset = A, **fields: Any) -> AssetEvent:
    return AssetEvent(**({"id": uuid4(), "asset": asset, "occurred": NOW, "origin": Origin("api")} | fields))


def recording(*events: AssetEvent) -> Recording:
    return Recording(uuid4(), events)


def update(*assets: Asset, **fields: Any) -> Recording:
    return recording(*(event(asset, **fields) for asset in assets))


def declared(schedule: object, **options: Any) -> str:
    return declaration_to_text(FlowDeclaration(ConsumerOptions(to_schedule(schedule), **options)))


def deploy(
    ledger: Ledger, schedule: object, name: str = "flow/one", deployment_id: UUID | None = None, **options: Any
) -> Consumer:
    text = declared(schedule, **options)
    return ledger.writer.consumers.deploy(name, deployment_id or uuid4(), uuid4(), text, False, False, NOW)[0]


def deploy_maker(
    ledger: Ledger,
    schedule: object,
    makes: Iterable[Asset],
    reads: Iterable[Asset],
    name: str,
    code_version: str | None = None,
    at: datetime = NOW,
) -> Consumer:
    """Deploy a flow that makes each of some assets from all of others; the same name is the same deployment."""
    outputs = tuple(Output(Token("uri", each.uri), code_version=code_version) for each in makes)
    declaration = FlowDeclaration(ConsumerOptions(to_schedule(schedule)), tuple(makes), tuple(reads), outputs)
    text, deployment = declaration_to_text(declaration), uuid5(UUID(int=8), name)
    return ledger.writer.consumers.deploy(name, deployment, uuid4(), text, False, False, at)[0]
