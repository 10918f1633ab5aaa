"""Lazy flows on a ledger: they run when a policy falls due, and not before. Contract 8.14."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Decision
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.freshness_schedules import Lazy
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.wire import FlowDeclaration
from assetflow.errors import InvalidSchedule
from tests.ledger.write.test_kept import Place, kept, only

HOUR = timedelta(hours=1)
RAW, CORE = Asset("s3://lake/raw"), Asset("s3://lake/core")
BOARD = Asset("s3://lake/board", freshness=FreshnessPolicy(HOUR))


def lazy(reads: Iterable[Asset], makes: Iterable[Asset], **options: Any) -> FlowDeclaration:
    """The declaration of a Lazy flow whose task reads and makes assets."""
    reads, makes = tuple(reads), tuple(makes)
    outputs = tuple(Output(each.token, tuple(read.token for read in reads)) for each in makes)
    return FlowDeclaration(ConsumerOptions(Lazy(**options).as_schedule()), makes, reads, outputs)


def passes(place: Place, until: datetime) -> Sequence[Decision]:
    """Let the clock look at every minute up to a moment, and return the decisions."""
    made: list[Decision] = []
    while place.now < until:
        place.later(min(60, (until - place.now).total_seconds()))
        made += place.ledger.writer.clock.run(place.now, place.now).decisions
    return made


def test_8_16_a_plan_says_when_a_lazy_flow_is_looked_at(place: Place) -> None:
    place.deploy("core", lazy([RAW], [CORE]))
    place.deploy("report", lazy([CORE], [BOARD]))
    core = only(place.update(RAW))
    place.run("report", only(place.run("core", core, CORE)), BOARD)
    place.update(RAW)
    (planned,) = place.ledger.reader.freshness.plan(place.now, place.consumers["core"].id)
    (target,) = planned.targets
    assert target.verdict == "not_needed"
    assert target.look is not None
    assert target.looked_at != "when a policy is due"
    assert only(passes(place, place.now + HOUR)).made - target.look < timedelta(minutes=1)


def test_8_1_a_lazy_flow_has_outputs_and_no_partitions(place: Place) -> None:
    with pytest.raises(InvalidSchedule, match="makes no asset"):
        place.deploy("none", lazy([RAW], []))
    keeping = Lazy().as_schedule().keeping
    schedule = Schedule(partitioning=Partitioning(IdentityMapper()), keeping=keeping)
    with pytest.raises(InvalidSchedule, match="no partitions"):
        place.deploy("keys", FlowDeclaration(ConsumerOptions(schedule), (BOARD,), (RAW,)))
    place.deploy("core", kept([RAW], [BOARD]))
    with pytest.raises(InvalidSchedule, match="core already"):
        place.deploy("second", lazy([RAW], [BOARD]))
