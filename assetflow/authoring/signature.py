"""The signature that Prefect sees: the user's, with the parameters that assetflow fills in made optional."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class PublicSignature:
    """The signature of a user's function for its callers, and the way back to the function's own arguments.

    Attributes:
        signature: the signature for callers: parameters that assetflow fills in are keyword-only and optional.
        declared: the names of these parameters that the function itself declares.

    Parameters:
        fn: the user's function.
        filled: names of parameters that are filled in if the function declares them.
        added: names of parameters that callers may give whether or not the function declares them.
    """

    def __init__(self, fn: Callable[..., Any], *, filled: Iterable[str] = (), added: Iterable[str] = ()) -> None:
        own = _evaluated(fn)
        names = [*added, *(name for name in filled if name in own.parameters)]
        self.declared = frozenset(name for name in names if name in own.parameters)
        self.signature = _with_optional(own, names)
        kinds = {parameter.kind for parameter in own.parameters.values()}
        # Without these kinds every argument can be passed by name, wherever the filled-in parameters stand. A decorator
        # that calls the function may take positional arguments only, so they stay as they are if nothing is filled in.
        self._by_name = bool(self.declared) and not kinds & {Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL}
        self._positional = [name for name, each in self.signature.parameters.items() if each.kind in _POSITIONAL]

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a caller's arguments as arguments of the function."""
        if not self._by_name or len(args) > len(self._positional):
            return args, dict(kwargs)
        return (), {**dict(zip(self._positional, args, strict=False)), **kwargs}


def _evaluated(fn: Callable[..., Any]) -> Signature:
    """Return the signature with its annotations as objects.

    An annotation that cannot be evaluated, such as a name that is imported for type checkers only, is dropped.
    """
    try:
        return inspect.signature(fn, eval_str=True)
    except Exception:
        own = inspect.signature(fn)
    namespace = getattr(inspect.unwrap(fn), "__globals__", {})
    parameters = [each.replace(annotation=_evaluate(each.annotation, namespace)) for each in own.parameters.values()]
    return own.replace(parameters=parameters, return_annotation=_evaluate(own.return_annotation, namespace))


def _evaluate(annotation: object, namespace: dict[str, Any]) -> object:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, namespace)
    except Exception:
        return Parameter.empty


def _with_optional(own: Signature, names: Iterable[str]) -> Signature:
    names = list(dict.fromkeys(names))
    kept = [each for name, each in own.parameters.items() if name not in names]
    optional = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Any) for name in names]
    # Only **kwargs may follow keyword-only parameters.
    rest = [each for each in kept if each.kind is Parameter.VAR_KEYWORD]
    return own.replace(parameters=[*(each for each in kept if each not in rest), *optional, *rest])
