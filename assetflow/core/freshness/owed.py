"""What a flow with keys owes after a deploy or a pause is asked for in parts, the greatest keys first (contract 8.18).

The rest has the verdict `owed`, and follows when runs of the flow end. What changes later is asked for at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from assetflow.core.freshness.records import Target
from assetflow.core.freshness.state.agenda import Agenda
from assetflow.core.freshness.state.book import Book
from assetflow.core.freshness.verdicts import Verdict

Verdicts = dict[Target, Verdict | None]


def hold_back(book: Book, verdicts: Verdicts, flows: Iterable[int]) -> Verdicts:
    """Return the verdicts of a pass, in which flows that owe too many targets for one time run the greatest keys.

    Parameters:
        flows: those of which all targets were judged.
    """
    for number in flows if book.most_owed is not None else ():
        asked = sorted((each for each in _asked(verdicts, number) if each.key), key=_key, reverse=True)
        room = max(0, (book.most_owed or 0) - len(book.runs.of(number)))
        for target in asked[room:]:
            verdict = verdicts[target]
            verdicts[target] = verdict and replace(verdict, name="owed")
    return verdicts


def flows_that_pay(book: Book, agenda: Agenda) -> Collection[int]:
    """Return the flows with keys of which a run has ended, so that the next targets that they owe may run."""
    if book.most_owed is None:
        return ()
    ended = (each for each in agenda.targets if each.key is not None)
    return dict.fromkeys(each.consumer for each in ended if book.targets.find(each).verdict == "in_progress")


def next_targets(book: Book, number: int, verdicts: Mapping[Target, Verdict | None]) -> list[Target]:
    """Return the greatest targets that a flow owes, as many as may run beside those that do.

    Parameters:
        verdicts: what was said in this pass.
    """
    node = book.graph.find(number)
    room = (book.most_owed or 0) - len(book.runs.of(number)) - len(_asked(verdicts, number))
    if node is None or node.rests or room <= 0:
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
