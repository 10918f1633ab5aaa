"""Compare what a ledger has deployed with what would be deployed. Nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from assetflow.core.compare import Comparison, DeployedFlow, WantedFlow, compare
from assetflow.core.values.consumers import Consumer
from assetflow.core.wire.declarations import declaration_from_text
from assetflow.ledger.read.consumers import ConsumerReader
from assetflow.ledger.read.states import States


class CompareReader:
    """Compares deploys. All methods raise `LedgerError` if the ledger cannot be read."""

    def __init__(self, states: States) -> None:
        self._states = states

    def deployed(self) -> list[DeployedFlow]:
        """Return all deployments that the ledger knows."""
        reader = ConsumerReader(self._states.connect)
        consumers = [_deployed(each.consumer.name, each.consumer, each.declaration) for each in reader.all()]
        return consumers + [_deployed(name, None, text) for name, text in reader.unlisted().values()]

    def deploy(
        self,
        deployed: Sequence[DeployedFlow],
        wanted: Sequence[WantedFlow],
        now: datetime,
        *,
        renamed: Mapping[str, str],
        keep: Collection[str],
    ) -> Comparison:
        """Return what a deploy would change now; the parameters are those of `compare`."""
        with self._states.open(now) as state:
            return compare(state, deployed, wanted, now, renamed=renamed, keep=keep)


def _deployed(name: str, consumer: Consumer | None, text: str) -> DeployedFlow:
    produces = declaration_from_text(text, where=name).produces if '"produces":' in text else ()
    return DeployedFlow(name, consumer, text, tuple(outlet.token for outlet in produces))
