"""The current troubles: every page shows them in a banner at its top, which open pages load again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request, Response

from assetflow.api.requests import Backend
from assetflow.ledger.lease import Evaluators, downtime, failing_words, not_watching
from assetflow.ledger.records import WatchingStatus

_OF_PREFECT = ("Prefect", "listening", "catching up", "reading Prefect", "launching", "asking for runs")


@dataclass(frozen=True)
class ShownTrouble:
    """Something that does not work, described for the person who has to act.

    Attributes:
        live: the text beside the "Live" sign.
        last_sign: the evaluator's last sign of life, if it is what does not work.
        concerned: the list of what suffers from it, as its address and its name; empty for none.
    """

    title: str
    detail: str
    live: str
    last_sign: datetime | None = None
    concerned: tuple[str, str] | tuple[()] = ()


def is_prefect_away(backend: Backend, evaluators: Evaluators) -> bool:
    """Return True if the evaluator cannot reach Prefect now."""
    return any(name.startswith(_OF_PREFECT) for name in backend.current_troubles(evaluators))


def troubles_of(backend: Backend, evaluators: Evaluators | None = None) -> list[ShownTrouble]:
    """Return the troubles that keep updates from leading to runs.

    Parameters:
        evaluators: the evaluators, if they were read already.
    """
    found: list[ShownTrouble] = []
    evaluators = evaluators or backend.ledger.reader.evaluators()
    down = downtime(evaluators)
    if down is not None:
        last_sign = None if evaluators.lease is None else evaluators.lease.renewed
        waiting = ("/consumers?show=waiting", "Consumers with updates")
        found.append(ShownTrouble(down.reason, _sentence(down.effect), "no evaluator", last_sign, waiting))
    found += _of_watchers(backend.ledger.reader.watchers.status())
    current = backend.current_troubles(evaluators)
    of_prefect = list(dict.fromkeys(reason for name, reason in current.items() if name.startswith(_OF_PREFECT)))
    if of_prefect:
        told = "; ".join(of_prefect)
        effect = f"Runs wait until it answers. {told}"
        waiting = ("/activity?show=waiting", "Decisions that wait")
        found.append(ShownTrouble("Prefect cannot be reached", effect, "no Prefect", concerned=waiting))
    # Whatever has the same reason ends with it, and needs no banner of its own.
    others = {name: reason for name, reason in current.items() if reason not in of_prefect}
    return [*found, *(ShownTrouble(f"Trouble with {name}", reason, "trouble") for name, reason in others.items())]


def _of_watchers(watching: WatchingStatus) -> list[ShownTrouble]:
    if (away := not_watching(watching)) is not None:
        return [ShownTrouble(away.reason, _sentence(away.effect), "no watchers", watching.last_sign)]
    words = failing_words(watching)
    failing = ("/assets?show=watcher", "Their assets")
    return [ShownTrouble("Trouble with watchers", _sentence(words), "trouble", concerned=failing)] if words else []


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}" + ("" if text[-1] in ".?!" else ".")


router = APIRouter()


@router.get("/troubles")
def show_troubles(request: Request) -> Response:
    """Show the banner alone."""
    return request.app.state.pages.show(request, "troubles.html", troubles=troubles_of(request.app.state.backend))
