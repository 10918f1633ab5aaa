import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call

SCENARIO = {"name": "one", "consumers": {"c": "s3://b/a"}, "steps": [{"event": "s3://b/a"}, {"tick": True}]}
EXPLODES = SCENARIO | {"name": "two", "steps": [{"event": "x"}, {"explode": 1}]}
ANSWER = {
    "name": "one",
    "runs": [{"step": 1, "consumer": "c", "events": [{"asset": "s3://b/a", "step": 0}]}],
    "queued": {},
    "pending_partitions": {},
}
FLOWS = """
from assetflow.core.values.assets import Asset
from assetflow.core.wire.declarations import FlowDeclaration
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.schedule_values import to_schedule

class Flow:
    def __init__(self, name, schedule):
        self.name = name
        self.declaration = FlowDeclaration(ConsumerOptions(to_schedule(schedule)))

producer = Flow("producer", None)
report = Flow("orders-report", Asset("s3://b/a") & Asset("s3://b/b"))
"""


def write(file: Path, data: object) -> Path:
    file.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps([SCENARIO, EXPLODES]), "scenario 'two', step 1"),
        ("{", "cannot be read"),
        ("null", "null is not an object"),
        ("{}", "'name' is missing"),
        ('{"name": null}', "Write a text, in quotes"),
        ('{"name": "x", "steps": {}}', 'Write a list, as in ["one", "two"]'),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_bad_file_is_a_message_and_status_2(call: Call, tmp_path: Path, text: str, said: str) -> None:
    result = call("simulate", write(tmp_path / "bad.json", text), "--json")
    assert result.code == 2
    assert result.out == ""
    assert "bad.json" in result.err
    assert said in result.err
    assert "Traceback" not in result.err
    assert "nobody.json" in call("simulate", tmp_path / "nobody.json").err


def test_timeline_tells_what_ran_what_waits_and_what_failed(call: Call, tmp_path: Path) -> None:
    steps = [{"event": "s3://b/a"}, {"event": "s3://[red]/a"}, {"event": "s3://"}, {"get_queued": {"consumer": "d"}}]
    data = SCENARIO | {
        "steps": steps,
        "passes": "live",
        "receipts": True,
        "consumers": {"c": "s3://b/a", "d": ["s3://b/a", "s3://b/b"], "t": {"cron": "@hourly"}},
    }
    result = call("simulate", write(tmp_path / "s.json", data))
    text = " ".join(result.out.replace("│", " ").split())
    assert result.code == 0
    for part in ("▶ c runs with", "▶ t runs at", "waiting: d has s3://b/a (step 0)", "✗", "receipts", "s3://[red]/a"):
        assert part in text


def test_flows_of_a_module_are_the_consumers(call: Call, tmp_path: Path) -> None:
    flows = write(tmp_path / "my_flows.py", FLOWS)
    events = write(tmp_path / "events.yaml", "- event: s3://b/a\n- event: s3://b/b\n")
    result = call("simulate", "--flows", flows, "--events", events, "--json")
    runs = result.json["runs"]
    assert [(run["step"], run["consumer"], len(run["events"])) for run in runs] == [(1, "orders-report", 2)]


@pytest.mark.parametrize("text", ["import nothing_that_exists", "1 / 0", "", "def"])
def test_module_that_does_not_help_is_a_message(call: Call, tmp_path: Path, text: str) -> None:
    flows = write(tmp_path / "my_flows.py", text)
    events = write(tmp_path / "events.yaml", "[]")
    result = call("simulate", "--flows", flows, "--events", events)
    assert result.code == 2
    assert "my_flows.py" in result.err
