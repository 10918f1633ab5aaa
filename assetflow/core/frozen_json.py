"""JSON data that cannot be changed after it was checked.

Its objects and lists are dicts and lists: `json.dumps` writes them, they equal plain ones, and they can be pickled and
copied. `dict(…)` and `list(…)` make plain ones, one level deep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Self, cast


def freeze(data: object) -> Any:
    """Return JSON data that cannot be changed."""
    match data:
        case FrozenObject() | FrozenList():
            return data
        case Mapping():
            return FrozenObject({key: freeze(each) for key, each in cast("Mapping[str, object]", data).items()})
        case list() | tuple():
            return FrozenList(freeze(each) for each in cast("list[object]", data))
        case _:
            return data


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("the extra of an asset cannot be changed after it was made. Make a new asset with another extra")


class _Frozen:
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = _refuse

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self


class FrozenObject(_Frozen, dict[str, Any]):
    """A JSON object that cannot be changed."""

    popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (dict(self),)


class FrozenList(_Frozen, list[Any]):
    """A JSON list that cannot be changed."""

    __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (list(self),)


NOTHING = FrozenObject()
