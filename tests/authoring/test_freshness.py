"""`FreshnessPolicy` and `Lazy`, as flows declare them and as deployments store them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from assetflow import Asset, AssetAlias, FreshnessPolicy, Lazy, asset, deployment_triggers, flow, task
from assetflow.core.values.keeping import Output
from assetflow.core.wire import declaration_from_text, declaration_to_text
from assetflow.errors import InvalidSchedule, UnsupportedDelivery
from assetflow.partitions import IdentityMapper

HOUR = timedelta(hours=1)
NINE = FreshnessPolicy(HOUR, deadline="0 9 * * 1-5", timezone="Europe/Berlin", warn_after=HOUR / 2)
RAW = Asset("s3://lake/raw")
BOARD = Asset("s3://lake/board", freshness=NINE)


@task(inlets=[RAW], outlets=[BOARD])
def build() -> None: ...


@flow(schedule=Lazy(retries=2, expected_duration=HOUR))
def report() -> None:
    build()


def test_8_11_a_policy_is_no_part_of_the_identity() -> None:
    assert Asset(BOARD.uri) == BOARD
    assert hash(Asset(BOARD.uri)) == hash(BOARD)
    assert repr(BOARD) == "Asset('s3://lake/board')"


def test_8_11_a_deployment_stores_the_policies_of_what_its_tasks_make() -> None:
    text = declaration_to_text(report.declaration)
    stored = declaration_from_text(text)
    assert stored == report.declaration
    assert stored.options.data.policies == {BOARD.token: NINE}


def test_8_11_a_flow_that_runs_on_an_asset_may_say_how_old_it_may_be() -> None:
    reader = flow(name="reader", schedule=BOARD)(lambda: None)
    stored = declaration_from_text(declaration_to_text(reader.declaration))
    assert stored.options.data.policies == {BOARD.token: NINE}


def test_8_11_with_a_policy_it_is_stored_what_an_output_is_made_from() -> None:
    plain = report.with_options(schedule=RAW)
    assert plain.declaration.outputs == (Output(BOARD.token, (RAW.token,)),)


def test_8_11_asset_takes_a_policy() -> None:
    made = asset(uri=BOARD.uri, freshness=NINE)(lambda: None)
    assert made.asset.freshness == NINE
    assert made.declaration.options.data.policies == {BOARD.token: NINE}


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


def test_prefect_cannot_decide_it() -> None:
    with pytest.raises(UnsupportedDelivery, match="no versions"):
        deployment_triggers(Lazy())
