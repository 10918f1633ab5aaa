"""The direct cases, URIs, mappers and time tables, told apart by their keys: called as a user calls them."""

import json
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from assetflow.core.partitions import PartitionMapper, RollupMapper, StaticMapper, TimeWindowMapper, mapper_from_json
from assetflow.core.time.timetables import (
    CronPartitionTimetable,
    CronTriggerTimetable,
    PartitionedAtRuntime,
    Timetable,
    timetable_from_json,
)
from assetflow.core.values.assets import Asset, AssetAlias
from assetflow.core.values.uri import CredentialsCut
from assetflow.errors import AssetflowError

DIRECTORY = Path(__file__).parent / "direct"
FILES = sorted(DIRECTORY.glob("*.json"))
Json = dict[str, Any]
ERROR: Json = {"error": True}


def result_of(case: Json) -> Json:
    kinds: dict[str, Callable[[Json], Json]] = {"input": _uri, "mapper": _mapper, "timetable": _timetable}
    for key, run in kinds.items():
        if key in case:
            return _or_error(lambda run=run: run(case))
    raise SystemExit(f"a case has none of {', '.join(kinds)}: {case}")


def _or_error(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except AssetflowError:
        return ERROR


def _uri(case: Json) -> Json:
    given = {key: _text(value) for key, value in case["input"].items()}
    if "alias" in given:
        return {"alias": AssetAlias(given["alias"]).name}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if "ref" in given:
            ref = Asset.ref(**given["ref"])
            return {"ref": {"name": ref.name} if ref.name is not None else {"uri": ref.uri}}
        asset = Asset(given["name"], **_without(given, "name")) if _is_alone(given) else Asset(**given)
    result: Json = {"uri": asset.uri}
    if "name" in given and "uri" in given:
        result["name"] = asset.name
    if any(issubclass(warning.category, CredentialsCut) for warning in caught):
        result["warning"] = True
    return result


def _is_alone(given: Mapping[str, Any]) -> bool:
    return "name" in given and "uri" not in given


def _without(given: Mapping[str, Any], name: str) -> Json:
    return {key: value for key, value in given.items() if key != name}


def _text(value: Any) -> Any:
    if isinstance(value, dict) and "repeat" in value:
        return value["repeat"] * value["times"] + value.get("then", "")
    return {key: _text(item) for key, item in value.items()} if isinstance(value, dict) else value


def _mapper(case: Json) -> Json:
    mapper = mapper_from_json(case["mapper"])
    result: Json = {}
    if "down" in case:
        result["down"] = {key: _or_error(lambda key=key: _down(mapper, key)) for key in case["down"]}
    if "up" in case:
        result["up"] = {key: _or_error(lambda key=key: _up(mapper, key)) for key in case["up"]}
    return result


def _down(mapper: PartitionMapper, key: str) -> str | list[str]:
    targets = mapper.to_downstream(key)
    return list(targets) if mapper.fans_out else targets[0]


def _up(mapper: PartitionMapper, target_key: str) -> Any:
    awaits = isinstance(mapper, RollupMapper | StaticMapper | TimeWindowMapper)
    return sorted(mapper.awaited(target_key)) if awaits else ERROR


def _timetable(case: Json) -> Json:
    timetable = _timetable_from(case["timetable"])
    start = datetime.fromisoformat(case["start"]) - timedelta(microseconds=1)
    ticks = timetable.ticks_between(start, start + timedelta(days=366 * 400))
    return {"runs": [_run(tick.time, tick.partition_key) for tick in islice(ticks, case["count"])]}


def _timetable_from(value: Json) -> Timetable:
    for kind, make in (("cron", CronTriggerTimetable), ("cron_partition", CronPartitionTimetable)):
        if kind in value:
            options = value[kind]
            return make(options) if isinstance(options, str) else make(**options)
    return timetable_from_json(value) if "kind" in value else PartitionedAtRuntime()


def _run(time: datetime, partition_key: str | None) -> Json:
    run: Json = {"time": time.replace(tzinfo=None).isoformat() + "Z"}
    return run if partition_key is None else {**run, "partition_key": partition_key}


def cases() -> list[Any]:
    return [
        pytest.param(case, id=f"{path.stem}-{number}")
        for path in FILES
        for number, case in enumerate(json.loads(path.read_text()))
    ]


def test_all_kinds_have_cases() -> None:
    assert [path.stem for path in FILES] == ["mapper_cases", "timetable_cases", "uri_cases", "window_mapper_cases"]


@pytest.mark.rule("1.3", "1.4", "5.1", "5.7", "6.2")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases())
def test_case(case: dict[str, Any]) -> None:
    assert result_of(case) == case["expected"]
