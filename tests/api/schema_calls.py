"""Calls of every operation of an OpenAPI document, with what it allows and with what it does not."""

from contextlib import nullcontext, suppress
from typing import Any, cast

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)


def no_failure(_context: Any, response: Any, _case: Any) -> None:
    """503 is an answer (no evaluator, no Prefect); a failure of ours is 500."""
    assert response.status_code != 500, response.text


CHECKS = [
    no_failure,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 5


def call_everything(document: Any, url: str) -> None:
    """Call each operation at `url`, and check each answer against the document."""
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = cast("Any", result).ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.POSITIVE or list(operation.iter_parameters()) or operation.body:
                _try(operation, mode, url)


def _try(operation: Any, mode: GenerationMode, url: str) -> None:
    modest = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )

    @modest
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        case.call_and_validate(base_url=url, checks=CHECKS)

    # Nothing can be wrong for some operations.
    with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
        call()
