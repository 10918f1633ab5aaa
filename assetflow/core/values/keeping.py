"""How a flow keeps its outputs up to date: the value behind `Eager`, `OnMissing` and `Lazy` (contract 8.1 to 8.8)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, NamedTuple, cast

from assetflow.core.partitions import EveryTargetMapper, PartitionMapper
from assetflow.core.shapes import shape
from assetflow.core.values.assets import Asset, AssetRef, check_code_version
from assetflow.core.values.conditions import Token
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.errors import InvalidSchedule

Kind = Literal["eager", "lazy"]
Change = Literal["data", "code"]
Catchup = Literal["none", "latest", "all"]

CHANGES: frozenset[Change] = frozenset({"data", "code"})
RETRY_DELAY = timedelta(minutes=5)


@dataclass(frozen=True)
class Keeping:
    """How a flow keeps its outputs up to date.

    Attributes:
        kind: "eager" runs when something changed, "lazy" as seldom as the freshness policies below allow.
        starts: the inputs whose changes start runs; empty if all inputs do (8.4).
        on: which changes start runs; none of them for a flow that makes only what was never made (8.4).
        catchup: which of the targets that are out of date are still to be run after a deploy or a pause (8.8).
        lookback: only that many of the greatest keys are run; `None` for all (8.8).
        retries, retry_delay: how often a run that failed is repeated for the same inputs, and after which delay (8.7).
        expected_duration: how long a run takes, as long as none has completed (8.15).
        mappers: which keys of an input a flow without partitions reads (8.3).

    Raises:
        InvalidSchedule: an option has a value that it cannot have.
    """

    kind: Kind
    starts: tuple[Asset | AssetRef, ...] = ()
    on: Collection[Change] = CHANGES
    catchup: Catchup = "latest"
    lookback: int | None = None
    retries: int = 0
    retry_delay: timedelta = RETRY_DELAY
    expected_duration: timedelta | None = None
    mappers: tuple[tuple[Asset | AssetRef, PartitionMapper], ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "on", _changes(self.on))
        if cast(str, self.catchup) not in ("none", "latest", "all"):
            raise InvalidSchedule(f"catchup is {self.catchup!r}", rule="8.8", fix='Write "none", "latest" or "all"')
        if self.lookback is not None:
            _check_whole("lookback", self.lookback, least=1, rule="8.8")
        _check_whole("retries", self.retries, least=0, rule="8.7")
        _check_span("retry_delay", self.retry_delay, rule="8.7")
        if self.expected_duration is not None:
            _check_span("expected_duration", self.expected_duration, rule="8.15")
        for _, mapper in self.mappers:
            if not isinstance(mapper, EveryTargetMapper):
                raise InvalidSchedule(
                    f"a flow without partitions has no target keys, but there is a mapper to {mapper.describe()}",
                    rule="8.3",
                    fix="Give AllKeysMapper(), LastMapper() or KeysMapper([...]); or a default_partition_mapper",
                )

    @property
    def is_eager(self) -> bool:
        return self.kind == "eager"

    @property
    def start_tokens(self) -> frozenset[Token]:
        return frozenset(start.token for start in self.starts)

    @property
    def named_assets(self) -> tuple[Asset, ...]:
        """The assets that the schedule names, in order: it declares their names (contract 1.2)."""
        named = (*self.starts, *(target for target, _ in self.mappers))
        return tuple(each for each in named if isinstance(each, Asset))

    def describe(self) -> str:
        """Return the schedule in words: "when what it was made from is out of date"."""
        if not self.is_eager:
            return "as seldom as the freshness policies below it allow"
        of = f": {', '.join(start.describe() for start in self.starts)}" if self.starts else ""
        if not self.on:
            return f"when it was never made{of}"
        words = {CHANGES: "what it was made from", frozenset({"data"}): "the data that it was made from"}
        return f"when {words.get(frozenset(self.on), 'the code that it was made with')} is out of date{of}"


def _changes(on: object) -> frozenset[Change]:
    given = frozenset(cast("Collection[object]", on)) if isinstance(on, list | tuple | set | frozenset) else None
    if given is None or not given <= CHANGES:
        raise InvalidSchedule(f"on is {on!r}", rule="8.4", fix='Write on=["data", "code"], or one of the two')
    return cast("frozenset[Change]", given)


def _check_whole(name: str, value: object, *, least: int, rule: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidSchedule(
            f"`{name}` must be a whole number of at least {least}, not {value!r}",
            rule=rule,
            fix=f"Write {name}={least}",
        )


def _check_span(name: str, value: object, *, rule: str) -> None:
    if not isinstance(value, timedelta) or value < timedelta():
        raise InvalidSchedule(
            f"`{name}` must be a timedelta of zero or more, not {value!r}", rule=rule, fix="Write timedelta(minutes=5)"
        )


@dataclass(frozen=True)
class Output:
    """An asset that a flow makes.

    Attributes:
        inlets: what the task that makes it reads; empty if the asset depends on all inputs of the flow.
        code_version: that of the outlet, of its task, or of the flow: the first that is given (8.2).
    """

    asset: Token
    inlets: tuple[Token, ...] = ()
    code_version: str | None = None

    def __post_init__(self) -> None:
        if self.code_version is not None:
            check_code_version(self.code_version)


@dataclass(frozen=True)
class DataFlow:
    """The inputs and outputs of a flow. Tokens are URIs, or names that are resolved when they are used.

    Attributes:
        inlets: the inlets of its tasks.
        policies: the freshness policies of its outputs and inlets (8.11).
    """

    outputs: tuple[Output, ...] = ()
    inlets: tuple[Token, ...] = ()
    policies: Mapping[Token, FreshnessPolicy] = field(default_factory=dict[Token, FreshnessPolicy])

    @property
    def tokens(self) -> frozenset[Token]:
        """The tokens of everything that it reads or makes."""
        made = {token for output in self.outputs for token in (output.asset, *output.inlets)}
        return frozenset(made | set(self.inlets) | set(self.policies))


NOTHING = DataFlow()


CauseKind = Literal["missing", "data", "code", "dependency", "freshness", "backfill"]


_MOST = 3


@shape
class ShownCause:
    """Why an item is out of date, or why a run was asked for."""

    kind: CauseKind
    uri: str | None
    partition_key: str | None


class Cause(NamedTuple):
    """Why an item is out of date, or why a run was asked for.

    Attributes:
        uri, key: the output that is missing, the item that was updated, the input that is new or gone, or the asset
            whose policy asks; "" for code and backfills.
    """

    kind: CauseKind
    uri: str = ""
    key: str | None = None

    def shown(self) -> ShownCause:
        """Return the cause as the API and `--json` show it."""
        return ShownCause(self.kind, self.uri or None, self.key)

    def describe(self) -> str:
        """Return the cause in words: "s3://lake/raw was updated"."""
        item = self.uri if self.key is None else f"{self.uri} ({self.key})"
        words: dict[CauseKind, str] = {
            "missing": f"{item} was never made",
            "data": f"{item} was updated",
            "code": "its code has another version",
            "dependency": f"it reads {item} since its last deploy, or no more",
            "freshness": f"{item} has to be as new as its policy says",
            "backfill": "a backfill asked for it",
        }
        return words[self.kind]


def causes_in_words(causes: Sequence[Cause], name_of: Callable[[str], str] = str) -> str:
    """Return the first causes in words, and how many more there are.

    Parameters:
        name_of: returns the readable name of a URI.
    """
    words = ", ".join(cause._replace(uri=name_of(cause.uri)).describe() for cause in causes[:_MOST])
    return words if len(causes) <= _MOST else f"{words}, and {len(causes) - _MOST} more"
