"""A rebuilt ledger takes over what Eager flows were asked for, and what runs have read. Contract 8.2, 8.17."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4, uuid5

import pytest

from assetflow.core.partitions import IdentityMapper
from assetflow.core.rules.adoption import Decided
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.events import AssetEvent, Origin, Pin, Recording, SourceFlowRun
from assetflow.core.values.keeping import Catchup, Output
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.wire import FlowDeclaration, declaration_to_text
from assetflow.ledger import Ledger
from tests.ledger.conftest import NewLedger
from tests.ledger.making import NOW
from tests.ledger.write.test_kept import BOARD, CORE, LEFT, RAW, SPACE, Place, kept, only


def runs_of(place: Place) -> list[Decided]:
    """What Prefect's runs tell of the decisions: each began a second after it was made."""
    found = place.ledger.reader.decisions.find(limit=100)
    asked = place.ledger.reader.decisions.asked(found)
    late = timedelta(seconds=1)
    return [
        Decided(each.id, each.deployment_id, each.target_key, frozenset(), each.made, asked[each.id], each.made + late)
        for each in found
    ]


def recordings_of(place: Place) -> Iterable[Recording]:
    for each in place.ledger.reader.events.find():
        yield Recording(each.id, (each,), durable=each.recorded)


def rebuilt(place: Place, ledger: Ledger, **flows: FlowDeclaration) -> tuple[Place, list[Decision]]:
    """Rebuild the ledger of a place; return the new place, and what it asks for at the end."""
    new = Place(ledger, place.later())
    ledger.writer.events.begin_adoption(runs_of(place))
    for name, declaration in flows.items():
        assert not new.deploy(name, declaration, created=place.consumers[name].deployed)
    for recording in recordings_of(place):
        ledger.writer.events.record([recording], new.later())
    return new, ledger.writer.events.end_adoption(new.later())


def states(place: Place) -> list[str]:
    return [each.verdict for plan in place.ledger.reader.freshness.plan(place.now) for each in plan.targets]


@pytest.mark.rule("8.17")
def test_what_was_made_is_not_made_again(place: Place, new_sqlite: NewLedger) -> None:
    core = kept([RAW], [CORE])
    place.deploy("core", core)
    decision = only(place.update(RAW))
    place.run("core", decision, CORE)
    new, asked = rebuilt(place, new_sqlite(), core=core)
    assert asked == []
    assert not new.end(decision)
    assert states(new) == []
    assert new.names(new.update(RAW)) == ["core"]


@pytest.mark.parametrize("outcome", ["failed", "completed"])
def test_a_run_that_goes_on_is_waited_for_and_its_inputs_are_tried(
    place: Place, new_sqlite: NewLedger, outcome: str
) -> None:
    core = kept([RAW], [CORE])
    place.deploy("core", core)
    decision = only(place.update(RAW))
    new, asked = rebuilt(place, new_sqlite(), core=core)
    assert asked == []
    assert states(new) == ["in_progress"]
    record = new.ledger.reader.decisions.get(decision.id)
    assert record is not None
    assert (record.kind, record.because) == ("eager", decision.because)
    assert not new.end(decision, outcome)  # type: ignore[arg-type]
    assert states(new) == ["tried"]
    assert new.names(new.update(RAW)) == ["core"]


@pytest.mark.rule("8.17")
def test_a_rollback_after_a_rebuild_is_a_new_run(place: Place, new_sqlite: NewLedger) -> None:
    first, second = kept([RAW], [CORE], code="1"), kept([RAW], [CORE], code="2")
    place.deploy("core", first)
    one = only(place.update(RAW))
    place.run("core", one, CORE, code="1")
    two = only(place.deploy("core", second))
    place.run("core", two, CORE, code="2")
    new, _ = rebuilt(place, new_sqlite(), core=second)
    new.end(two)
    back = only(new.deploy("core", first))
    assert back.id not in {one.id, two.id}
    assert [each.kind for each in back.because] == ["code"]


def test_the_newest_decision_is_the_one_that_no_other_names_as_its_predecessor(
    place: Place, new_sqlite: NewLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = kept([RAW], [CORE])
    place.deploy("core", core)
    one = only(place.update(RAW))
    place.run("core", one, CORE)
    two = only(place.update(RAW))
    first, second = sorted(runs_of(place), key=lambda each: each.made)
    # Prefect created the run of the first decision last: it could not be delivered at once.
    late = replace(first, made=second.made + timedelta(seconds=1), began=None)
    monkeypatch.setattr("tests.ledger.write.test_adopted_kept.runs_of", lambda _: [late, second])
    new, _ = rebuilt(place, new_sqlite(), core=core)
    assert {each.asked.predecessor for each in (first, second) if each.asked is not None} == {None, one.id}
    for each in (place, new):
        each.now = place.later(60)
    update = AssetEvent(uuid4(), RAW, place.now, Origin("api"))
    found: list[UUID] = []
    for each in (place, new):
        each.end(two)
        ((_, made),) = each.ledger.writer.events.record([Recording(update.id, (update,))], each.later())
        found.append(only(made).id)
    assert found[0] == found[1]


@pytest.mark.parametrize("catchup", ["none", "latest", "all"])
def test_nothing_is_waived_anew_and_keys_that_were_made_start_no_flood(
    place: Place, new_sqlite: NewLedger, catchup: Catchup
) -> None:
    core = kept([RAW], [CORE], mapper=IdentityMapper(), catchup=catchup)
    place.deploy("core", core)
    for key in ("mon", "tue", "wed"):
        place.run("core", only(place.update(RAW, key)), CORE)
    open_run = only(place.update(RAW, "thu"))
    new, asked = rebuilt(place, new_sqlite(), core=core)
    for each in place.ledger.reader.decisions.find():
        if each.id != open_run.id:
            assert not new.ledger.writer.decisions.ended("Completed", new.later(), decision_id=each.id)
    assert new.names(asked) == []
    assert new.names(new.end(open_run, "failed")) == []
    assert new.names(new.update(RAW, "thu")) == ["core thu"]


def test_a_backup_takes_over_what_was_asked_for_since(place: Place, new_sqlite: NewLedger) -> None:
    """The backup knows the first update and its run; the second ones are found in Prefect."""
    core = kept([RAW], [CORE])
    backup = Place(new_sqlite())
    for each in (place, backup):
        each.deploy("core", core)
    first = only(place.update(RAW))
    (known,) = recordings_of(place)
    backup.ledger.writer.events.record([known], backup.later())
    assert backup.ledger.reader.decisions.get(first.id) is not None
    place.run("core", first, CORE)
    second = only(place.update(RAW))
    backup.now = place.later()
    assert backup.ledger.writer.events.begin_adoption(runs_of(place)) == 1
    for recording in recordings_of(place):
        backup.ledger.writer.events.record([recording], backup.later())
    assert backup.ledger.writer.events.end_adoption(backup.later()) == []
    assert not backup.end(first)
    assert not backup.end(second, "failed")
    assert states(backup) == ["tried"]


@pytest.mark.parametrize("is_partitioned", [False, True])
@pytest.mark.parametrize("killed", [False, True], ids=["at once", "killed and continued"])
def test_a_flow_waits_for_the_run_above_it_that_an_earlier_ledger_decided(
    new_sqlite: NewLedger, is_partitioned: bool, killed: bool
) -> None:
    """The maker above has an event schedule."""
    key = "mon" if is_partitioned else None
    mapper = IdentityMapper() if is_partitioned else None
    outputs = (Output(CORE.token, (RAW.token,)),)
    schedule = Schedule(RAW, Partitioning() if is_partitioned else None)
    maker = FlowDeclaration(ConsumerOptions(schedule), (CORE,), (RAW,), outputs)
    new = Place(new_sqlite())
    new.deploy("core", maker)
    new.deploy("board", kept([CORE, LEFT], [BOARD], mapper=mapper))
    new.update(CORE, key)
    new.run("board", only(new.update(LEFT, key)), BOARD)
    raw = AssetEvent(uuid4(), RAW, new.later(), Origin("api"), partition_key=key)
    number = new.consumers["core"].deployment_id
    decided = Decided(uuid4(), number, key, frozenset([raw.id]), new.later(), began=new.later())
    new.ledger.writer.events.begin_adoption([decided])
    new.ledger.writer.events.record([Recording(raw.id, (raw,), durable=raw.occurred)], new.later())
    if killed:
        assert new.ledger.writer.events.begin_adoption([decided]) == 0
    assert new.ledger.writer.events.end_adoption(new.later()) == []
    assert new.update(LEFT, key) == []
    run = Decision(decided.id, new.consumers["core"].id, number, key, (), decided.made)
    assert not new.run("board", only(new.run("core", run, CORE)), BOARD)
    # Another rebuild finds the run again, which has ended.
    new.ledger.writer.events.begin_adoption([decided])
    assert new.ledger.writer.events.end_adoption(new.later()) == []
    assert len(new.update(LEFT, key)) == 1


RUN = uuid4()


def updated(asset: Asset, at: datetime) -> Recording:
    return Recording(uuid4(), (AssetEvent(uuid4(), asset, at, Origin("api")),), at)


def made(asset: Asset, pins: Mapping[str, Pin], at: datetime) -> Recording:
    """The recording of a task of the flow `core` that read these events."""
    origin = Origin("task", flow_run=SourceFlowRun(RUN, deployment_id=uuid5(SPACE, "core")))
    places = {uri: pin.sequence for uri, pin in pins.items()}
    return Recording(uuid4(), (AssetEvent(uuid4(), asset, at, origin, inputs=places, read=pins),), at)


def minutes(number: float) -> datetime:
    return NOW + timedelta(minutes=number)


def owed_after_rebuild(ledger: Ledger, *recordings: Recording, at_once: bool = False) -> int:
    """Return how many runs a ledger asks for that is made anew from these recordings, found one by one or at once."""
    text = declaration_to_text(kept([RAW], [CORE]))
    ledger.writer.consumers.deploy("core", uuid5(SPACE, "core"), None, text, paused=False, held=False, now=minutes(0))
    ledger.writer.events.begin_adoption([])
    for batch in [recordings] if at_once else zip(recordings):
        ledger.writer.events.record(batch, minutes(60))
    return len(ledger.writer.events.end_adoption(minutes(60)))


@pytest.mark.parametrize("before", [0, 5], ids=["places are lower than they were", "places are higher"])
@pytest.mark.parametrize("came", [0, 1])
def test_rule_8_2_a_rebuilt_ledger_owes_only_what_came_during_the_run(
    new_ledger: NewLedger, before: int, came: int
) -> None:
    others, raw = [updated(LEFT, minutes(1)) for _ in range(before)], updated(RAW, minutes(2))
    later, pin = [updated(RAW, minutes(3))] * came, Pin(3, raw.events[0].id, minutes(2))
    assert owed_after_rebuild(new_ledger(), *others, raw, *later, made(CORE, {RAW.uri: pin}, minutes(4))) == came


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("came", [0, 1])
def test_rule_8_2_a_pin_of_an_unknown_event_is_the_newest_one_up_to_its_instant(
    new_ledger: NewLedger, came: int, at_once: bool
) -> None:
    raw, later, pin = updated(RAW, minutes(2)), [updated(RAW, minutes(3))] * came, Pin(3, uuid4(), minutes(2))
    read = made(CORE, {RAW.uri: pin}, minutes(4))
    assert owed_after_rebuild(new_ledger(), raw, *later, read, at_once=at_once) == came
