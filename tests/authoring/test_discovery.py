"""The assets that a flow updates and reads, found through the names in its code."""

import json
import types
from typing import Any

import pytest

from assetflow import Asset, asset, flow, inlet_events, task

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


def test_tasks_are_found_through_functions_containers_and_tasks() -> None:
    found = defined_before_its_tasks.declaration
    assert found.produces == (A, C, B)
    assert found.reads == (A,)


# What only looks like a task


@task(outlets=[D])
def load() -> dict[str, int]:
    return {}


@task(outlets=[E])
def save() -> None: ...


@asset(uri=F.uri)
def summary() -> None: ...


@task(outlets=[A], inlets=[F])
def reads_an_asset() -> object:
    return inlet_events[summary]


class Store:
    def save(self) -> None: ...


@flow
def names_of_other_things(path: str = "x") -> None:
    task_a()
    json.load(path)  # type: ignore[arg-type]
    Store().save()
    path.save()  # type: ignore[attr-defined]


@flow
def variables_of_its_own() -> None:
    task_a()
    load = save = print

    def inner() -> None:
        load()

        class Body:
            save = 3
            twice = save

        assert Body

    inner()
    save([save() for save in (print,)])


@flow
def an_import_of_its_own() -> None:
    from json import dumps as save
    from json import load

    task_a()
    load(save({}))  # type: ignore[arg-type]


@flow
def asks_for_an_asset() -> None:
    task_a()
    reads_an_asset()
    assert summary.asset


@pytest.mark.parametrize(
    "made",
    [names_of_other_things, variables_of_its_own, an_import_of_its_own, asks_for_an_asset],
    ids=lambda each: each.name,
)
def test_no_task_is_invented_from_a_name_that_means_something_else(made: Any) -> None:
    assert made.declaration.produces == (A,)


MODULE = types.ModuleType("steps")
MODULE.load, MODULE.save, MODULE.summary, MODULE.helper = load, save, summary, helper  # type: ignore[attr-defined]
PACKAGE = types.ModuleType("package")
PACKAGE.steps = MODULE  # type: ignore[attr-defined]


def test_tasks_of_modules_are_found_by_the_whole_path_to_them() -> None:
    @flow
    def short() -> None:
        MODULE.load()

    @flow
    def long() -> None:
        PACKAGE.steps.load.submit()
        PACKAGE.steps.summary()
        json.dumps(MODULE.summary.asset)

    @flow
    def through_a_variable() -> None:
        for each in (MODULE, PACKAGE):
            each.load()

    @flow
    def through_a_function() -> None:
        MODULE.helper()

    assert short.declaration.produces == (D,)
    assert long.declaration.produces == (D, F)
    assert through_a_variable.declaration.produces == (D,)
    assert through_a_function.declaration.produces == (C, B)
