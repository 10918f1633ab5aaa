"""The form of mappers in a scenario: which words there are. What a mapper may be is for the mapper itself to say."""

from __future__ import annotations

from typing import cast

from assetflow.core.simulation.reading import is_object, refuse, short, single

PLAIN = ("identity", "hour", "day", "week", "month", "quarter", "year")
WITH_OPTIONS = (*PLAIN, "allowed", "fixed", "product", "chain", "rollup", "fanout")


def check_form(value: object, where: str) -> None:
    """Refuse a mapper that the format does not know, wherever it is nested."""
    waiting = [value]
    while waiting:
        mapper = waiting.pop()
        if isinstance(mapper, str) and mapper in PLAIN:
            continue
        # The limit may stand beside the mapper's name where the mapper has no options of its own.
        named = {key: mapper[key] for key in mapper if key != "max_downstream_keys"} if is_object(mapper) else mapper
        word, inner = single(named)
        if word not in WITH_OPTIONS:
            refuse(f"unknown mapper {short(mapper)}", where, f"Known are {', '.join(WITH_OPTIONS)}")
        waiting += _nested(word, inner)


def _nested(word: str, inner: object) -> list[object]:
    if word in ("product", "chain"):
        members = inner.get("mappers") if is_object(inner) else inner
        return list(cast("list[object]", members)) if isinstance(members, list) else []
    if word in ("rollup", "fanout") and is_object(inner):
        return [inner[key] for key in ("upstream", "downstream") if inner.get(key) is not None]
    return []
