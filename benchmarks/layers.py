"""A layered graph of Eager flows: each reads three tables of the layer above, the first layer reads sources.

Beside the layers stand tables with hourly keys, each made from a source of its own, and boards that all read one and
the same source. Everything is up to date at first.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID, uuid4, uuid5

from sqlalchemy import ColumnElement, Connection, Table, insert, literal, select

from assetflow import Eager
from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, Recording, SourceFlowRun
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from assetflow.ledger.sql.freshness_tables import ITEM, ITEM_VERSION, READING, TARGET_KEY

START = datetime(2026, 1, 1, tzinfo=UTC)
LAYERS = 10
INPUTS = 3
AT_ONCE = 500
FIRST = "1"
BY = Origin("api", by="benchmarks")
BY_KEY = IdentityMapper()


class Layers:
    """The assets and flows of the graph.

    Parameters:
        flows: how many flows without keys there are, in ten layers.
        hourly: how many flows with hourly keys there are.
        readers: how many flows read one and the same source.
    """

    def __init__(self, flows: int, hourly: int, readers: int) -> None:
        width = max(flows // LAYERS, INPUTS)
        self.layers = [[named(f"layer{depth}/{place:03}") for place in range(width)] for depth in range(LAYERS + 1)]
        self.hours = [named(f"hours/{place:03}") for place in range(hourly)]
        self.tables = [named(f"tables/{place:03}") for place in range(hourly)]
        self.shared = named("shared")
        self.boards = [named(f"boards/{place:03}") for place in range(readers)]
        self._made_by: dict[UUID, Asset] = {}

    @property
    def sources(self) -> list[Asset]:
        """The sources of the first layer."""
        return self.layers[0]

    @property
    def tables_and_sources(self) -> list[Asset]:
        """Everything that the flows of the layers read."""
        return [asset for layer in self.layers[:-1] for asset in layer]

    def deploy(self, ledger: Ledger, keys: int) -> None:
        """Deploy all flows after everything was made, so that nothing is owed.

        Parameters:
            keys: how many keys the hourly sources and tables have.
        """
        for layer in [*self.layers, [self.shared], self.boards]:
            record(ledger, layer)
        for made, reads in self._flows():
            self._deploy(ledger, Eager(), made, reads)
        for hours in (self.hours[:1], self.tables[:1]):
            record_keys(ledger, hours, keys)
        by_hour = [
            self._deploy(ledger, Eager(default_partition_mapper=BY_KEY), made, [reads])
            for made, reads in zip(self.tables, self.hours, strict=True)
        ]
        with ledger.transaction(START) as unit:
            for place, consumer in enumerate(by_hour[1:], 1):
                for copy, original in ((self.hours[place], self.hours[0]), (self.tables[place], self.tables[0])):
                    _copy(unit.connection, ITEM_VERSION, {"uri": (original.uri, copy.uri)})
                    _copy(unit.connection, ITEM, {"uri": (original.uri, copy.uri)})
                numbers = (by_hour[0].id, consumer.id)
                _copy(
                    unit.connection, READING, {"consumer": numbers, "uri": (self.hours[0].uri, self.hours[place].uri)}
                )
                _copy(unit.connection, TARGET_KEY, {"consumer": numbers})

    def run(self, ledger: Ledger, decision: Decision, version: str | None) -> Recording:
        """Start the run of a decision, and return what it brings when it has made its table."""
        run = uuid4()
        ledger.writer.decisions.launched(decision.id, run, START)
        origin = Origin("task", flow_run=SourceFlowRun(run, deployment_id=decision.deployment_id))
        return recording(self._made_by[decision.deployment_id], decision.target_key, origin, data_version=version)

    def _flows(self) -> Iterator[tuple[Asset, list[Asset]]]:
        for above, layer in pairwise(self.layers):
            for place, made in enumerate(layer):
                yield made, [above[(place + step) % len(above)] for step in range(INPUTS)]
        for board in self.boards:
            yield board, [self.shared]

    def _deploy(self, ledger: Ledger, schedule: Eager, made: Asset, reads: list[Asset]) -> Consumer:
        consumer = deploy(ledger, schedule, made, reads)
        self._made_by[consumer.deployment_id] = made
        return consumer


def named(name: str) -> Asset:
    """Return an asset of the graph."""
    return Asset(f"s3://lake/{name}")


def deploy(ledger: Ledger, schedule: Eager, made: Asset, reads: list[Asset]) -> Consumer:
    """Deploy a flow that makes one asset from others."""
    output = Output(Token("uri", made.uri), code_version="1")
    declaration = FlowDeclaration(ConsumerOptions(to_schedule(schedule)), (made,), tuple(reads), (output,))
    name, text = made.uri.removeprefix("s3://lake/"), declaration_to_text(declaration)
    return ledger.writer.consumers.deploy(name, uuid5(UUID(int=18), name), uuid4(), text, False, False, START)[0]


def record(ledger: Ledger, assets: list[Asset]) -> None:
    """Record an update of each of these assets, without a key."""
    ledger.writer.events.record([recording(each, data_version=FIRST) for each in assets], START)


def record_keys(ledger: Ledger, assets: list[Asset], number: int) -> None:
    """Record an update of so many keys of each of these assets."""
    made = [recording(asset, key, data_version=FIRST) for asset in assets for key in hours(number)]
    for first in range(0, len(made), AT_ONCE):
        ledger.writer.events.record(made[first : first + AT_ONCE], START)


def hours(number: int) -> list[str]:
    """Return so many hourly keys."""
    return [(START + timedelta(hours=place)).strftime("%Y-%m-%dT%H:%M:%S") for place in range(number)]


def recording(
    asset: Asset, key: str | None = None, origin: Origin = BY, *, data_version: str | None = None
) -> Recording:
    """Return a recording of one update."""
    number = uuid4()
    event = AssetEvent(number, asset, START, origin, partition_key=key, data_version=data_version)
    return Recording(number, (event,))


def _copy(connection: Connection, table: Table, changes: dict[str, tuple[str | int, str | int]]) -> None:
    """Copy the rows of a table that have the first value of each pair, with the second one instead."""
    names = [column.name for column in table.c]
    values: list[ColumnElement[object]] = [
        literal(changes[each.name][1]) if each.name in changes else each for each in table.c
    ]
    of_original = [table.c[name] == original for name, (original, _) in changes.items()]
    connection.execute(insert(table).from_select(names, select(*values).where(*of_original)))
