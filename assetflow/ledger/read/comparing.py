"""Compare what a ledger has deployed with what would be deployed. Nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection, and_, bindparam, func, or_, select

from assetflow.core.compare import (
    Beginning,
    Change,
    Comparison,
    DeployedFlow,
    History,
    Replayed,
    compare,
    replay,
)
from assetflow.core.values.conditions import Token
from assetflow.core.values.consumers import Consumer
from assetflow.core.values.events import Recording
from assetflow.core.wire.declarations import declaration_from_text
from assetflow.core.wire.deployments import Deployed
from assetflow.ledger.read.consumers import ConsumerReader
from assetflow.ledger.read.partitions import StateTopic
from assetflow.ledger.read.queues import PastReader
from assetflow.ledger.records import ConsumerRecord
from assetflow.ledger.sql.bulk import in_values
from assetflow.ledger.sql.rows import EVENT_COLUMNS, event_from_row
from assetflow.ledger.sql.tables import ALIAS_LINK, ASSET_NAME, DECISION, EVENT, EVENT_ALIAS, RECEIPT

_OF = RECEIPT.c.consumer == bindparam("consumer")
_IN_TIME = and_(EVENT.c.recorded > bindparam("since"), EVENT.c.recorded <= bindparam("until"))
_RECORDED = (
    select(*EVENT_COLUMNS, EVENT.c.recording).where(in_values(EVENT.c.uri, "uris"), _IN_TIME).order_by(EVENT.c.sequence)
)
_OF_RECEIPTS = RECEIPT.join(EVENT, EVENT.c.sequence == RECEIPT.c.sequence)
_DROPPED = select(EVENT.c.id).select_from(_OF_RECEIPTS).where(_OF, RECEIPT.c.status == "dropped", _IN_TIME)
_TAKEN_OUT = (
    select(EVENT.c.id, RECEIPT.c.at)
    .select_from(_OF_RECEIPTS)
    .where(_OF, RECEIPT.c.status == "removed", RECEIPT.c.at > bindparam("since"))
)
_ENDED = select(DECISION.c.id, DECISION.c.target_key, DECISION.c.made, DECISION.c.ended).where(
    DECISION.c.consumer == bindparam("consumer"),
    or_(DECISION.c.ended > bindparam("since"), DECISION.c.ended.is_(None)),
)
_OWNERS = select(ASSET_NAME.c.name, ASSET_NAME.c.uri).where(in_values(ASSET_NAME.c.name, "names"))
_FIRST = (
    select(func.min(EVENT.c.recorded))
    .join(EVENT_ALIAS, EVENT_ALIAS.c.sequence == EVENT.c.sequence)
    .where(EVENT_ALIAS.c.alias == ALIAS_LINK.c.alias, EVENT.c.uri == ALIAS_LINK.c.uri)
    .correlate(ALIAS_LINK)
    .scalar_subquery()
)
_LINKS = select(ALIAS_LINK.c.alias, ALIAS_LINK.c.uri, _FIRST).where(in_values(ALIAS_LINK.c.alias, "aliases"))


class CompareReader(StateTopic):
    """Compares deploys. All methods raise `LedgerError` if the ledger cannot be read."""

    def deployed(self) -> list[DeployedFlow]:
        """Return all deployments that the ledger knows."""
        reader = ConsumerReader(self._connect)
        consumers = [_deployed(each.consumer.name, each.consumer, each.declaration) for each in reader.all()]
        return consumers + [_deployed(name, None, text) for name, text in reader.unlisted().values()]

    def deploy(
        self,
        deployed: Sequence[DeployedFlow],
        wanted: Sequence[Deployed],
        now: datetime,
        *,
        renamed: Mapping[str, str],
        keep: Collection[str],
    ) -> Comparison:
        """Return what a deploy would change now; the parameters are those of `compare`."""
        with self._states.open(now) as state:
            return compare(state, deployed, wanted, now, renamed=renamed, keep=keep)

    def replayed(self, changes: Sequence[Change], since: datetime, until: datetime) -> list[Replayed]:
        """Return what each of some changes would have done since a moment.

        A consumer that was deployed later than that begins with its last deploy.
        """
        known = {each.consumer.id: each for each in ConsumerReader(self._connect).all()}
        histories = ((change, self.history(change, known, since, until)) for change in changes)
        return [replace(replay(each, history), after_deploy=history.since > since) for each, history in histories]

    def history(self, change: Change, known: Mapping[int, ConsumerRecord], since: datetime, until: datetime) -> History:
        """Return what was recorded for one consumer since a moment, or since its last deploy."""
        consumer = change.before
        tokens = consumer.schedule.tokens if consumer is not None else frozenset[Token]()
        tokens |= change.after.schedule.tokens if change.after is not None else frozenset()
        begins, beginning = since, Beginning()
        if consumer is not None:
            deployed = consumer.deployed or known[consumer.id].since
            begins = max(since, deployed)
            beginning = PastReader(self._connect).beginning(consumer, deployed, begins)
        of = {"consumer": None if consumer is None else consumer.id, "since": begins, "until": until}
        with self._connect() as connection:
            owners, links = _named(connection, tokens)
            uris = {token.value for token in tokens if token.kind == "uri"}
            uris |= {uri for _, uri in (*owners, *links)}
            dropped = {*connection.scalars(_DROPPED, of)}
            rows = connection.execute(_RECORDED, {"uris": list(uris), **of})
            groups = [(number, list(map(event_from_row, group))) for number, group in groupby(rows, itemgetter(-1))]
            ended = connection.execute(_ENDED, of).all()
            taken_out = [(row[0], row[1]) for row in connection.execute(_TAKEN_OUT, of)]
        recordings = [Recording(number, tuple(e for e in found if e.id not in dropped)) for number, found in groups]
        return History(
            begins,
            until,
            beginning,
            [each for each in recordings if each.events],
            taken_out,
            {number: at for number, _, made, at in ended if made > begins},
            [(at, key) for _, key, made, at in ended if made <= begins and at is not None],
            owners,
            [link for link, first in links.items() if first is None or first <= begins],
        )


def _named(
    connection: Connection, tokens: Collection[Token]
) -> tuple[list[tuple[str, str]], dict[tuple[str, str], datetime | None]]:
    """Return the URIs of names, and those of aliases, each with its first update through the alias that is kept."""
    given = {kind: [token.value for token in tokens if token.kind == kind] for kind in ("name", "alias")}
    owners = [(row[0], row[1]) for row in connection.execute(_OWNERS, {"names": given["name"]})]
    links = {(row[0], row[1]): row[2] for row in connection.execute(_LINKS, {"aliases": given["alias"]})}
    return owners, links


def _deployed(name: str, consumer: Consumer | None, text: str) -> DeployedFlow:
    produces = declaration_from_text(text, where=name).produces if '"produces":' in text else ()
    return DeployedFlow(name, consumer, text, tuple(outlet.token for outlet in produces))
