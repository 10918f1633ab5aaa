"""A registry on a Prefect in memory."""

from datetime import timedelta

import pytest

from assetflow.evaluator.consumers import registry as registry_module
from assetflow.evaluator.consumers.registry import Registry
from tests.evaluator.consumers.registry.fake_prefect import FakePrefect, registry_of
from tests.evaluator.ledgers import LedgerHere


@pytest.fixture
def prefect() -> FakePrefect:
    return FakePrefect()


@pytest.fixture
def registry(prefect: FakePrefect, ledger: LedgerHere) -> Registry:
    return registry_of(prefect, ledger)


@pytest.fixture
def restarted(prefect: FakePrefect, ledger: LedgerHere, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The registry of the next evaluator, which reads the automations that changed since the first one."""
    monkeypatch.setattr(registry_module, "OVERLAP", timedelta(0))
    return registry_of(prefect, ledger)
