"""Consumers and automations stay in step when Prefect or the ledger fails in between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from assetflow.core.assets import Asset
from assetflow.core.codec import FlowDeclaration, declaration_to_text
from assetflow.core.conditions import Token
from assetflow.core.events import AssetEvent, Origin, Recording
from assetflow.core.schedules import ConsumerOptions, to_schedule
from assetflow.errors import LedgerLocked, PrefectRefused, PrefectUnreachable
from assetflow.evaluator import registry as registry_module
from assetflow.evaluator.consumer_ledger import MemoryConsumers
from assetflow.evaluator.cycles import find_cycles
from assetflow.evaluator.ledger_consumers import LedgerConsumers
from assetflow.evaluator.registry import Registry
from assetflow.ledger import Ledger
from assetflow.prefect_io.names import EVENTS_PARAMETER, SCHEMA_EXTENSION

A, B, C = (Asset(f"s3://lake/{letter}") for letter in "abc")
START = datetime(2026, 11, 20, tzinfo=UTC)
FLOW = str(uuid4())


def declaration(schedule: object, *produces: Asset) -> FlowDeclaration:
    return FlowDeclaration(ConsumerOptions(to_schedule(schedule)), produces=produces)


class FakePrefect:
    """Deployments and automations in memory; `fails` has errors for the next requests, by method and path."""

    url = "http://prefect.invalid/api"

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, dict[str, Any]]] = {"deployments": {}, "automations": {}}
        self.fails: list[tuple[str, Exception]] = []
        self.writes: list[str] = []
        self.asked: list[str] = []
        self._clock = 0

    def deploy(self, number: int, schedule: object, *produces: Asset, **given: Any) -> UUID:
        text = declaration_to_text(declaration(schedule, *produces))
        schema = {"title": "Parameters", "properties": {EVENTS_PARAMETER: {SCHEMA_EXTENSION: text}}}
        made = UUID(int=number)
        row = {"id": str(made), "name": f"d{number}", "flow_id": FLOW, "parameter_openapi_schema": schema, **given}
        self.save("deployments", row)
        return made

    def save(self, kind: str, row: dict[str, Any]) -> None:
        self._clock += 1
        self.rows[kind][row["id"]] = {**row, "updated": (START + timedelta(seconds=self._clock)).isoformat()}

    @property
    def automations(self) -> list[dict[str, Any]]:
        return list(self.rows["automations"].values())

    def _fail(self, method: str, path: str) -> None:
        self.asked.append(f"{method} {path}")
        request = f"{method} {path}" if method == "POST" else method
        for place, (failing, error) in enumerate(self.fails):
            if failing == request:
                del self.fails[place]
                raise error

    async def post(self, path: str, body: Any) -> Any:
        self._fail("POST", path)
        _, kind, what = path.split("/")
        if kind == "flows":
            return [{"id": FLOW, "name": "flow"}]
        if what == "count":
            return len(self.rows[kind])
        if what == "filter":
            listed = sorted(self.rows[kind].values(), key=lambda each: each["updated"], reverse=True)
            return listed[body["offset"] : body["offset"] + body["limit"]]
        row = {**body, "id": str(uuid4())}
        self.writes.append("create")
        self.save(kind, row)
        return row

    async def get(self, path: str) -> Any:
        self._fail("GET", path)
        _, kind, number = path.split("/")
        return self.rows[kind].get(number)

    async def put(self, path: str, body: Any) -> None:
        self._fail("PUT", path)
        self.writes.append("update")
        number = path.rpartition("/")[2]
        self.save("automations", {**self.rows["automations"][number], **body})

    async def delete(self, path: str) -> None:
        self._fail("DELETE", path)
        self.writes.append("delete")
        self.rows["automations"].pop(path.rpartition("/")[2], None)


@pytest.fixture
def prefect() -> FakePrefect:
    return FakePrefect()


@pytest.fixture
def ledger() -> MemoryConsumers:
    return MemoryConsumers()


@pytest.fixture
def registry(prefect: FakePrefect, ledger: MemoryConsumers) -> Registry:
    return Registry(prefect, ledger)  # type: ignore[arg-type]


async def known(ledger: MemoryConsumers | LedgerConsumers) -> dict[str, object]:
    return {each.consumer.name: each.consumer.schedule.condition for each in await ledger.consumers()}


async def test_consumers_are_numbered_in_the_order_in_which_they_were_deployed(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry
) -> None:
    for number in (3, 1, 2):
        prefect.deploy(number, A)
    await registry.sync()
    assert [each.consumer.name for each in await ledger.consumers()] == ["flow/d3", "flow/d1", "flow/d2"]


@pytest.mark.parametrize("request_", ["POST /deployments/filter", "POST /flows/filter", "POST /automations/filter"])
async def test_a_look_that_fails_is_made_again(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry, request_: str
) -> None:
    prefect.deploy(1, A)
    prefect.fails = [(request_, PrefectUnreachable("gone"))]
    with pytest.raises(PrefectUnreachable):
        await registry.sync()
    await registry.sync()
    assert await known(ledger) == {"flow/d1": A}
    assert len(prefect.automations) == 1


async def test_an_automation_that_cannot_be_made_now_holds_nobody_up_and_is_made_later(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry
) -> None:
    first = prefect.deploy(1, A)
    prefect.deploy(2, B)
    prefect.fails = [("POST /automations/", PrefectUnreachable("500"))]

    await registry.sync()
    assert await known(ledger) == {"flow/d1": A, "flow/d2": B}
    assert list(registry.report.problems) == [first]
    assert len(prefect.automations) == 1

    await registry.sync()
    assert len(prefect.automations) == 2
    assert registry.report.problems == {}


async def test_a_prefect_that_is_down_is_not_asked_for_each_deployment(
    prefect: FakePrefect, registry: Registry
) -> None:
    for number in range(1, 11):
        prefect.deploy(number, Asset(f"s3://lake/{number}"))
    await registry.sync()
    for number in range(1, 11):
        prefect.deploy(number, Asset(f"s3://lake/other/{number}"))
    prefect.fails = [("PUT", PrefectUnreachable("down"))] * 10
    with pytest.raises(PrefectUnreachable):
        await registry.sync()
    assert len(prefect.fails) == 7
    prefect.fails = []
    await registry.sync()
    assert all("other" in str(each["trigger"]) for each in prefect.automations)


async def test_what_prefect_refuses_is_told_once_and_not_tried_again(
    prefect: FakePrefect, registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    deployment = prefect.deploy(1, A)
    prefect.fails = [("POST /automations/", PrefectRefused("422: too large"))]
    await registry.sync()
    await registry.sync()
    assert "too large" in str(registry.report.problems[deployment])
    assert caplog.text.count("too large") == 1
    assert prefect.automations == []


async def test_an_automation_whose_maker_died_is_adopted(prefect: FakePrefect, registry: Registry) -> None:
    prefect.deploy(1, A)
    await registry.sync()
    again = MemoryConsumers()
    await Registry(prefect, again).sync()  # type: ignore[arg-type]
    assert prefect.writes == ["create"]
    (consumer,) = await again.consumers()
    assert str(consumer.automation_id) == prefect.automations[0]["id"]


async def test_a_tag_taken_away_makes_no_second_automation(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry
) -> None:
    prefect.deploy(1, A)
    await registry.sync()
    (automation,) = prefect.automations
    prefect.save("automations", {**automation, "tags": []})
    restarted = Registry(prefect, ledger)  # type: ignore[arg-type]
    await restarted.sync()
    assert prefect.writes == ["create", "update"]
    assert prefect.automations[0]["tags"] == ["assetflow:schedule"]


async def test_what_vanished_while_nobody_looked_is_taken_away(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry
) -> None:
    deployment = prefect.deploy(1, A)
    prefect.deploy(2, B)
    await registry.sync()
    del prefect.rows["deployments"][str(deployment)]
    await Registry(prefect, ledger).sync()  # type: ignore[arg-type]
    assert await known(ledger) == {"flow/d2": B}
    assert len(prefect.automations) == 1


async def test_a_ledger_that_is_locked_loses_no_change(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefect.deploy(1, A)

    async def locked(*_: object, **__: object) -> None:
        raise LedgerLocked("held by another process")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "deploy", locked)
        with pytest.raises(LedgerLocked):
            await registry.sync()
    await registry.sync()
    assert await known(ledger) == {"flow/d1": A}


async def test_without_a_change_nothing_is_written_and_the_ledger_is_not_read(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefect.deploy(1, A)
    await registry.sync()
    await registry.sync()
    monkeypatch.setattr(ledger, "consumers", None)
    await registry.sync()
    assert prefect.writes == ["create"]


async def test_what_producers_declare_is_kept_though_they_are_no_consumers(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry
) -> None:
    producer = prefect.deploy(1, None, A)
    await registry.sync()
    assert await known(ledger) == {}
    assert ledger.producers[producer].name == "flow/d1"
    del prefect.rows["deployments"][str(producer)]
    await registry.sync()
    assert ledger.producers == {}


@pytest.fixture
def restarted(prefect: FakePrefect, ledger: MemoryConsumers, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The registry of the next evaluator; the clock of `prefect` has gone on since the first one."""
    monkeypatch.setattr(registry_module, "OVERLAP", timedelta(0))
    return Registry(prefect, ledger)  # type: ignore[arg-type]


async def test_a_new_ledger_begins_with_everything(
    prefect: FakePrefect, ledger: MemoryConsumers, restarted: Registry
) -> None:
    prefect.deploy(1, A)
    await restarted.begin()
    assert await known(ledger) == {"flow/d1": A}
    assert prefect.writes == ["create"]


async def test_a_restart_reads_the_automations_that_changed(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry, restarted: Registry
) -> None:
    for number in range(1, 401):
        prefect.deploy(number, A)
    await registry.sync()
    await registry.sync()
    switched = prefect.automations[7]
    prefect.save("automations", {**switched, "enabled": False})
    prefect.asked.clear()
    await restarted.begin()
    assert [each.consumer.paused for each in await ledger.consumers()].count(True) == 1
    assert prefect.asked.count("POST /automations/filter") == 1
    assert not [asked for asked in prefect.asked if asked.startswith("GET")]
    assert len(restarted.report.scheduled) == 400
    assert restarted.inherited(UUID(int=3)) == registry.inherited(UUID(int=3)) != ""


async def test_a_restart_follows_what_was_deployed_changed_and_deleted_meanwhile(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry, restarted: Registry
) -> None:
    gone, *_ = (prefect.deploy(number, A) for number in (1, 2, 3, 4))
    await registry.sync()
    await registry.sync()
    del prefect.rows["deployments"][str(gone)]
    prefect.deploy(2, B)
    prefect.deploy(3, A, paused=True)
    prefect.deploy(5, C)
    await restarted.begin()
    assert await known(ledger) == {"flow/d2": B, "flow/d3": A, "flow/d4": A, "flow/d5": C}
    assert [each.consumer.held for each in await ledger.consumers()] == [False, True, False, False]
    writes = list(prefect.writes)
    await restarted.sync()
    assert prefect.writes == [*writes, "delete"]
    assert len(prefect.automations) == 4


async def test_what_a_restart_leaves_is_done_by_the_look_after_it(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry, restarted: Registry
) -> None:
    prefect.deploy(1, A)
    prefect.deploy(2, None, B)
    await registry.sync()
    await registry.sync()
    prefect.rows["automations"].clear()
    ledger.producers.clear()
    await restarted.begin()
    assert (prefect.automations, ledger.producers) == ([], {})
    await restarted.sync()
    assert (len(prefect.automations), len(ledger.producers)) == (1, 1)


@pytest.mark.parametrize("request_", ["POST /deployments/filter", "POST /automations/filter"])
async def test_a_restart_that_fails_is_made_again(
    prefect: FakePrefect, ledger: MemoryConsumers, registry: Registry, restarted: Registry, request_: str
) -> None:
    prefect.deploy(1, A)
    await registry.sync()
    await registry.sync()
    prefect.deploy(1, B)
    prefect.fails = [(request_, PrefectUnreachable("gone"))]
    with pytest.raises(PrefectUnreachable):
        await restarted.begin()
    await restarted.begin()
    assert await known(ledger) == {"flow/d1": B}


async def test_cycles_are_told_once(prefect: FakePrefect, registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    prefect.deploy(1, A, B)
    prefect.deploy(2, B | C, A)
    await registry.sync()
    prefect.deploy(3, C)
    await registry.sync()
    (cycle,) = registry.report.cycles
    assert str(cycle).endswith("flow/d1 → s3://lake/b → flow/d2 → s3://lake/a → flow/d1")
    assert caplog.text.count("its own runs") == 1


def test_all_cycles_are_found_and_names_count_as_their_uris() -> None:
    declarations = {
        "self": declaration(A, A),
        "by-name": declaration(Asset.ref(name="bee"), Asset("s3://lake/b", name="bee")),
        "fine": declaration(A & B, C),
    }
    found = find_cycles(declarations)
    assert [each.path for each in found] == [
        ("by-name", Token("uri", B.uri), "by-name"),
        ("self", Token("uri", A.uri), "self"),
    ]
    assert find_cycles({"fine": declaration(A & B, C), "next": declaration(C)}) == []


async def test_on_a_ledger_a_resume_and_a_changed_schedule_lead_to_decisions(
    prefect: FakePrefect, tmp_path: Path
) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        consumers = LedgerConsumers(ledger)
        registry = Registry(prefect, consumers)  # type: ignore[arg-type]
        deployment = prefect.deploy(1, A & B)
        prefect.deploy(2, None, C)
        await registry.sync()
        assert await known(consumers) == {"flow/d1": A & B}
        assert [(edge.name, edge.value) for edge in ledger.reader.edges()] == [("flow/d2", C.uri)]
        assert {asset.uri for asset in ledger.reader.assets()} == {A.uri, B.uri, C.uri}
        await registry.sync()
        assert await consumers.automations_seen() == START + timedelta(seconds=3)

        record(ledger, A)
        prefect.deploy(1, A)
        await registry.sync()
        assert len(ledger.reader.decisions()) == 1

        prefect.deploy(1, A, paused=True)
        await registry.sync()
        record(ledger, A)
        assert len(ledger.reader.decisions()) == 1
        prefect.deploy(1, A, paused=False)
        await registry.sync()
        assert len(ledger.reader.decisions()) == 2

        del prefect.rows["deployments"][str(deployment)]
        await registry.sync()
        assert await known(consumers) == {}


def record(ledger: Ledger, asset: Asset) -> None:
    event = AssetEvent(id=uuid4(), asset=asset, occurred=START, origin=Origin("api"))
    ledger.writer.record([Recording(uuid4(), (event,))], START)
