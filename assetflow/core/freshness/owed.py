"""What a flow with keys owes after a deploy or a pause is asked for in parts, the greatest keys first (contract 8.18).

The rest has the verdict `owed`, and follows when runs of the flow end. What changes later is asked for at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from assetflow.core.freshness.judging import is_out_of_date
from assetflow.core.freshness.records import Target, TargetRecord
from assetflow.core.freshness.state.agenda import Agenda
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.verdicts import Verdict

Verdicts = dict[Target, Verdict | None]


def look_again(book: Book, until: datetime) -> None:
    """Put on the agenda what is due: failed runs that are repeated, and targets that a deploy or a resume set aside.

    Parameters:
        until: up to when it is due.
    """
    due = book.targets.take_due(until, book.most_judged)
    book.targets.load(due)
    for target in due:
        retry_at = book.targets.find(target).retry_at
        if retry_at is not None and retry_at <= until:
            book.agenda.add(target)
            continue
        book.agenda.add_owing(target)
        if retry_at is not None:
            book.targets.wait_for_retry(target, retry_at)


def hold_back(book: Book, verdicts: Verdicts, owing: Collection[Target]) -> Verdicts:
    """Return the verdicts of a pass, in which flows that owe too many targets for one time run the greatest keys.

    Parameters:
        owing: the targets that are judged because of a deploy or a pause of their flow.
    """
    numbers = dict.fromkeys(each.consumer for each in owing if each.key is not None)
    for number in numbers if book.most_owed is not None else ():
        asked = _asked(verdicts, number)
        owed = sorted((each for each in asked if each in owing), key=_key, reverse=True)
        room = max(0, (book.most_owed or 0) - len(book.runs.of(number)) - (len(asked) - len(owed)))
        for target in owed[room:]:
            verdict = verdicts[target]
            verdicts[target] = verdict and replace(verdict, name="owed")
    return verdicts


def without_waiver(book: Book, target: Target) -> TargetRecord:
    """Return what is remembered of a target; with `catchup="all"`, nothing that is out of date now is waived (8.8)."""
    record, node = book.targets.find(target), book.graph.find(target.consumer)
    if record.waived is None or node is None or not node.is_eager or node.keeping is None:
        return record
    owes_all = node.keeping.catchup == "all" and is_out_of_date(book, node, target.key)
    return replace(record, waived=None) if owes_all else record


def flows_that_pay(book: Book, agenda: Agenda) -> Collection[int]:
    """Return the flows with keys of which a run has ended, so that the next targets that they owe may run."""
    if book.most_owed is None:
        return ()
    ended = [each for each in agenda.targets if each.key is not None]
    book.targets.load(ended)
    return dict.fromkeys(each.consumer for each in ended if book.targets.find(each).verdict == "in_progress")


def next_targets(book: Book, number: int, verdicts: Mapping[Target, Verdict | None]) -> list[Target]:
    """Return the greatest targets that a flow owes, as many as may run beside those that do.

    Parameters:
        verdicts: what was said in this pass.
    """
    node = book.graph.find(number)
    room = (book.most_owed or 0) - len(book.runs.of(number)) - len(_asked(verdicts, number))
    # Of those that were set aside, most may be up to date: the clock goes on with them.
    is_enough = book.most_judged is not None and len(verdicts) >= 2 * book.most_judged
    if node is None or node.rests or room <= 0 or is_enough:
        return []
    found = book.targets.with_verdict("owed", number, room + len(verdicts))
    return sorted((each for each in found if each not in verdicts), key=_key, reverse=True)[:room]


def as_said(book: Book, verdicts: Verdicts) -> Verdicts:
    """Return verdicts in which those targets still wait that a flow owes and that the last pass held back."""
    held = (each for each, verdict in verdicts.items() if verdict is not None and verdict.name == "run")
    for target in [each for each in held if book.targets.find(each).verdict == "owed"]:
        verdict = verdicts[target]
        verdicts[target] = verdict and replace(verdict, name="owed")
    return verdicts


def _asked(verdicts: Mapping[Target, Verdict | None], number: int) -> list[Target]:
    found = (each for each in verdicts.items() if each[0].consumer == number)
    return [target for target, verdict in found if verdict is not None and verdict.name == "run"]


def _key(target: Target) -> str:
    return target.key or ""
