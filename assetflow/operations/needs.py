"""Runs that have ended with their reasons, what needs a person, and what is planned. Contract 4.8, 4.9."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from assetflow.core.explain.plan import PlannedConsumer
from assetflow.core.freshness.asset_freshness import AssetFreshness
from assetflow.core.rules.ended_runs import EndedRun, Failing
from assetflow.core.shapes import HIDDEN, shape
from assetflow.core.values.announcements import MissedDeadlineRecord
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.values.words import ago, asset_path, consumer_path, count, run_path, some
from assetflow.core.values.words import at as told
from assetflow.errors import InvalidCall
from assetflow.ledger.read.consumers import ConsumerOverview
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import RefusedRecord
from assetflow.operations.lookup import number_of, with_plans

NeedKind = Literal[
    "server",
    "failed",
    "crashed",
    "failed check",
    "undeliverable",
    "missed deadline",
    "backfill failed",
    "backfill stopped",
    "refused deployment",
    "refused update",
    "watcher",
]
# So many of a kind are looked at, the newest first.
MOST = 100
# A refused update is told of for a day: nothing makes it good. So is a check that nobody has mended.
LATELY = timedelta(days=1)


@shape
class Need:
    """Something that needs a person."""

    kind: NeedKind
    what: str
    """Its name: a flow with its key, a watcher, an asset."""
    words: str
    """What is wrong, in words."""
    since: datetime | None
    below: int
    """How many flows further down wait for it."""
    page: str
    """The path of its page."""
    error: str = field(default="", metadata=HIDDEN)
    """What failed alike has the same error, whenever and how often it failed."""


def needs_of(reader: Reader, now: datetime, servers: Mapping[str, str]) -> list[Need]:
    """Return what needs a person: first what keeps everything waiting, then in the order of how much waits below.

    Parameters:
        servers: what does not answer or run, with the reason.
    """
    below, failing = reader.graph.whole().below, reader.ended_runs.failing()
    found = [
        *_failed(failing, below),
        *_failed_checks(reader, now),
        *_undeliverable(reader, below),
        *_missed(reader, below),
        *_backfills(reader, failing),
        *(
            Need("refused deployment", each.name, each.words, None, 0, consumer_path(each.name))
            for each in reader.refused_deployments()
        ),
        *_refused_updates(reader, now),
        *_watchers(reader),
    ]
    silent = [Need("server", name, reason, None, 0, "/") for name, reason in servers.items()]
    return [*silent, *sorted(found, key=lambda each: (-each.below, -each.since.timestamp() if each.since else 0))]


def alike(found: Sequence[Need]) -> list[list[Need]]:
    """Return what needs a person in the same order, what failed in the same way with the same error together."""
    groups: dict[object, list[Need]] = {}
    for each in found:
        groups.setdefault((each.kind, each.error) if each.error else id(each), []).append(each)
    return list(groups.values())


Below = Callable[[str], Sequence[str]]


def _failed(failing: Sequence[Failing], below: Below) -> Iterator[Need]:
    for each in failing:
        kind = "crashed" if each.last.outcome == "crashed" else "failed"
        page = run_path(each.last.flow_run_id)
        yield Need(kind, each.what, each.words, each.since, len(below(each.last.flow)), page, each.last.error)


def _failed_checks(reader: Reader, now: datetime) -> Iterator[Need]:
    for each in reader.checks.not_made_good(now - LATELY):
        what = "held back: " if each.held_back else "warning: "
        words = what + "; ".join(result.describe() for result in each.failed)
        yield Need("failed check", _with_key(each.name, each.partition_key), words, each.at, 0, asset_path(each.uri))


def _undeliverable(reader: Reader, below: Below) -> Iterator[Need]:
    for each in reader.decisions.find(status="undeliverable", limit=MOST):
        what = _with_key(each.consumer_name, each.target_key)
        number = len(below(each.consumer_name))
        since, page = each.ended or each.made, f"/decisions/{each.id}"
        yield Need("undeliverable", what, each.error, since, number, page, each.error)


def _missed(reader: Reader, below: Below) -> Iterator[Need]:
    """Yield the last missed deadline of each consumer and key, unless a decision has come since."""
    newest: dict[tuple[int, str | None], MissedDeadlineRecord] = {}
    for each in reader.deadlines.missed(limit=MOST):
        newest.setdefault((each.consumer, each.target_key), each)
    names = reader.assets.names({uri for each in newest.values() for uri in each.missing})
    for (consumer, key), each in newest.items():
        later = reader.decisions.find(consumer=consumer, target_key=key, limit=1)
        if reader.consumers.named(each.consumer_name) is None or (later and later[0].made >= each.due):
            continue
        missing = f"still needs {some([names[uri] for uri in each.missing])}" if each.missing else "no decision came"
        number, page = len(below(each.consumer_name)), consumer_path(each.consumer_name)
        yield Need("missed deadline", _with_key(each.consumer_name, key), missing, each.due, number, page)


def _backfills(reader: Reader, failing: Sequence[Failing]) -> Iterator[Need]:
    """Yield the backfills that are stopped, and those with a target that failed and was not made good."""
    targets = {(each.last.flow, each.last.target_key) for each in failing}
    for each in reader.backfills.all(limit=MOST):
        of, page = each.backfill, f"/backfills/{each.number}"
        if each.state == "stopped":
            yield Need("backfill stopped", f"Backfill {each.number}", f"{of.todo} to do", of.stopped, 0, page)
        elif each.state == "failed":
            failed = reader.backfills.targets(each.number, state="failed", limit=MOST)
            if left := [one for one in failed if (one.consumer, one.target_key) in targets]:
                first = _with_key(left[0].consumer, left[0].target_key)
                words = f"{count(len(left), 'target')} of {each.total} failed: {first}"
                yield Need("backfill failed", f"Backfill {each.number}", words, of.ended, 0, page)


def _refused_updates(reader: Reader, now: datetime) -> Iterator[Need]:
    """Yield what was refused lately, by where it came from."""
    by_source: defaultdict[str, list[RefusedRecord]] = defaultdict(list)
    for each in reader.events.refused(limit=MOST):
        if each.at > now - LATELY:
            by_source[each.source].append(each)
    for source, found in by_source.items():
        last = found[0].reason
        words = last if len(found) == 1 else f"{count(len(found), 'time')} in a day, last: {last}"
        yield Need("refused update", source, words, found[-1].at, 0, "/activity")


def _watchers(reader: Reader) -> Iterator[Need]:
    for each in reader.watchers.failing():
        page = asset_path(each.assets[0].uri) if each.assets else "/assets?show=watcher"
        yield Need("watcher", each.name, each.error, each.since, 0, page)


def _with_key(name: str, key: str | None) -> str:
    return name if key is None else f"{name} {key}"


_OTHERS = {"time": "its timetable", "hand": "started by hand", "decision": "a decision that was pruned"}


@shape
class ListedRun(EndedRun):
    """A run that has ended, as lists show it."""

    because: str = ""
    """Why it ran, in words."""
    made_good: bool | None = None
    """Whether something made it good since; null for a run that did not fail."""


def list_runs(
    reader: Reader,
    *,
    failed: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    flow: str | None = None,
    target_key: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[ListedRun]:
    """Return runs that have ended, newest first; the parameters are those of `EndedRunReader.find`."""
    of = {"failed": failed, "since": since, "until": until, "flow": flow, "target_key": target_key}
    found = reader.ended_runs.find(**of, before=before, limit=limit)  # type: ignore[arg-type]
    return with_reasons(reader, found)


def with_reasons(reader: Reader, found: Sequence[EndedRun]) -> list[ListedRun]:
    """Return runs with why they ran, and whether what failed was made good."""
    reasons = _reasons(reader, found)
    return [
        ListedRun(
            **{each.name: getattr(run, each.name) for each in fields(run)},  # type: ignore[arg-type]
            because=reasons.get(run.decision) or _OTHERS[run.started_by],
            made_good=reader.ended_runs.is_made_good(run) if run.has_failed else None,
        )
        for run in found
    ]


def _reasons(reader: Reader, found: Sequence[EndedRun]) -> Mapping[UUID | None, str]:
    """Return why decisions were made, by their ids."""
    decisions = reader.decisions.with_ids(run.decision for run in found if run.decision is not None)
    consumed = reader.decisions.consumed_assets([each.number for each in decisions])
    return {
        each.id: some([asset.shown for asset in consumed.get(each.number, ())])
        or causes_in_words(each.because)
        or each.kind
        for each in decisions
    }


def planned(
    reader: Reader, now: datetime, *, consumer: str | None = None, key: str | None = None, at: datetime | None = None
) -> list[PlannedConsumer]:
    """Return what Eager and Lazy consumers would run, by name, and what holds them back.

    Parameters:
        consumer: only this one: flow/deployment, its id, or a flow with one consumer.
        key: only this target key.
        at: as of this later time, UTC; now by default.

    Raises:
        UnknownConsumer: no consumer is called so.
        InvalidCall: the time is over, or no such consumer has the key.
    """
    if at is not None and at < now:
        raise InvalidCall(
            f"{told(at)} is over: a plan says what would run from now on",
            rule="8.16",
            fix="Name a later time, or none for now. `assetflow decisions ls` lists what did run",
        )
    found = reader.freshness.plan(at or now, number_of(reader, consumer), key)
    if key is not None and not found:
        of = "no Eager consumer" if consumer is None else f"{consumer} is not an Eager consumer that"
        raise InvalidCall(
            f"{of} has key {key!r}",
            rule="8.3",
            fix="`assetflow assets status URI --key KEY` tells of the key of an asset",
        )
    return found


@dataclass(frozen=True)
class OldAsset:
    """An asset that is too old, or will be.

    Attributes:
        name: its readable name.
        doing: what is being done about it, as a sentence.
    """

    freshness: AssetFreshness
    name: str
    doing: str


def too_old_now(policies: Sequence[AssetFreshness]) -> list[AssetFreshness]:
    """Return the assets that are older than their policy allows, then those that get a warning."""
    return sorted((each for each in policies if each.is_too_old), key=lambda each: each.record.state)


def too_old_soon(
    reader: Reader, policies: Sequence[AssetFreshness], now: datetime
) -> list[tuple[datetime, AssetFreshness]]:
    """Return the assets that will be too old at their next deadline if nothing changes, the next deadline first.

    A Lazy flow makes its asset before, when it is due.
    """
    candidates = [(deadline, each) for each in policies if (deadline := each.too_old_at(now)) is not None]
    lazy = reader.consumers.lazy() if candidates else set[str]()
    found = [
        (deadline, each)
        for deadline, each in candidates
        if each.maker not in lazy or each.record.due is None or each.record.due >= deadline
    ]
    return sorted(found, key=lambda item: (item[0], item[1].uri))


def with_doing(reader: Reader, found: Sequence[AssetFreshness], now: datetime) -> list[OldAsset]:
    """Return some of these assets, each with its name and what is being done about it."""
    if not found:
        return []
    names = reader.assets.names([each.uri for each in found])
    doing = _doing(reader, {each.maker for each in found if each.maker is not None}, now)
    return [OldAsset(each, names[each.uri], _of_asset(reader, each, doing, now)) for each in found]


def _of_asset(reader: Reader, each: AssetFreshness, doing: Mapping[str, str], now: datetime) -> str:
    """Return what is being done about an asset; if its flow has nothing to do, which source its data is from."""
    told = doing.get(each.maker or "")
    if told is None:
        return "No flow makes it"
    if told:
        return f"{each.maker}: {told}"
    nothing = f"{each.maker} has nothing to do"
    *_, last = [None, *reader.freshness.data_path(each.uri)[1:]]
    return nothing if last is None or last.moment is None else f"{nothing}: {last.name} is from {ago(last.moment, now)}"


def _doing(reader: Reader, makers: set[str], now: datetime) -> Mapping[str, str]:
    """Return what each of these flows does now, or what holds it back, by its name; "" if it has nothing to do."""
    records = [record for name in sorted(makers) if (record := reader.consumers.named(name)) is not None]
    listed = with_plans(reader, reader.consumers.overviews(records), now)
    told = {each.name: _of_flow(each) for each in listed}
    return {name: f"{words[:1].lower()}{words[1:].rstrip('.')}" for name, words in told.items()}


def _of_flow(maker: ConsumerOverview) -> str:
    if maker.plan is None:
        return _of_event_schedule(maker)
    return "" if maker.plan.is_up_to_date else maker.plan.words


def _of_event_schedule(maker: ConsumerOverview) -> str:
    last = maker.last
    if last is not None and last.ended is None:
        if last.status == "undeliverable":
            return "Its run could not be started"
        return "A run goes on" if last.status == "launched" else "A run is asked for"
    if maker.paused:
        return f"Held back, because it is {maker.paused.replace(', ', ' and ')}"
    if maker.record.consumer.schedule.tokens:
        return f"It waits: {maker.state}"
    return "It runs at its next time"
