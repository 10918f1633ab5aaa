"""The base class of partition mappers (contract 5.1, 5.4), and mappers whose keys belong to every target (8.3)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn, cast

from assetflow.core.json_data import check_key
from assetflow.errors import AssetflowError, InvalidEvent, InvalidPartition, MappingError, not_a

DEFAULT_MAX_KEYS = 1000


@dataclass(frozen=True, kw_only=True)
class PartitionMapper(ABC):
    """The base class of mappers: each turns the key of an update into the keys of the runs that consume it.

    Contract 5.1, 5.4.

    Parameters:
        max_downstream_keys: the most target keys that one key may give; by default 1000.

    Raises:
        InvalidPartition: the limit is not a whole number of at least 1.
    """

    max_downstream_keys: int | None = None

    def __post_init__(self) -> None:
        limit = cast(object, self.max_downstream_keys)
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise InvalidPartition(
                f"max_downstream_keys is {limit!r}", fix="Give a whole number of at least 1.", rule="5.4"
            )

    def to_downstream(self, key: str) -> tuple[str, ...]:
        """Return the target keys of an update's key, each once: one, or several if the mapper fans out.

        Raises:
            MappingError: the mapper cannot read the key, or the key gives more target keys than allowed (contract 5.4).
        """
        keys = tuple(dict.fromkeys(self.map_key(key)))
        limit = self.max_downstream_keys or DEFAULT_MAX_KEYS
        if len(keys) > limit:
            raise MappingError(
                f"The partition key {key!r} gives {len(keys)} target keys, the limit is {limit}",
                fix="Raise max_downstream_keys of the mapper, or use a smaller window.",
                rule="5.4",
            )
        return keys

    def single_target(self, key: str) -> str:
        """Return the one target key of a key.

        Raises:
            MappingError: the key has several, or the mapper cannot read it.
        """
        keys = self.to_downstream(key)
        if len(keys) != 1 or self.fans_out:
            raise MappingError(
                f"The partition key {key!r} gives {len(keys)} target keys where one is needed",
                fix="A mapper that fans out cannot be part of a product, nor the upstream mapper of a fan-out.",
                rule="5.1",
            )
        return keys[0]

    @property
    def parts(self) -> tuple[PartitionMapper, ...]:
        """The mappers that this one is made of."""
        return ()

    @property
    def fans_out(self) -> bool:
        """True if one key may give several target keys."""
        return False

    @abstractmethod
    def map_key(self, key: str) -> Iterable[str]:
        """Return the target keys before duplicates are dropped and the limit is checked."""

    @abstractmethod
    def describe(self) -> str:
        """Return the mapper in words."""

    @abstractmethod
    def as_json(self) -> object:
        """Return plain JSON values, which `mapper_from_json` reads back."""

    def write_part(self, part: datetime | str) -> str:
        """Return the target key of a part of a window. A time becomes ISO text unless the mapper has an output format.

        Parameters:
            part: a naive wall time, or a segment of a `SegmentWindow`.
        """
        return part if isinstance(part, str) else part.isoformat()

    def unusual(self, **usual: object) -> dict[str, object]:
        """Return the options that differ from what is usual."""
        return {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}

    def limit_as_json(self) -> dict[str, object]:
        """Return `max_downstream_keys` as an option, if it was given."""
        return {} if self.max_downstream_keys is None else {"max_downstream_keys": self.max_downstream_keys}


def targets_or_none(mapper: PartitionMapper, key: str) -> tuple[str, ...]:
    """Return the target keys of a key, and an empty collection if the mapper cannot map it."""
    try:
        return mapper.to_downstream(key)
    except MappingError:
        return ()


def check_mapper(value: object) -> PartitionMapper:
    """Return the mapper, unchanged.

    Raises:
        InvalidPartition: the value is not a mapper, or a class of mappers without parentheses.
    """
    if isinstance(value, PartitionMapper):
        return value
    raise not_a(InvalidPartition, value, "a partition mapper", "Give a mapper such as StartOfDayMapper()", rule="5.1")


def checked_key(key: object, rule: str) -> str:
    """Return a key that stands in a mapper.

    Raises:
        InvalidPartition: it breaks contract 2.5.
    """
    try:
        return check_key(key)
    except InvalidEvent as cause:
        raise InvalidPartition(cause.message, fix=cause.fix, rule=rule) from cause


@contextmanager
def window_of(what: str) -> Generator[None]:
    """Turn the errors of a window that leaves the calendar into a `MappingError`.

    Parameters:
        what: the key, and maybe the window, as the error shows it.
    """
    try:
        yield
    except MappingError:
        raise
    except (ValueError, OverflowError) as cause:
        raise MappingError(
            f"The window of {what} leaves the calendar", fix="Use a key between the years 2 and 9998.", rule="5.4"
        ) from cause


_PLACEHOLDER = re.compile(r"%%|%(?P<directive>[A-Za-z])|\{(?P<name>[^{}]*)\}")
_DIRECTIVE = re.compile(r"%[-_0^#:EO]?(?P<letter>.?)", re.DOTALL)
# The directives that Python documents, and those that the C libraries of Linux and macOS share.
_WRITTEN = frozenset("aAbBcCdDeFgGfhHIjklmMnpRrsStTuUVwWxXyYzZ%")
_EXAMPLE = datetime(2026, 3, 14, 15, 9, 26, tzinfo=UTC)
_DIGITS = {"Y": r"\d{4}", "j": r"\d{3}", **dict.fromkeys("mdHMSVUWy", r"\d{2}"), "quarter": "[1-4]"}


def check_format(text: str, *, braces: bool) -> None:
    """Refuse a format whose keys could not be read back.

    Parameters:
        text: a format for `strftime`.
        braces: True if the format may have `{quarter}` in it.

    Raises:
        InvalidPartition: the format has a directive twice, or braces without a name in them.
    """
    names = _names(text, braces=braces)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidPartition(
            f"The key format {text!r} uses {_spelled(twice[0])} twice", fix="Use each directive once.", rule="5.1"
        )
    unnamed = [name for name in names if not name.isidentifier()]
    if unnamed:
        raise InvalidPartition(
            f"The key format {text!r} has {{{unnamed[0]}}} in it", fix="Write {quarter} for the quarter.", rule="5.1"
        )


def check_directives(text: str, option: str, error: type[AssetflowError] = InvalidPartition) -> None:
    """Refuse a format with a directive that no platform's `strftime` knows.

    Parameters:
        option: what the error calls the format.
        error: the class of the error to raise.

    Raises:
        error: the format has such a directive, as in `%Q`.
    """
    for match in _DIRECTIVE.finditer(text):
        if match["letter"] not in _WRITTEN:
            raise error(
                f"The {option} {text!r} has {match[0]!r} in it, which is not a directive",
                fix="Use directives such as %Y, %m, %d and %H, and %% for a percent sign.",
                rule="5.1",
            )


def check_readable(text: str, option: str) -> None:
    """Refuse a format with which no key can be read.

    Parameters:
        option: what the error calls the format.

    Raises:
        InvalidPartition: `strptime` does not know one of the directives, or cannot read a time with them.
    """
    try:
        datetime.strptime(_EXAMPLE.strftime(text), text)  # noqa: DTZ007  only tried
    except (ValueError, re.error) as cause:
        raise InvalidPartition(
            f"No key can be read with the {option} {text!r}: {cause}",
            fix="Use directives such as %Y, %m, %d and %H, each once.",
            rule="5.1",
        ) from cause


def read_numbers(key: str, text: str, *, braces: bool) -> dict[str, int] | None:
    """Return the numbers in a key by the letters of the format's directives, or `None` if the key does not fit.

    Parameters:
        text: the format, as for `strftime`.
        braces: True if `{quarter}` in the format stands for the number of a quarter.
    """
    pattern: list[str] = []
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        pattern.append(re.escape(text[end : match.start()]))
        name = match["directive"] or (match["name"] if braces else None)
        literal = re.escape("%" if match[0] == "%%" else match[0])
        pattern.append(f"(?P<{name}>{_DIGITS.get(name, '.+?')})" if name else literal)
        end = match.end()
    pattern.append(re.escape(text[end:]))
    found = re.fullmatch("".join(pattern), key, re.ASCII)
    return found and {name: int(value) for name, value in found.groupdict().items() if name in _DIGITS}


def _names(text: str, *, braces: bool) -> list[str]:
    matches = [match for match in _PLACEHOLDER.finditer(text) if match[0] != "%%"]
    return [match["directive"] or match["name"] for match in matches if match["directive"] or braces]


def _spelled(name: str) -> str:
    return f"%{name}" if len(name) == 1 else f"{{{name}}}"


@dataclass(frozen=True)
class EveryTargetMapper(PartitionMapper):
    """The base class of mappers that choose the keys which every target reads."""

    @abstractmethod
    def chosen(self, keys: Sequence[str]) -> Collection[str]:
        """Return those of an asset's keys that a target reads.

        Parameters:
            keys: all keys that there are, sorted as text.
        """

    def map_key(self, key: str) -> NoReturn:
        raise MappingError(
            f"The partition key {key!r} belongs to every target: {self.describe()}",
            fix="Give an asset that starts runs a mapper with target keys, such as IdentityMapper().",
            rule="8.3",
        )


@dataclass(frozen=True)
class AllKeysMapper(EveryTargetMapper):
    """A mapper with which every target reads all keys.

    >>> from assetflow.partitions import AllKeysMapper
    >>> AllKeysMapper().chosen(["de", "fr"])
    ['de', 'fr']

    Contract 8.3.

    Parameters:
        max_downstream_keys: as in `PartitionMapper`.
    """

    def chosen(self, keys: Sequence[str]) -> Collection[str]:
        return keys

    def describe(self) -> str:
        return "all keys"

    def as_json(self) -> object:
        return {"all_keys": self.limit_as_json()}


@dataclass(frozen=True)
class LastMapper(EveryTargetMapper):
    """A mapper with which every target reads the greatest keys, as text.

    >>> from assetflow.partitions import LastMapper
    >>> LastMapper(2).chosen(["2026-03-12", "2026-03-13", "2026-03-14"])
    ['2026-03-13', '2026-03-14']

    Contract 8.3.

    Parameters:
        n: how many keys.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: `n` is not a whole number of at least 1.
    """

    n: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        n = cast(object, self.n)
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise InvalidPartition(
                f"LastMapper({n!r}) is not a number of keys", fix="Give a whole number of at least 1.", rule="8.3"
            )

    def chosen(self, keys: Sequence[str]) -> Collection[str]:
        return keys[-self.n :]

    def describe(self) -> str:
        return "the last key" if self.n == 1 else f"the last {self.n} keys"

    def as_json(self) -> object:
        return {"last": {"n": self.n, **self.limit_as_json()} if self.max_downstream_keys else self.n}


@dataclass(frozen=True)
class KeysMapper(EveryTargetMapper):
    """A mapper with which every target reads the keys that are named, and waits for them.

    >>> from assetflow.partitions import KeysMapper
    >>> KeysMapper(["de", "fr"]).chosen(["de", "us"])
    ['de']

    Contract 8.3.

    Parameters:
        keys: the keys, at least one; duplicates count once.
        max_downstream_keys: as in `PartitionMapper`.

    Raises:
        InvalidPartition: no key is given, or a key is `None`.
    """

    keys: Sequence[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = cast(object, self.keys)
        keys = list(cast("Sequence[object]", given)) if isinstance(given, list | tuple) else []
        if not keys:
            raise InvalidPartition(
                f"A list of keys cannot be made of {given!r}", fix='Write KeysMapper(["de", "fr"]).', rule="8.3"
            )
        object.__setattr__(self, "keys", tuple(dict.fromkeys(checked_key(key, "8.3") for key in keys)))

    def chosen(self, keys: Sequence[str]) -> Collection[str]:
        return [key for key in keys if key in self.keys]

    def describe(self) -> str:
        return f"the keys {', '.join(self.keys)}"

    def as_json(self) -> object:
        keys = list(self.keys)
        return {"keys": {"keys": keys, **self.limit_as_json()} if self.max_downstream_keys else keys}
