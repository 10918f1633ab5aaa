"""Opening hours, intake and deadline as JSON: spans in seconds, timetables as objects. Contract 9.7 to 9.11."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from assetflow.core.time.reading import timetable_from_json
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.timing import Deadline, Intake, OnDeadline, Opening

Json = Mapping[str, object]

_SPANS = ("debounce", "max_wait", "cooldown")
_COUNTS = ("min_events", "max_events")


def timing_to_json(options: ConsumerOptions) -> dict[str, object]:
    """Return what a consumer says about time, each only if it says it."""
    data: dict[str, object] = {}
    if (opening := options.schedule.opening) is not None:
        until = {} if opening.until is None else {"until": opening.until.as_json()}
        data["opening"] = {"timetable": opening.timetable.as_json(), **until}
    if options.intake != Intake():
        data["intake"] = _intake_to_json(options.intake)
    if (deadline := options.deadline) is not None:
        at = None if deadline.at is None else deadline.at.as_json()
        data["deadline"] = {"at": at} if deadline.after is None else {"after": deadline.after.total_seconds()}
        data["on_deadline"] = deadline.then
    return data


def _intake_to_json(intake: Intake) -> dict[str, object]:
    given = {name: getattr(intake, name) for name in (*_SPANS, *_COUNTS)}
    return {
        name: value.total_seconds() if isinstance(value, timedelta) else value
        for name, value in given.items()
        if value is not None
    }


def opening_from_json(data: Json) -> Opening | None:
    """Return the opening hours of a stored declaration; `None` if it has none."""
    opening = cast("Json | None", data.get("opening"))
    if opening is None:
        return None
    until = opening.get("until")
    return Opening(
        timetable_from_json(cast("Json", opening["timetable"])),
        None if until is None else timetable_from_json(cast("Json", until)),
    )


def intake_from_json(data: Json) -> Intake:
    """Return the intake of a stored declaration."""
    given = cast("dict[str, int]", data.get("intake", {}))
    spans = {name: timedelta(seconds=given[name]) for name in _SPANS if name in given}
    return Intake(
        debounce=spans.get("debounce"),
        max_wait=spans.get("max_wait"),
        cooldown=spans.get("cooldown"),
        min_events=given.get("min_events"),
        max_events=given.get("max_events"),
    )


def deadline_from_json(data: Json) -> Deadline | None:
    """Return the deadline of a stored declaration; `None` if it has none."""
    given = cast("Json | None", data.get("deadline"))
    if given is None:
        return None
    after, at = given.get("after"), given.get("at")
    return Deadline(
        after=None if after is None else timedelta(seconds=cast("float", after)),
        at=None if at is None else timetable_from_json(cast("Json", at)),
        then=cast("OnDeadline", data.get("on_deadline", "alert")),
    )
