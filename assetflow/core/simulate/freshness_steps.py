"""The actions of steps about versions, runs that last, and freshness, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from assetflow.core.simulate.conditions import read_asset
from assetflow.core.simulate.reading import Deferred, as_bool, as_choice, as_list, as_object, as_text, refuse
from assetflow.core.values.assets import Asset

RUN_STATES = ("completed", "failed", "cancelled", "crashed")


@dataclass(frozen=True)
class Ending:
    """How a run ends.

    Attributes:
        versions: the data versions that it gives, by output.
        skips: the outputs that it confirms instead of updating them.
        made: the outputs that it updated, whatever its state; `None` for all or none of them.
    """

    state: str = "completed"
    versions: Mapping[str, object] = field(default_factory=dict[str, object])
    skips: tuple[str, ...] = ()
    made: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ObserveStep:
    """An observation of a source: its version, or the versions of its keys; `None` if it failed."""

    asset: Deferred[Asset]
    version: object


@dataclass(frozen=True)
class TriggerStep:
    """Start a manual run, which consumes nothing."""

    consumer: str
    partition_key: str | None = None


@dataclass(frozen=True)
class BeginStep:
    """The runs of a consumer begin, later than they were asked for."""

    consumer: str
    partition_key: str | None = None


@dataclass(frozen=True)
class FinishStep:
    """End the runs of a consumer, or those of one key."""

    consumer: str
    partition_key: str | None = None
    ending: Ending = field(default_factory=Ending)


@dataclass(frozen=True)
class AgainStep:
    """The last run of a consumer, or of one key, goes on again after its end: somebody retries it in Prefect (4.7)."""

    consumer: str
    partition_key: str | None = None


@dataclass(frozen=True)
class RunStep:
    """A manual run from begin to end."""

    consumer: str
    partition_key: str | None = None
    ending: Ending = field(default_factory=Ending)


@dataclass(frozen=True)
class RetryStep:
    """Forget what was tried and waived (8.7)."""

    consumer: str
    partition_key: str | None = None


@dataclass(frozen=True)
class BackfillStep:
    """Backfill an asset, and what lies below it (8.18)."""

    asset: Deferred[Asset]
    keys: tuple[str, ...] | None
    down: bool
    dry_run: bool


@dataclass(frozen=True)
class StatusStep:
    """The status of some items, or of everything that is read or made (8.9)."""

    items: tuple[tuple[Deferred[Asset], str | None], ...] | None


@dataclass(frozen=True)
class FreshnessStep:
    """The data time and the state of some assets, or of all that have a policy (8.12, 8.13)."""

    assets: tuple[Deferred[Asset], ...] | None


@dataclass(frozen=True)
class PlanStep:
    """A step that asks for the plan: what would run now, and what holds the rest back (8.16)."""


FreshnessAction = (
    ObserveStep
    | TriggerStep
    | BeginStep
    | FinishStep
    | AgainStep
    | RunStep
    | RetryStep
    | BackfillStep
    | StatusStep
    | FreshnessStep
    | PlanStep
)

Reader = Callable[[Mapping[str, object], str], FreshnessAction]

_ENDING_KEYS = ("partition_key", "state", "versions", "skips", "made")
STEP_KEYS: dict[str, tuple[str, ...]] = {
    "observe": ("version", "error"),
    "trigger": ("partition_key",),
    "begin": ("partition_key",),
    "finish": _ENDING_KEYS,
    "again": ("partition_key",),
    "run": _ENDING_KEYS,
    "retry": ("partition_key",),
}


def _read_observe(data: Mapping[str, object], where: str) -> ObserveStep:
    if ("version" in data) == ("error" in data):
        refuse("an observation has either a version or an error", where)
    return ObserveStep(read_asset(data["observe"], where), data.get("version"))


def _read_ending(data: Mapping[str, object], where: str) -> Ending:
    made = data.get("made")
    versions = as_object(data.get("versions") or {}, f"{where}, versions")
    return Ending(
        as_choice(data.get("state", "completed"), RUN_STATES, f"{where}, state"),
        {Asset(uri).uri: version for uri, version in versions.items()},
        _uris(data.get("skips") or [], f"{where}, skips"),
        None if made is None else _uris(made, f"{where}, made"),
    )


def _uris(value: object, where: str) -> tuple[str, ...]:
    return tuple(Asset(as_text(each, where)).uri for each in as_list(value, where))


def _read_backfill(data: Mapping[str, object], where: str) -> BackfillStep:
    given = as_object(data["backfill"], where, ("asset", "down", "keys", "dry_run"))
    keys = given.get("keys")
    return BackfillStep(
        read_asset(given.get("asset"), where),
        None if keys is None else tuple(as_text(key, f"{where}, keys") for key in as_list(keys, where)),
        as_bool(given.get("down", False), f"{where}, down"),
        as_bool(given.get("dry_run", False), f"{where}, dry_run"),
    )


def _read_status(data: Mapping[str, object], where: str) -> StatusStep:
    if data["status"] is True:
        return StatusStep(None)
    items: list[tuple[Deferred[Asset], str | None]] = []
    for each in as_list(data["status"], where):
        if isinstance(each, list):
            asset, key = cast("list[object]", each)
            items.append((read_asset(asset, where), as_text(key, where)))
        else:
            items.append((read_asset(each, where), None))
    return StatusStep(tuple(items))


def _read_freshness(data: Mapping[str, object], where: str) -> FreshnessStep:
    if data["freshness"] is True:
        return FreshnessStep(None)
    return FreshnessStep(tuple(read_asset(each, where) for each in as_list(data["freshness"], where)))


def _read_plan(data: Mapping[str, object], where: str) -> PlanStep:
    if not as_bool(data["plan"], where):
        refuse("plan has to be true", where)
    return PlanStep()


def _key(data: Mapping[str, object], where: str) -> str | None:
    key = data.get("partition_key")
    return None if key is None else as_text(key, f"{where}, partition_key")


def _of_key(kind: str, make: Callable[[str, str | None], FreshnessAction]) -> Reader:
    return lambda data, where: make(as_text(data[kind], where), _key(data, where))


def _of_ending(kind: str, make: Callable[[str, str | None, Ending], FreshnessAction]) -> Reader:
    return lambda data, where: make(as_text(data[kind], where), _key(data, where), _read_ending(data, where))


READERS: dict[str, Reader] = {
    "observe": _read_observe,
    "trigger": _of_key("trigger", TriggerStep),
    "begin": _of_key("begin", BeginStep),
    "finish": _of_ending("finish", FinishStep),
    "again": _of_key("again", AgainStep),
    "run": _of_ending("run", RunStep),
    "retry": _of_key("retry", RetryStep),
    "backfill": _read_backfill,
    "status": _read_status,
    "freshness": _read_freshness,
    "plan": _read_plan,
}
