"""`Eager`, `OnMissing` and `code_version`, as flows declare them and as deployments store them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from assetflow import Asset, AssetAlias, AssetRef, Eager, OnMissing, asset, deployment_triggers, flow, task
from assetflow.authoring.past_events.sources import newest_events
from assetflow.core.values.conditions import Token
from assetflow.core.values.keeping import Output
from assetflow.core.wire import declaration_from_text, declaration_to_text
from assetflow.errors import InvalidSchedule, UnsupportedDelivery
from assetflow.partitions import KeysMapper, LastMapper, StartOfDayMapper, TimeWindowMapper

RAW, SIDE, FACT = (Asset(f"s3://lake/{name}") for name in ("raw", "side", "fact"))


@task(inlets=[RAW, AssetAlias("any")], outlets=[FACT, AssetAlias("more")], code_version="2")
def build() -> None: ...


@flow(schedule=Eager(SIDE, retries=2, retry_delay=timedelta(seconds=30)), code_version="1")
def core() -> None:
    build()


def test_what_a_task_reads_and_its_code_version_are_found() -> None:
    (output,) = core.declaration.options.data.outputs
    assert output == Output(FACT.token, (RAW.token,), "2")


def test_the_code_version_of_the_flow_counts_for_tasks_without_one() -> None:
    @task(outlets=[FACT])
    def plain() -> None: ...

    @flow(schedule=Eager(), code_version="7")
    def other() -> None:
        plain()

    assert [each.code_version for each in other.declaration.options.data.outputs] == ["7"]
    changed = other.with_options(code_version="8")
    assert [each.code_version for each in changed.declaration.options.data.outputs] == ["8"]
    assert changed.with_options(schedule=Eager(RAW)).code_version == "8"


def test_a_definition_depends_on_its_parameters() -> None:
    @asset(uri="s3://lake/copy", schedule=Eager(), code_version="1")
    def copy(raw: Any) -> None: ...

    (output,) = copy.declaration.options.data.outputs
    assert output == Output(Token("uri", "s3://lake/copy"), (Token("name", "raw"),), "1")


@pytest.mark.parametrize(
    "schedule",
    [
        Eager(),
        Eager(RAW, AssetRef(name="side"), on=["data"], catchup=True, lookback=3),
        OnMissing(partition_mapper_config={RAW: LastMapper(2)}),
        Eager(default_partition_mapper=StartOfDayMapper(), partition_mapper_config={SIDE: KeysMapper(["a"])}),
        Eager(partition_mapper_config={RAW: TimeWindowMapper("hour", "day")}, expected_duration=timedelta(minutes=5)),
        OnMissing(expected_duration=timedelta(minutes=5)),
    ],
)
def test_a_deployment_stores_the_schedule(schedule: Eager) -> None:
    declaration = core.with_options(schedule=schedule).declaration
    text = declaration_to_text(declaration)
    assert declaration_from_text(text) == declaration


def test_a_flow_without_versions_is_stored_without_outputs() -> None:
    @task(inlets=[RAW], outlets=[FACT])
    def plain() -> None: ...

    @flow(schedule=RAW)
    def other() -> None:
        plain()

    stored = json.loads(declaration_to_text(other.declaration))
    assert stored["version"] == 1
    assert "outputs" not in stored


def test_8_15_eager_and_on_missing_say_how_long_a_run_takes() -> None:
    span = timedelta(minutes=40)
    found = [each.as_schedule().keeping for each in (Eager(expected_duration=span), OnMissing(expected_duration=span))]
    assert [each.expected_duration for each in found if each is not None] == [span, span]
    with pytest.raises(InvalidSchedule, match="expected_duration"):
        Eager(expected_duration=timedelta(seconds=-1))


def test_catchup_takes_true_and_false() -> None:
    found = [Eager(catchup=value).as_schedule().keeping for value in (True, False)]
    assert [each.catchup for each in found if each is not None] == ["all", "none"]


@pytest.mark.rule("8.1", "8.10")
@pytest.mark.parametrize(
    ("start", "words"),
    [(RAW & SIDE, "schedule=a & b"), (AssetAlias("any"), "stands for no data"), ("s3://lake/raw", "Write Eager")],
)
def test_what_cannot_start_is_refused_in_words(start: Any, words: str) -> None:
    with pytest.raises(InvalidSchedule, match=words) as error:
        Eager(start)
    assert error.value.rule == "8.1"


@pytest.mark.parametrize("version", ["", "  ", 5, "x" * 251])
def test_a_bad_code_version_is_refused(version: Any) -> None:
    for refused in (task, flow):
        with pytest.raises(InvalidSchedule, match="code version"):
            refused(code_version=version)(lambda: None)
    with pytest.raises(InvalidSchedule, match="code version"):
        Asset("s3://lake/fact", code_version=version)


def test_prefect_cannot_decide_it() -> None:
    with pytest.raises(UnsupportedDelivery, match="no versions"):
        deployment_triggers(Eager(RAW))


def test_rule_8_2_the_code_version_of_the_outlet_counts_before_that_of_the_task() -> None:
    own = Asset(FACT.uri, code_version="own")

    @task(outlets=[own, SIDE], code_version="task")
    def several() -> None: ...

    @flow(schedule=Eager(RAW), code_version="flow", produces=[Asset("s3://lake/more", code_version="declared"), RAW])
    def other() -> None:
        several()

    found = {each.asset.value: each.code_version for each in other.declaration.options.data.outputs}
    assert found == {"s3://lake/more": "declared", RAW.uri: "flow", FACT.uri: "own", SIDE.uri: "task"}


def test_rule_8_2_a_task_that_cannot_ask_leaves_the_pins_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSETFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("ASSETFLOW_API_URL", "http://127.0.0.1:9")
    assert newest_events([RAW, SIDE]) == {}
