"""The automation of a deployment: what it shows, what it says, and what Prefect may decide."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from assetflow.core.time.timetables import CronTriggerTimetable
from assetflow.core.values.assets import Asset, AssetAlias, AssetRef
from assetflow.core.values.conditions import AtLeast
from assetflow.core.values.keeping import DataFlow, Keeping, Output
from assetflow.core.values.schedule_values import AssetAndTimeSchedule, PartitionedAssetTimetable, to_schedule
from assetflow.core.values.schedules import ConsumerOptions, Schedule
from assetflow.core.values.timing import Deadline, Intake
from assetflow.prefect_io.automation_text import automation_name
from assetflow.prefect_io.automations import automation_for
from assetflow.prefect_io.names import CONDITION_SHOWN, SCHEDULE_SATISFIED

DEPLOYMENT = UUID(int=7)
A, B, C = (Asset(f"s3://lake/raw/{letter}") for letter in "abc")
HOUR = timedelta(hours=1)


def options(schedule: object, **given: Any) -> ConsumerOptions:
    return ConsumerOptions(to_schedule(schedule), **given)


def inputs_shown(keeping: Keeping, *inlets: Asset | AssetAlias | AssetRef) -> list[dict[str, Any]]:
    """Return what the triggers of an Eager or Lazy flow match, after the one on its own event."""
    data = DataFlow((Output(C.token, tuple(each.token for each in inlets)),), (C.token,))
    trigger = automation_for(DEPLOYMENT, "core/main", options(Schedule(keeping=keeping), data=data)).trigger
    start, *shown = trigger.model_dump(mode="json")["triggers"]
    assert (start["expect"], trigger.require) == ([SCHEDULE_SATISFIED], "any")  # type: ignore[union-attr]
    assert all(each["expect"] == [CONDITION_SHOWN] for each in shown)
    return [each["match"] for each in shown]


def test_the_automation_of_an_eager_or_lazy_flow_shows_the_updates_of_its_inputs() -> None:
    by_name = Asset.ref(name="orders")
    both = {"prefect.resource.id": [A.uri, B.uri]}
    assert inputs_shown(Keeping("eager"), B, A) == [both]
    assert inputs_shown(Keeping("lazy"), B, A) == [both]
    shown = [{"prefect.resource.id": [B.uri]}, {"prefect.resource.name": ["orders"]}]
    assert inputs_shown(Keeping("eager"), B, AssetAlias("x"), by_name) == shown
    assert inputs_shown(Keeping("eager", (A,)), B, A) == [{"prefect.resource.id": [A.uri]}]
    assert inputs_shown(Keeping("eager")) == []


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (A, "runs when s3://…/a was updated"),
        (A & B, "runs when s3://…/a AND s3://…/b were updated"),
        (A | B, "runs when s3://…/a OR s3://…/b was updated"),
        (A | (B & C), "runs when s3://…/a OR (s3://…/b AND s3://…/c) was updated"),
        (Asset("s3://lake/raw/x", name="orders"), "runs when orders was updated"),
        (Asset("s3://one/x/a") & Asset("s3://two/x/a"), "runs when s3://one/x/a AND s3://two/x/a were updated"),
        (AssetAlias("regions"), "runs when alias regions was updated"),
        (Asset("postgres://h/db/public/t"), "runs when postgres://…/t was updated"),
        (PartitionedAssetTimetable(assets=A), "runs for each partition key when s3://…/a was updated"),
        ([], "never runs by itself: its list of assets is empty"),
        ((A & B).within(6 * HOUR), "runs when (s3://…/a AND s3://…/b) within 6 h of each other were updated"),
        (
            (A & B).since("@daily", timezone="Europe/Berlin"),
            "runs when (s3://…/a AND s3://…/b) since 00:00 (Europe/Berlin) were updated",
        ),
        (AtLeast(2, A, B | C, [A]), "runs when 2 of: s3://…/a, (s3://…/b OR s3://…/c), s3://…/a were updated"),
        (A.times(3), "runs when s3://…/a 3 times was updated"),
    ],
)
def test_its_name_says_when_the_deployment_runs(schedule: object, words: str) -> None:
    assert automation_name("report/daily", options(schedule)) == f"report/daily {words}"


BERLIN = CronTriggerTimetable("0 6 * * *", timezone="Europe/Berlin")
OPENED = AssetAndTimeSchedule(timetable=BERLIN, assets=A & B, until="0 22 * * *")
EIGHT = CronTriggerTimetable("0 8 * * *", timezone="Europe/Berlin")


@pytest.mark.rule("9.17")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            options(OPENED, deadline=Deadline(at=EIGHT, then="run")),
            "runs from 06:00 to 22:00 (Europe/Berlin) when s3://…/a AND s3://…/b were updated; "
            "at 08:00 with what is there",
        ),
        (
            options(PartitionedAssetTimetable(assets=A), deadline=Deadline(2 * HOUR, then="skip")),
            "runs for each partition key when s3://…/a was updated; after 2 h it skips what is there",
        ),
        (
            options(A, intake=Intake(debounce=HOUR / 6, max_wait=HOUR)),
            "runs when s3://…/a was updated; debounce 10 min, max_wait 1 h",
        ),
        (
            options(A, intake=Intake(min_events=2, max_events=3, cooldown=HOUR), deadline=Deadline(HOUR)),
            "runs when s3://…/a was updated; min_events 2, max_events 3, cooldown 1 h; alert after 1 h",
        ),
    ],
)
def test_openings_intake_and_deadlines_stand_in_its_name_and_description(given: ConsumerOptions, words: str) -> None:
    automation = automation_for(DEPLOYMENT, "report/daily", given)
    assert automation.name == f"report/daily {words}"
    assert words[1:].replace("s3://…/", "s3://lake/raw/") in automation.description
    plain = options(A if given.schedule.condition == A else A & B)
    assert automation.trigger == automation_for(DEPLOYMENT, "report/daily", plain).trigger
