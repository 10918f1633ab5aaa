"""The options of Prefect's `flow` and `task` as types, so that type checkers find a misspelt one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from prefect.assets import Asset as PrefectAsset
    from prefect.cache_policies import CachePolicy
    from prefect.context import TaskRunContext
    from prefect.flows import FlowStateHook
    from prefect.results import ResultSerializer, ResultStorage
    from prefect.task_runners import TaskRunner
    from prefect.tasks import StateHookCallable, TaskRunNameValueOrCallable
    from prefect.transactions import Transaction
    from prefect.utilities.annotations import NotSet


class UnnamedFlowOptions(TypedDict, total=False):
    """The options of Prefect's `flow`, except the name."""

    version: str | None
    flow_run_name: Callable[[], str] | str | None
    retries: int | None
    retry_delay_seconds: float | None
    task_runner: TaskRunner[Any] | None
    description: str | None
    timeout_seconds: float | None
    validate_parameters: bool
    persist_result: bool | None
    result_storage: ResultStorage | str | None
    result_serializer: ResultSerializer | None
    cache_result_in_memory: bool
    log_prints: bool | None
    on_completion: list[FlowStateHook[..., Any]] | None
    on_failure: list[FlowStateHook[..., Any]] | None
    on_cancellation: list[FlowStateHook[..., Any]] | None
    on_crashed: list[FlowStateHook[..., Any]] | None
    on_running: list[FlowStateHook[..., Any]] | None


class PrefectFlowOptions(UnnamedFlowOptions, total=False):
    """The options of Prefect's `flow`."""

    name: str | None


class PrefectTaskOptions(TypedDict, total=False):
    """The options of Prefect's `task`."""

    name: str | None
    description: str | None
    tags: Iterable[str] | None
    version: str | None
    cache_policy: CachePolicy | type[NotSet]
    cache_key_fn: Callable[[TaskRunContext, dict[str, Any]], str | None] | None
    cache_expiration: timedelta | None
    task_run_name: TaskRunNameValueOrCallable | None
    retries: int | None
    retry_delay_seconds: float | list[float] | Callable[[int], list[float]] | None
    retry_jitter_factor: float | None
    persist_result: bool | None
    result_storage: ResultStorage | str | None
    result_serializer: ResultSerializer | None
    result_storage_key: str | None
    cache_result_in_memory: bool
    timeout_seconds: float | None
    log_prints: bool | None
    refresh_cache: bool | None
    on_completion: list[StateHookCallable] | None
    on_failure: list[StateHookCallable] | None
    on_running: list[StateHookCallable] | None
    on_rollback: list[Callable[[Transaction], None]] | None
    on_commit: list[Callable[[Transaction], None]] | None
    retry_condition_fn: Callable[..., Awaitable[bool] | bool] | None
    viz_return_value: Any
    asset_deps: list[str | PrefectAsset] | None
