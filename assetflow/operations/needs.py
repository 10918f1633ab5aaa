"""Runs that have ended with their reasons, and what needs a person. Contract 4.8, 4.9."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from assetflow.core.rules.ended_runs import EndedRun, Failing
from assetflow.core.shapes import HIDDEN, shape
from assetflow.core.values.keeping import causes_in_words
from assetflow.core.values.words import asset_path, consumer_path, count, run_path, some
from assetflow.ledger.read.reader import Reader
from assetflow.ledger.records import MissedDeadlineRecord, RefusedRecord

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
        *_refused_deployments(reader),
        *_refused_updates(reader, now),
        *_watchers(reader),
    ]
    silent = [Need("server", name, reason, None, 0, "/") for name, reason in servers.items()]
    return [*silent, *sorted(found, key=lambda each: (-each.below, -_seconds(each.since)))]


def alike(found: Sequence[Need]) -> list[list[Need]]:
    """Return what needs a person in the same order, what failed in the same way with the same error together."""
    groups: dict[object, list[Need]] = {}
    for each in found:
        groups.setdefault((each.kind, each.error) if each.error else id(each), []).append(each)
    return list(groups.values())


def _seconds(moment: datetime | None) -> float:
    return 0.0 if moment is None else moment.timestamp()


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


def _refused_deployments(reader: Reader) -> Iterator[Need]:
    for each in reader.refused_deployments():
        yield Need("refused deployment", each.name, each.words, None, 0, consumer_path(each.name))


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
