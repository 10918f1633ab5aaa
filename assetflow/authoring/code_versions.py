"""Code versions: which version of the code made an update (contract 8.2)."""

from __future__ import annotations

from assetflow.core.values.assets import Asset, Outlet
from assetflow.core.values.versions import check_code_version
from assetflow.prefect_io.internals import flow_run_contexts
from assetflow.prefect_io.options import PrefectTaskOptions


class TaskKeywords(PrefectTaskOptions, total=False):
    """The options of Prefect's `task`, and the version of the task's code."""

    code_version: str | None


def read_code_version(value: object) -> str | None:
    """Return the value of `code_version=`, unchanged.

    Raises:
        InvalidSchedule: it is not a text of 1 to 250 characters, or it is blank. Contract 8.2.
    """
    return None if value is None else check_code_version(value)


def code_version_of(outlet: Outlet) -> str | None:
    """Return the code version that an outlet gives, which counts before those of its task and its flow."""
    return outlet.code_version if isinstance(outlet, Asset) else None


def flow_code_version() -> str | None:
    """Return the code version of the running flow, or that of the flow that it belongs to; `None` without one."""
    for context in flow_run_contexts():
        version = getattr(context.flow, "code_version", None)
        if isinstance(version, str):
            return version
    return None
