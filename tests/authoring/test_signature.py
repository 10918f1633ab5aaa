"""The signature for callers of a function whose parameters assetflow fills in."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

from assetflow.authoring.triggering import PublicSignature

if TYPE_CHECKING:
    from nowhere import Nothing  # pyright: ignore[reportMissingImports]


def first(filled: Any, a: int, b: int = 2, *rest: int, c: int = 3, **more: int) -> None: ...
def middle(a: int, filled: Any, b: int = 2) -> None: ...
def keyword(a: int, *, filled: Any) -> None: ...
def without(a: int, b: int = 2) -> None: ...
def positional(a: int, /, b: int, *, filled: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("fn", "seen"),
    [
        (first, "(a: int, b: int = 2, *rest: int, c: int = 3, filled: Any = None, **more: int) -> None"),
        (middle, "(a: int, b: int = 2, *, filled: Any = None) -> None"),
        (keyword, "(a: int, *, filled: Any = None) -> None"),
        (without, "(a: int, b: int = 2) -> None"),
        (positional, "(a: int, /, b: int, *, filled: Any = None) -> None"),
    ],
)
def test_parameters_that_are_filled_in_are_optional(fn: Any, seen: str) -> None:
    assert str(PublicSignature(fn, filled=["filled"]).signature).replace("typing.", "") == seen


def test_callers_may_pass_an_added_parameter_that_the_function_does_not_declare() -> None:
    public = PublicSignature(without, added=["filled"])
    assert list(public.signature.parameters) == ["a", "b", "filled"]
    assert not public.declared


@pytest.mark.parametrize("fn", [middle, keyword, without, positional])
def test_arguments_reach_their_parameters(fn: Any) -> None:
    public = PublicSignature(fn, filled=["filled"])
    args = (1, 5) if "b" in public.signature.parameters else (1,)
    given, named = public.arguments(args, {})
    bound = inspect.signature(fn).bind(*given, **{**named, **dict.fromkeys(public.declared)})
    assert bound.arguments["a"] == 1
    assert bound.arguments.get("b", 5) == 5


def test_an_annotation_for_type_checkers_only_is_dropped_and_the_others_stay() -> None:
    def fn(a: int, b: Nothing, c: list[str]) -> Nothing: ...

    annotations = [each.annotation for each in PublicSignature(fn).signature.parameters.values()]
    assert annotations == [int, inspect.Parameter.empty, list[str]]
