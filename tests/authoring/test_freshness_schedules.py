"""`Eager`, `OnMissing`, `Lazy` and `FreshnessPolicy`, as flows declare them and as deployments store them."""

import json
from datetime import timedelta
from typing import Any, cast

import pytest

from assetflow import (
    Asset,
    AssetAlias,
    AssetRef,
    Eager,
    FreshnessPolicy,
    Lazy,
    OnMissing,
    asset,
    deployment_triggers,
    flow,
    task,
)
from assetflow.core.values.conditions import Token
from assetflow.core.values.keeping import Output
from assetflow.core.wire import declaration_from_text, declaration_to_text
from assetflow.errors import InvalidSchedule, UnsupportedDelivery
from assetflow.partitions import IdentityMapper, KeysMapper, LastMapper, StartOfDayMapper, TimeWindowMapper

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


def test_8_15_eager_says_how_long_a_run_takes_and_whether_it_catches_up() -> None:
    span = timedelta(minutes=40)
    found = [each.as_schedule().keeping for each in (Eager(expected_duration=span), OnMissing(expected_duration=span))]
    assert [each.expected_duration for each in found if each is not None] == [span, span]
    with pytest.raises(InvalidSchedule, match="expected_duration"):
        Eager(expected_duration=timedelta(seconds=-1))
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
    for schedule in (Eager(RAW), Lazy()):
        with pytest.raises(UnsupportedDelivery, match="no versions"):
            deployment_triggers(schedule)


def test_rule_8_2_the_code_version_of_the_outlet_counts_before_that_of_the_task() -> None:
    own = Asset(FACT.uri, code_version="own")

    @task(outlets=[own, SIDE], code_version="task")
    def several() -> None: ...

    @flow(schedule=Eager(RAW), code_version="flow", produces=[Asset("s3://lake/more", code_version="declared"), RAW])
    def other() -> None:
        several()

    found = {each.asset.value: each.code_version for each in other.declaration.options.data.outputs}
    assert found == {"s3://lake/more": "declared", RAW.uri: "flow", FACT.uri: "own", SIDE.uri: "task"}


HOUR = timedelta(hours=1)
NINE = FreshnessPolicy(HOUR, deadline="0 9 * * 1-5", timezone="Europe/Berlin", warn_after=HOUR / 2)
BOARD = Asset("s3://lake/board", freshness=NINE)


@task(inlets=[RAW], outlets=[BOARD])
def build_board() -> None: ...


@flow(schedule=Lazy(retries=2, expected_duration=HOUR))
def report() -> None:
    build_board()


def test_8_11_a_policy_is_no_part_of_the_identity() -> None:
    assert Asset(BOARD.uri) == BOARD
    assert hash(Asset(BOARD.uri)) == hash(BOARD)
    assert repr(BOARD) == "Asset('s3://lake/board')"


def test_8_11_a_deployment_stores_the_policies_of_what_its_tasks_make() -> None:
    text = declaration_to_text(report.declaration)
    stored = declaration_from_text(text)
    assert stored == report.declaration
    assert stored.options.data.policies == {BOARD.token: NINE}
    plain = report.with_options(schedule=RAW)
    assert plain.declaration.outputs == (Output(BOARD.token, (RAW.token,)),)
    made = asset(uri=BOARD.uri, freshness=NINE)(lambda: None)
    assert made.asset.freshness == NINE
    assert made.declaration.options.data.policies == {BOARD.token: NINE}


def test_8_11_a_flow_that_runs_on_an_asset_may_say_how_old_it_may_be() -> None:
    reader = flow(name="reader", schedule=BOARD)(lambda: None)
    stored = declaration_from_text(declaration_to_text(reader.declaration))
    assert stored.options.data.policies == {BOARD.token: NINE}


def test_8_11_inputs_are_assets_or_references() -> None:
    by_asset, by_reference = (FreshnessPolicy(HOUR, inputs=[each]) for each in (RAW, Asset.ref(uri=RAW.uri)))
    assert by_asset == by_reference != FreshnessPolicy(HOUR)
    stored = Asset("s3://lake/one", freshness=by_asset)
    declared = flow(name="one", schedule=RAW, produces=[stored])(lambda: None).declaration
    assert declaration_from_text(declaration_to_text(declared)) == declared


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"maximum_lag": 60}, "not a timedelta"),
        ({"maximum_lag": timedelta(seconds=59)}, "shorter than 1 min"),
        ({"warn_after": HOUR}, "not below"),
        ({"deadline": "9 o'clock"}, "cron"),
        ({"deadline": "0 9 * * *", "timezone": "Mars"}, "Mars"),
        ({"inputs": []}, "must be assets or references"),
        ({"inputs": ["s3://lake/raw"]}, "must be assets or references"),
        ({"inputs": [AssetAlias("any")]}, "must be assets or references"),
    ],
)
def test_8_11_a_bad_policy_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(Exception, match=words):
        FreshnessPolicy(**cast("dict[str, Any]", {"maximum_lag": HOUR} | given))


def test_8_11_something_else_than_a_policy_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="FreshnessPolicy") as refused:
        Asset("s3://lake/raw", freshness=HOUR)  # type: ignore[arg-type]
    assert refused.value.rule == "8.11"


@pytest.mark.parametrize("given", [{"retries": -1}, {"retry_delay": 5}, {"expected_duration": "1 h"}])
def test_8_7_bad_options_of_lazy_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule):
        Lazy(**given)


def test_8_1_lazy_has_no_mappers() -> None:
    with pytest.raises(TypeError, match="default_partition_mapper"):
        Lazy(default_partition_mapper=IdentityMapper())  # type: ignore[call-arg]
