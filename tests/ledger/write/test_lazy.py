"""Lazy flows on a ledger: they run when a policy falls due, and not before. Contract 8.14."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from assetflow.core.partitions import IdentityMapper
from assetflow.core.values.assets import Asset
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.freshness_schedules import Lazy
from assetflow.core.values.keeping import Output
from assetflow.core.values.schedules import ConsumerOptions, Partitioning, Schedule
from assetflow.core.wire import FlowDeclaration
from assetflow.errors import InvalidSchedule
from tests.ledger.write.test_kept import Place, kept

HOUR = timedelta(hours=1)
RAW, CORE = Asset("s3://lake/raw"), Asset("s3://lake/core")
BOARD = Asset("s3://lake/board", freshness=FreshnessPolicy(HOUR))


def lazy(reads: Iterable[Asset], makes: Iterable[Asset], **options: Any) -> FlowDeclaration:
    """The declaration of a Lazy flow whose task reads and makes assets."""
    reads, makes = tuple(reads), tuple(makes)
    outputs = tuple(Output(each.token, tuple(read.token for read in reads)) for each in makes)
    return FlowDeclaration(ConsumerOptions(Lazy(**options).as_schedule()), makes, reads, outputs)


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
