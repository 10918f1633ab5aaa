"""What the check of an update accepts arrives everywhere as it was; what it refuses, every way in refuses alike."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assetflow import emit
from assetflow.cli.emit import read_extra
from assetflow.core.json_data import LARGEST_INTEGER, check_json, fit_json
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.events import AssetEvent, Origin, Recording, event_by_hand
from assetflow.core.values.outcome import TaskOutcome
from assetflow.core.wire import RunContext, run_context_from_json, run_context_to_json
from assetflow.core.wire.events import event_to_json
from assetflow.errors import InvalidEvent, RecordingFailed
from assetflow.ledger import Ledger
from assetflow.prefect_io.recordings import (
    recording_from_artifact,
    recording_from_prefect_event,
    recording_to_artifact,
    recording_to_prefect_events,
)
from tests.environment.postgres import new_database

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ORDERS, ALIAS = Asset("s3://shop/orders"), AssetAlias("files")

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)
numbers = st.integers(-LARGEST_INTEGER, LARGEST_INTEGER) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
plain = st.recursive(
    scalars, lambda below: st.lists(below, max_size=3) | st.dictionaries(texts, below, max_size=3), max_leaves=8
)
extras = st.dictionaries(texts, plain, max_size=4)
poison = st.sampled_from(
    [
        2**63,
        -(2**64),
        float("nan"),
        float("inf"),
        "\udce9",
        "a\0b",
        {"\ud800": 1},
        {"a\0": 1},
        json.loads("[" * 60 + "]" * 60),
    ]
)
surroundings = st.recursive(
    st.just("poison"),
    lambda below: st.lists(below, min_size=1, max_size=1) | st.dictionaries(texts, below, min_size=1, max_size=1),
    max_leaves=4,
)


def event(extra: dict[str, Any]) -> AssetEvent:
    return AssetEvent(uuid4(), ORDERS, NOON, Origin("task"), extra, "a key", ("files",), {"rows": 3})


def sent(body: object) -> Any:
    """What arrives of a body that travels over HTTP, in the form in which Prefect's client writes it."""
    return json.loads(json.dumps(body, ensure_ascii=False, allow_nan=False).encode())


def same(found: AssetEvent, made: AssetEvent) -> bool:
    return repr(event_to_json(found)) == repr(event_to_json(made))


@given(extras)
def test_what_is_accepted_survives_artifact_prefect_event_and_run_context(extra: dict[str, Any]) -> None:
    assert repr(check_json(extra, "extra")) == repr(extra)
    made = event(extra)
    recording = Recording(uuid4(), (made,))
    (from_artifact,) = recording_from_artifact(sent({"id": "7", **recording_to_artifact(recording)})).events
    assert same(from_artifact, made)
    (posted,) = recording_to_prefect_events(recording)
    heard = recording_from_prefect_event(sent(posted))
    assert heard is not None
    assert same(heard.events[0], made)
    context = run_context_from_json(sent(run_context_to_json(RunContext(uuid4(), "report/daily", events=(made,)))))
    assert context is not None
    assert context.events is not None
    assert same(context.events[0], made)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def any_ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    if request.param == "sqlite":
        with Ledger.open(tmp_path_factory.mktemp("contents") / "ledger.db") as ledger:
            yield ledger
    else:
        with new_database() as url, Ledger.open(url) as ledger:
            yield ledger


@pytest.mark.rule("2.7")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(extras)
def test_what_is_accepted_survives_the_ledger(any_ledger: Ledger, extra: dict[str, Any]) -> None:
    made = event(extra)
    any_ledger.writer.events.record([Recording(uuid4(), (made,))], NOON)
    found = any_ledger.reader.events.get(made.id)
    assert found is not None
    assert repr(found.extra) == repr(extra)


def _refusals(extra: dict[str, Any]) -> Iterator[str]:
    def say(outcome: TaskOutcome) -> None:
        outcome.say(ORDERS, extra)

    def write(outcome: TaskOutcome) -> None:
        outcome.extra_of(ORDERS).update(extra)
        outcome.updates()

    for tell in (
        say,
        write,
        lambda outcome: outcome.assign(ORDERS, extra),
        lambda outcome: outcome.add(ALIAS, ORDERS, extra),
    ):
        with pytest.raises(RecordingFailed) as failed:
            tell(TaskOutcome([ORDERS, ALIAS]))
        yield failed.value.message.removeprefix(f"the update of {ORDERS.uri} cannot be recorded: ")

    stored = event_to_json(event({})) | {"extra": extra}
    data = json.dumps({"recording": str(uuid4()), "events": [stored]})
    posted = {"id": str(uuid4()), "event": "assetflow.asset.updated", "occurred": NOON.isoformat()}
    posted |= {"resource": {"prefect.resource.id": ORDERS.uri}, "payload": {"extra": extra}}
    for refuse in (
        lambda: emit(ORDERS, extra),
        lambda: by_hand(read_extra(json.dumps(extra))),
        lambda: recording_from_artifact({"id": "7", "data": data}),
        lambda: recording_from_prefect_event(posted),
        lambda: recording_from_prefect_event(
            {**posted, "event": "prefect.asset.materialization.succeeded", "payload": extra}
        ),
    ):
        with pytest.raises(InvalidEvent) as caught:
            refuse()
        assert caught.value.rule == "2.7"
        yield caught.value.message


def by_hand(extra: object) -> AssetEvent:
    return event_by_hand(ORDERS, id=uuid4(), occurred=NOON, origin=Origin("cli"), extra=extra)


def _with(poison: object, around: Any) -> Any:
    if isinstance(around, dict):
        return {key: _with(poison, below) for key, below in around.items()}
    return [_with(poison, below) for below in around] if isinstance(around, list) else poison


@pytest.mark.rule("2.7")
@settings(max_examples=40)
@given(texts, surroundings, poison)
def test_what_is_refused_is_refused_by_every_way_in_with_the_same_words(key: str, around: Any, poison: Any) -> None:
    extra = {key: _with(poison, around)}
    (message,) = set(_refusals(extra))
    assert message.startswith(("extra", "the key of extra"))
    message.encode()


@given(texts, surroundings, poison)
def test_what_comes_along_fits_afterwards(key: str, around: Any, poison: Any) -> None:
    fitted = fit_json({key: _with(poison, around)})
    assert check_json(fitted, "extra") == fitted
