"""The codec: values as JSON and back, for artifacts, Prefect's events, deployments, flow runs and the ledger."""

from __future__ import annotations

from assetflow.core.wire.declarations import FlowDeclaration, declaration_from_text, declaration_to_text
from assetflow.core.wire.events import event_from_json, event_to_json, recording_from_json, recording_to_json
from assetflow.core.wire.run_context import (
    RunContext,
    events_from_text,
    events_to_text,
    run_context_from_json,
    run_context_to_json,
)

__all__ = [
    "FlowDeclaration",
    "RunContext",
    "declaration_from_text",
    "declaration_to_text",
    "event_from_json",
    "event_to_json",
    "events_from_text",
    "events_to_text",
    "recording_from_json",
    "recording_to_json",
    "run_context_from_json",
    "run_context_to_json",
]
