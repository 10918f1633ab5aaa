"""Observations of sources as artifacts: what is new stays, and of what was seen again one artifact remains."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin, observation
from assetflow.prefect_io.recordings import keep_observation, recording_from_artifact

RAW, OTHER = Asset("s3://lake/raw"), Asset("s3://lake/other")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Prefect:
    """Prefect's artifacts in memory."""

    def __init__(self) -> None:
        self.artifacts: dict[str, dict[str, Any]] = {}

    def post(self, path: str, body: Any) -> Any:
        if path == "/artifacts/filter":
            (key,) = body["artifacts"]["key"]["any_"]
            assert body["sort"] == "CREATED_DESC"
            return [each for each in reversed(self.artifacts.values()) if each["key"] == key][: body["limit"]]
        raise AssertionError(path)

    def create(self, _: str, body: Any) -> Any:
        number = str(uuid4())
        created = NOON + timedelta(minutes=len(self.artifacts))
        self.artifacts[number] = {**body, "id": number, "created": created.isoformat()}
        return self.artifacts[number]

    def delete(self, path: str) -> None:
        self.artifacts.pop(path.rpartition("/")[2], None)

    @property
    def told(self) -> list[tuple[str, dict[str | None, str | None]]]:
        """The versions in each artifact, with the part of its key before the name of the asset."""
        found = [(each["key"], recording_from_artifact(each)) for each in self.artifacts.values()]
        return [
            (key.partition("s3-")[0], {each.partition_key: each.data_version for each in recording.observed})
            for key, recording in found
        ]


def look(prefect: Any, versions: Mapping[str | None, str], asset: Asset = RAW) -> UUID:
    seen = observation(asset, versions, id=uuid4(), occurred=NOON, origin=Origin("task"))
    keep_observation(prefect, seen)
    return seen.id


def test_rule_8_2_of_what_was_seen_again_one_artifact_remains_for_each_source() -> None:
    prefect = Prefect()
    for _ in range(4):
        look(prefect, {None: "1"})
        last = look(prefect, {"k": "1", "m": "2"}, OTHER)
    expected = [("", {None: "1"}), ("", {"k": "1", "m": "2"}), ("seen-", {None: "1"}), ("seen-", {"k": "1", "m": "2"})]
    assert prefect.told == expected
    assert recording_from_artifact(list(prefect.artifacts.values())[-1]).id == last


def test_rule_8_2_what_is_new_stays_also_when_an_earlier_version_comes_back() -> None:
    prefect = Prefect()
    for version in ("1", "2", "2", "1", "1"):
        look(prefect, {None: version})
    assert [versions[None] for kind, versions in prefect.told if not kind] == ["1", "2", "1"]
    assert [versions[None] for kind, versions in prefect.told if kind] == ["1"]
