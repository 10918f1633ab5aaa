"""Tell whether an evaluator is alive, and the watchers. CLI, API and pages show the answer in the same words."""

from __future__ import annotations

from dataclasses import dataclass
from socket import gethostname

from assetflow.core.values.words import count
from assetflow.ledger.lease import Evaluators, is_running
from assetflow.ledger.records import WatchingStatus


@dataclass(frozen=True)
class Downtime:
    """Why nobody evaluates, and what follows from it."""

    reason: str
    effect: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.effect}"


STOPPED = Downtime(
    "No evaluator is running",
    "updates and decisions wait until one is started, with `assetflow evaluator start`",
)
SILENT = Downtime(
    "The evaluator hangs, or cannot write to the ledger", "updates and decisions wait; its log has the reason"
)

NOT_WATCHING = Downtime(
    "No process watches what is outside",
    "messages, files and tables wait until one is started, with `assetflow watcher start`",
)


def not_watching(watching: WatchingStatus) -> Downtime | None:
    """Return why no watcher works now, or `None` if one process runs them, or there are none."""
    return NOT_WATCHING if watching.watchers and not watching.alive else None


def failing_words(watching: WatchingStatus) -> str:
    """Return which watchers fail and why, the first of them in full; empty if none fails or nobody watches."""
    if not watching.failing or not watching.alive:
        return ""
    name, reason = next(iter(watching.failing.items()))
    more = len(watching.failing) - 1
    others = f"; {count(more, 'other watcher')} too, see `assetflow watchers ls`" if more else ""
    return f"the watcher {name} fails: {reason}{others}"


def downtime(evaluators: Evaluators) -> Downtime | None:
    """Return why nobody evaluates now, or `None` if an evaluator is alive."""
    if evaluators.alive:
        return None
    return SILENT if is_silent(evaluators) else STOPPED


def is_silent(evaluators: Evaluators) -> bool:
    """Return True if the evaluator's process is running, on this machine, but does not renew its lease."""
    lease = evaluators.lease
    if evaluators.alive or lease is None or lease.holder.host != gethostname():
        return False
    return is_running(lease.holder.pid)
