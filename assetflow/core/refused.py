"""The payload of a refused event, as the ledger keeps it (contract 2.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from assetflow.core.json_data import fit_json
from assetflow.core.values.events import canonical_json

MOST_CHARACTERS = 16 * 1024
_MOST_OF_A_TEXT = 2 * 1024


def kept_payload(given: object) -> object:
    """Return a refused payload as JSON data that the ledger can hold and a person can read.

    A payload over 16,384 characters of JSON is cut: its long texts, such as the data of an artifact, to 2,048
    characters each. If that is not enough, the whole is cut to the first 2,048 characters of its JSON.
    """
    fitted = fit_json(given)
    written = canonical_json(fitted)
    if len(written) <= MOST_CHARACTERS:
        return fitted
    if isinstance(fitted, Mapping):
        shorter = {key: _shorter(value) for key, value in cast("Mapping[str, object]", fitted).items()}
        if len(canonical_json(shorter)) <= MOST_CHARACTERS:
            return shorter
    return {"cut": written[:_MOST_OF_A_TEXT], "characters": len(written)}


def _shorter(value: object) -> object:
    if not isinstance(value, str) or len(value) <= _MOST_OF_A_TEXT:
        return value
    return f"{value[:_MOST_OF_A_TEXT]}… (cut; it had {len(value)} characters)"
