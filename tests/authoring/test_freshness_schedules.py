"""`Eager`, `OnMissing`, `Lazy` and `FreshnessPolicy`, as flows declare them and as deployments store them."""

from datetime import timedelta
from typing import Any, cast

import pytest

from assetflow import Asset, AssetAlias, AssetRef, Eager, FreshnessPolicy, Lazy, OnMissing, asset, flow, task
from assetflow.core.values.keeping import Output
from assetflow.core.wire import declaration_from_text, declaration_to_text
from assetflow.errors import InvalidSchedule
from assetflow.partitions import KeysMapper, LastMapper, StartOfDayMapper, TimeWindowMapper

RAW, SIDE, FACT = (Asset(f"s3://lake/{name}") for name in ("raw", "side", "fact"))


@task(inlets=[RAW, AssetAlias("any")], outlets=[FACT, AssetAlias("more")], code_version="2")
def build() -> None: ...


@flow(schedule=Eager(SIDE, retries=2, retry_delay=timedelta(seconds=30)), code_version="1")
def core() -> None:
    build()


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
    assert declaration_from_text(declaration_to_text(declaration)) == declaration


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


HOUR = timedelta(hours=1)
NINE = FreshnessPolicy(HOUR, deadline="0 9 * * 1-5", timezone="Europe/Berlin", warn_after=HOUR / 2)
BOARD = Asset("s3://lake/board", freshness=NINE)


@task(inlets=[RAW], outlets=[BOARD])
def build_board() -> None: ...


@flow(schedule=Lazy(retries=2, expected_duration=HOUR))
def report() -> None:
    build_board()


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
    with pytest.raises(InvalidSchedule, match=words):
        FreshnessPolicy(**cast("dict[str, Any]", {"maximum_lag": HOUR} | given))


def test_8_11_something_else_than_a_policy_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="FreshnessPolicy") as refused:
        Asset("s3://lake/raw", freshness=HOUR)  # type: ignore[arg-type]
    assert refused.value.rule == "8.11"
