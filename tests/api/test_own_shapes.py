"""The shape of assetflow's own API: every field is always there, one word for one thing, one kind of page token."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from jsonschema import validate

from assetflow import AssetWatcher
from assetflow.core.values.assets import Asset
from assetflow.core.values.events import Origin, SourceFlowRun, SourceTaskRun
from assetflow.core.values.freshness_policy import FreshnessPolicy
from assetflow.core.values.timing import Deadline, Intake
from assetflow.core.wire import declaration_to_text
from assetflow.core.wire.deployments import CURSOR, RefusedDeployment
from assetflow.errors import InvalidSchedule
from assetflow.ledger import Holder, Ledger
from assetflow.watchers import MessageQueueTrigger
from tests.api.conftest import Api
from tests.cli.shop import CUSTOMERS, HOURLY, NOON, ORDERS, ROLLED_UP, deploy, event_id, update
from tests.ledger.read.test_ended_runs import ended
from tests.ledger.write.test_kept import BOARD, CORE, RAW, kept

# The verbs with which operation ids begin.
VERBS = (
    "begin check count explain find get give hide list materialize observe pause record remove replay resume retry run "
    "show simulate stop unhide"
)


@pytest.fixture
def busy(ledger: Ledger) -> Ledger:
    """A ledger that has something to answer on every path, and two of all that is listed."""
    policy = FreshnessPolicy(timedelta(minutes=30))
    orders, customers = (Asset(each.uri, name=each.name, freshness=policy) for each in (ORDERS, CUSTOMERS))
    queues = [
        AssetWatcher(name, MessageQueueTrigger("amqp://mq.internal", queue=name)) for name in ("queue", "other queue")
    ]
    deploy(ledger, "copy/nightly", orders, produces=(customers,))
    for name in ("report/nightly", "audit/nightly"):
        late = Deadline(timedelta(hours=1))
        deploy(ledger, name, ORDERS & CUSTOMERS, deadline=late, intake=Intake(min_events=9))
    deploy(ledger, "daily/nightly", ROLLED_UP)
    deploy(ledger, "watched/nightly", Asset("s3://lake/watched", watchers=queues))
    for name, declared in (("core/nightly", kept([RAW], [CORE])), ("board/nightly", kept([CORE], [BOARD]))):
        ledger.writer.consumers.deploy(name, uuid4(), uuid4(), declaration_to_text(declared), False, False, NOON)
    run = SourceFlowRun(event_id(90), parameters={"day": 1})
    update(ledger, ORDERS, 1, aliases=("late",), origin=Origin("task", SourceTaskRun(event_id(91)), run))
    for minute, asset in enumerate((ORDERS, CUSTOMERS, RAW, CORE, BOARD, RAW, Asset("s3://lake/left")), start=2):
        update(ledger, asset, minute)
    for minute in range(2):
        update(ledger, HOURLY, 10 + minute, f"2026-01-0{minute + 1}T00:00:00")
        ledger.writer.events.refuse({"x": minute}, "no URI", "2.2", "api", None, NOON)
    ledger.writer.clock.run(NOON + timedelta(hours=3), NOON + timedelta(hours=3))
    nothing = InvalidSchedule("it makes nothing", rule="8.1")
    refused = [RefusedDeployment.of(event_id(each), f"bad/{each}", nothing, "") for each in (5, 6)]
    report = ledger.reader.consumers.named("report/nightly")
    assert report is not None
    ledger.writer.ended_runs.add([ended(report.consumer.deployment_id, minute) for minute in (1, 2)], NOON)
    ledger.writer.set_cursor(CURSOR, [each.to_row() for each in refused])
    ledger.writer.lease.acquire(Holder.this_process(event_id(1)), seconds=3600)
    return ledger


def calls(ledger: Ledger) -> dict[str, tuple[str, object]]:
    """The address and the body with which each operation answers well, by its id."""
    decision, later = ledger.reader.decisions.find(limit=2)
    ledger.writer.decisions.launched(decision.id, event_id(77), NOON)
    own = "/api/v1/"
    paths = {
        "check_health": "health",
        "check_readiness": "ready",
        "count_events": "events/count",
        "explain_asset": f"assets/{quote(CORE.uri, safe='')}/explanation",
        "explain_consumer": "consumers/daily/nightly",
        "explain_decision": f"decisions/{decision.id}",
        "explain_event": f"events/{event_id(1)}",
        "explain_partition": "consumers/daily/nightly/partitions/2026-01-01",
        "explain_run": f"runs/{event_id(77)}",
        "get_asset": "asset?asset=orders",
        "get_checks": "assets/orders/checks",
        "get_graph": "graph?focus=orders",
        "get_ledger": "ledger",
        "get_needs": "needs",
        "get_lineage": "lineage?focus=orders",
        "get_owner": "names/orders",
        "get_status": f"assets/{quote(CORE.uri, safe='')}/status",
        "list_assets": "assets",
        "list_backfill_targets": "backfills/1/targets",
        "list_backfills": "backfills",
        "list_consumers": "consumers",
        "list_decisions": "decisions",
        "list_events": "events",
        "list_freshness": "freshness",
        "list_freshness_changes": "freshness/changes",
        "get_trace": "trace/orders",
        "list_ended_runs": "runs",
        "list_missed_deadlines": "deadlines/missed",
        "list_partitions": "assets/hourly/partitions",
        "list_pending": "consumers/daily/nightly/partitions",
        "list_plan": "plan",
        "list_queue": "consumers/report/nightly/queue",
        "list_receipts": f"events/{event_id(1)}/receipts",
        "list_refused": "refused",
        "list_refused_deployments": "deployments/refused",
        "list_statuses": "statuses",
        "list_versions": f"assets/{quote(RAW.uri, safe='')}/versions",
        "list_watchers": "watchers",
        "show_backfill": "backfills/1",
    }
    found: dict[str, tuple[str, object]] = {name: (own + path, None) for name, path in paths.items()}
    good, bad = {"uri": ORDERS.uri}, {"uri": "airflow://x"}
    return found | {
        "begin_backfill": (f"{own}backfills", {"asset": CORE.uri, "down": True}),
        "find_known_events": (f"{own}events/known", {"ids": [str(event_id(1))]}),
        "give_up_decision": (f"{own}decisions/{later.id}/give-up", {"why": "a test"}),
        "hide_asset": (f"{own}assets/{quote('s3://lake/left', safe='')}/hide", {}),
        "materialize_asset": (f"{own}assets/{quote(CORE.uri, safe='')}/materialize?preview=true", {}),
        "observe_asset": (f"{own}assets/{quote('s3://lake/outside', safe='')}/observations", {"items": [SEEN]}),
        "pause_watcher": (f"{own}watchers/queue/pause", {}),
        "record_events": (f"{own}events", {"events": [good, good | {"id": str(event_id(1))}, bad]}),
        "remove_queued": (f"{own}consumers/report/nightly/queue?why=x", None),
        "replay_decision": (f"{own}decisions/{later.id}/replay", {}),
        "resume_backfill": (f"{own}backfills/1/resume", {}),
        "resume_consumer": (f"{own}consumers/report/nightly/resume?preview=true", {}),
        "retry_consumer": (f"{own}consumers/core/nightly/retry", {}),
        "run_consumer": (f"{own}consumers/report/nightly/run?preview=true", {}),
        "resume_watcher": (f"{own}watchers/queue/resume", {}),
        "simulate_schedules": (f"{own}simulate", {"name": "x", "consumers": {}, "steps": []}),
        "unhide_asset": (f"{own}assets/{quote('s3://lake/left', safe='')}/unhide", {}),
        "stop_backfill": (f"{own}backfills/1/stop", {}),
    }


SEEN = {"data_version": "1"}
# It turns a switch in Prefect, and answers as `resume_consumer` does without `preview`.
IN_PREFECT = {"pause_consumer"}
# What has to be there before.
FIRST = ("begin_backfill", "give_up_decision", "stop_backfill")


def own_operations(document: Any) -> Iterator[tuple[str, str, str, Any]]:
    """The id, the method, the path and the description of each operation of v1 that is assetflow's own."""
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            if path.startswith("/api/v1/") and not told["operationId"].startswith("airflow"):
                yield told["operationId"], method.upper(), path, told


def test_every_field_is_in_every_answer(api: Api, busy: Ledger) -> None:
    document = api.get("/api/openapi.json").json()
    operations = {name: method for name, method, _, _ in own_operations(document)}
    answers = answer_schemas(document)
    wanted = calls(busy)
    assert wanted.keys() | IN_PREFECT == operations.keys()
    answered: dict[str, Any] = {}
    for name in (*FIRST, *(each for each in wanted if each not in FIRST)):
        address, body = wanted[name]
        response = api.request(operations[name], address, json=body)
        # On a slow machine the lease may be over: readiness answers with the same fields then.
        assert response.status_code in ((200, 503) if name == "check_readiness" else (200, 207)), (name, response.text)
        answered[name] = response.json()
        validate(answered[name], answers[name] | {"components": document["components"]})
    empty = [name for name, answer in answered.items() if "items" in answer and not answer["items"]]
    assert not empty, "a list without an item shows nothing"


def answer_schemas(document: Any) -> dict[str, Any]:
    """The schema of each operation's answer, by the operation's id; from then on, no object has further fields."""
    for schema in document["components"]["schemas"].values():
        if "properties" in schema:
            schema["additionalProperties"] = False
    told = {name: told for name, _, _, told in own_operations(document)}
    return {name: each["responses"]["200"]["content"]["application/json"]["schema"] for name, each in told.items()}


def answer_models(document: Any) -> dict[str, Any]:
    """The schemas of all answers of v1, and those within them, by name."""
    found: dict[str, Any] = {}
    waiting = re.findall(REFERENCE, json.dumps(answer_schemas(document)))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = document["components"]["schemas"][name]
            waiting += re.findall(REFERENCE, json.dumps(found[name]))
    return found


REFERENCE = r"#/components/schemas/(\w+)"


def test_no_field_of_an_answer_is_optional_and_operation_ids_are_verbs_with_nouns(api: Api) -> None:
    own = answer_models(api.get("/api/openapi.json").json())
    assert len(own) > 60
    missing = {name: set(each["properties"]) - set(each.get("required", ())) for name, each in own.items()}
    assert not {name: fields for name, fields in missing.items() if fields}
    document = api.get("/api/openapi.json").json()
    names = [told["operationId"] for methods in document["paths"].values() for told in methods.values()]
    assert len(names) == len(set(names))
    assert not [name for name in document["components"]["schemas"] if "__" in name], "two schemas have one name"
    own = [name for name, *_ in own_operations(document)]
    assert [
        each
        for each in own
        if not re.fullmatch(r"[a-z]+(_[a-z]+)+", each) or each.partition("_")[0] not in VERBS.split()
    ] == []


@pytest.mark.parametrize("half", [0, 1])
def test_every_list_takes_a_page_and_refuses_what_is_none(api: Api, busy: Ledger, half: int) -> None:
    api.post("/api/v1/backfills", json={"asset": CORE.uri, "down": True})
    api.post("/api/v1/backfills", json={"asset": CORE.uri})
    document = api.get("/api/openapi.json").json()
    wanted = calls(busy)
    lists = [name for name, verb, *_ in own_operations(document) if verb == "GET" and name.startswith("list_")][half::2]
    tokens: dict[str, str] = {}
    for name in lists:
        address, _ = wanted[name]
        whole = api.get(address).json()
        assert (set(whole) - {"total"}, whole["next"]) == ({"items", "next"}, None), name
        seen: list[Any] = []
        token: str | None = None
        while True:
            page = api.get(address, params={"limit": 1} | ({} if token is None else {"page": token})).json()
            seen += page["items"]
            token = page["next"]
            if token is None:
                break
            tokens[name] = token
        assert [without_age(each) for each in seen] == [without_age(each) for each in whole["items"]], name
    assert tokens.keys() == set(lists)
    for name in lists:
        other = next(token for of, token in tokens.items() if of != name)
        for nonsense in (other, "nonsense", "1", "W10", "W1tdLFtdXQ", "[" * 4000, "é"):
            answer = api.get(wanted[name][0], params={"page": nonsense})
            assert (answer.status_code, answer.json()["where"]) == (422, "query.page"), (name, nonsense)


def without_age(item: Any) -> Any:
    """An item without what changes from moment to moment."""
    return {key: value for key, value in item.items() if key != "lag"} if isinstance(item, dict) else item
