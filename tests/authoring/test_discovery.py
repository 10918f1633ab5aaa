"""The assets that a flow updates and reads, found through the names in its code."""

from __future__ import annotations

import prefect

from assetflow import Asset, flow, task
from tests.authoring import events as other_module

A, B, C, D, E, F = (Asset(f"s3://b/{name}") for name in "abcdef")


@flow
def defined_before_its_tasks() -> None:
    task_a()
    helper()


@task(outlets=[A])
def task_a() -> None: ...


@task(outlets=[B], inlets=[A])
def task_b() -> None: ...


@task(outlets=[C])
def task_c() -> None:
    task_b()


def helper() -> None:
    for each in TASKS:
        each.submit()
    helper()


TASKS = [task_c]


@flow(produces=[F])
def below() -> None:
    task_a()


@flow
def above() -> None:
    below()


@prefect.flow
def plain_flow() -> None:
    task_b()


@flow(reads=[E])
def with_everything() -> None:
    local = [task_a.submit() for _ in range(2)]
    (lambda: plain_flow())()
    other_module.event(1)
    assert local


def test_tasks_are_found_through_functions_containers_and_tasks() -> None:
    found = defined_before_its_tasks.declaration
    assert found.produces == (A, C, B)
    assert found.reads == (A,)


def test_a_subflow_adds_its_options_and_the_tasks_that_its_code_names() -> None:
    assert set(above.declaration.produces) == {A, F}


def test_tasks_in_comprehensions_lambdas_and_plain_flows_are_found() -> None:
    assert set(with_everything.declaration.produces) == {A, B}
    assert with_everything.declaration.reads == (E, A)


def test_tasks_in_closures_are_found() -> None:
    @task(outlets=[D])
    def inner() -> None: ...

    @flow
    def outer() -> None:
        inner()
        late()

    assert set(outer.declaration.produces) == {D}

    @task(outlets=[E])
    def late() -> None: ...

    assert set(outer.declaration.produces) == {D, E}


def test_a_flow_may_name_itself_and_does_not_read_the_assets_that_a_subflow_is_scheduled_on() -> None:
    @flow(schedule=E)
    def sub() -> None:
        task_b()

    @flow(schedule=D)
    def again() -> None:
        sub()
        again()

    assert again.declaration.produces == (B,)
    assert again.declaration.reads == (A,)
