"""Values to JSON and back: what is stored in artifacts, events, deployments, flow runs and the ledger."""

from assetflow.core.codec.events import event_from_json, event_to_json, recording_from_json, recording_to_json
from assetflow.core.codec.run_context import RunContext, run_context_from_json, run_context_to_json
from assetflow.core.codec.schedules import FlowDeclaration, declaration_from_text, declaration_to_text

__all__ = [
    "FlowDeclaration",
    "RunContext",
    "declaration_from_text",
    "declaration_to_text",
    "event_from_json",
    "event_to_json",
    "recording_from_json",
    "recording_to_json",
    "run_context_from_json",
    "run_context_to_json",
]
