"""The note that says why a run is there: readable, complete, and safe whatever users call their things."""

import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from prefect.settings import PREFECT_UI_URL, temporary_settings

from assetflow.core.explain import DecisionFacts, KnownNames, RunFacts, explain_decision
from assetflow.core.values.assets import Asset
from assetflow.core.values.consumers import Consumer, Decision
from assetflow.core.values.events import AssetEvent, Origin, SourceFlowRun
from assetflow.core.values.keeping import Cause
from assetflow.core.values.schedule_values import to_schedule
from assetflow.core.values.schedules import ConsumerOptions
from assetflow.core.values.words import asset_path
from assetflow.prefect_io.run_notes import note_key, run_note

NOW = datetime(2026, 11, 20, 8, tzinfo=UTC)
ORDERS, CUSTOMERS = Asset("s3://shop/orders", name="orders"), Asset("s3://shop/customers", name="customers")
RUN, SOURCE = UUID(int=77), UUID(int=88)


def update(asset: Asset, number: int, **about: Any) -> AssetEvent:
    origin = Origin("task", flow_run=SourceFlowRun(SOURCE, "calm-fox", flow_name="ingest", deployment_name="nightly"))
    event = AssetEvent(UUID(int=number), asset, NOW, origin, **about)
    return event.in_ledger(number, NOW)


def note(
    *events: AssetEvent, schedule: object = ORDERS & CUSTOMERS, consumer: str = "report/prod", url: str = ""
) -> str:
    decision = Decision(UUID(int=5), 1, UUID(int=6), None, events, NOW)
    facts = DecisionFacts(decision, consumer, RunFacts(RUN, launched=NOW))
    scheduled = Consumer(1, consumer, UUID(int=6), ConsumerOptions(to_schedule(schedule)))
    body = run_note(explain_decision(facts, scheduled, KnownNames()), url)
    assert (body["type"], body["flow_run_id"], body["key"]) == ("markdown", str(RUN), note_key(consumer))
    return body["data"]


def test_it_says_why_in_a_sentence_and_lists_what_was_consumed() -> None:
    with temporary_settings({PREFECT_UI_URL: "http://prefect.test"}):
        text = note(update(ORDERS, 1), update(CUSTOMERS, 2), url="http://assets.test/")
    lines = [line for line in text.replace("\\", "").splitlines() if line]
    sentence, head, _, first, second, links = lines
    assert sentence.startswith("report/prod runs because its condition held at 2026-11-20 08:00:00 UTC, with 2 events.")
    assert "The update of customers" in sentence
    assert head == "|  | Updated | When | By |"
    link = "[event](http://assets.test/events/00000000-0000-0000-0000-00000000000{})"
    source = f"flow run calm-fox (ingest/nightly) · [run](http://prefect.test/runs/flow-run/{SOURCE})"
    assert first == f"|  | orders · {link.format(1)} | 2026-11-20 08:00:00 UTC | {source} |"
    assert second == f"| last one needed | customers · {link.format(2)} | 2026-11-20 08:00:00 UTC | {source} |"
    assert links == (
        f"In assetflow: [this run](http://assets.test/runs/{RUN}) · "
        "[its flow](http://assets.test/consumers/report/prod)"
    )
    assert "](" not in note(update(ORDERS, 1), update(CUSTOMERS, 2))
    assert "| Partition |" in note(update(ORDERS, 1, partition_key="2026-11-20"), schedule=ORDERS)
    assert "| Partition |" not in note(update(ORDERS, 1), schedule=ORDERS)


CAUSES = (Cause("data", "s3://shop/orders", "2026-11-20"), Cause("code"))


def of_causes(causes: tuple[Cause, ...], url: str = "") -> str:
    decision = Decision(UUID(int=5), 1, UUID(int=6), None, (), NOW, "eager", because=causes)
    facts = DecisionFacts(decision, "core/main", RunFacts(RUN))
    return run_note(explain_decision(facts, None, KnownNames()), url)["data"].replace("\\", "")


def test_rule_8_5_the_causes_of_an_eager_run_are_a_table() -> None:
    lines = [line for line in of_causes(CAUSES, "http://assets.test").splitlines() if line.startswith("|")]
    head, _, data, code = lines
    assert head == "| Because | Asset | Partition |"
    link = f"[asset](http://assets.test{asset_path('s3://shop/orders')})"
    assert data == f"| was updated | s3://shop/orders · {link} | 2026-11-20 |"
    assert code == "| the code has another version |  |  |"


BAD = [
    "<img src=x onerror=alert(1)>",
    "| a | b |",
    "](javascript:alert(1))",
    "\\| \\[x](y)",
    "``` \n# head\n```",
    "http://evil.test www.evil.test a@evil.test",
    "&lt;b&gt; *bold* _it_ ~~no~~ `code`",
    "\x1b[31mred\u2028line",
]


@pytest.mark.parametrize("bad", BAD)
def test_text_of_users_stays_text(bad: str) -> None:
    text = note(
        update(Asset("s3://x/y", name=f"n {bad}"), 1, partition_key=f"k {bad}"),
        schedule=Asset("s3://x/y"),
        consumer=f"flow {bad}/x",
    )
    (row,) = [line for line in text.splitlines() if "last one needed" in line]
    cells = re.split(r"(?<!\\)(?:\\\\)*\|", row)
    assert len(cells) == 7
    for each in cells[1:5]:
        assert not re.search(r"(?<!\\)[<&`*\[\]]", each)
