"""Dispatch policies (section 3.1): every module here is one, found by looking; adding one edits nothing else.

The id of a policy is the name of its module, and its parameters are those of the function `worker` there. That function
returns the worker of a task as a ScalarExpr of the parameters, of `task` (the issue number) and `key`. The executor
evaluates the expression, and the native program has it in C. Every policy has `workers`, a number; other parameters are
expressions. A capability matrix states all policies as `dispatch.*`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import TypeAlias

from ..errors import ProgramRefused
from ..statements import Expression, Leaf

MOST_WORKERS = 1 << 16
Parameter: TypeAlias = int | Expression


@cache
def found() -> Mapping[str, Callable[..., Expression]]:
    """The functions `worker` by policy id."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").worker for name in names}


def check(policy_id: str, parameters: Mapping[str, Parameter], path: str) -> None:
    """A policy exists and has its parameters. Raises `ProgramRefused`."""
    if policy_id not in found():
        raise ProgramRefused(f"{path}/id", f"is {policy_id}, expected one of {', '.join(found())}")
    expected = signature(found()[policy_id]).parameters
    if set(parameters) != set(expected):
        actual = ", ".join(parameters) or "none"
        raise ProgramRefused(f"{path}/parameters", f"are {actual}, expected {', '.join(expected)}")
    for parameter in expected:
        kind = "number" if parameter == "workers" else "expression"
        if (kind == "number") != isinstance(parameters[parameter], int):
            raise ProgramRefused(f"{path}/parameters/{parameter}", f"is no {kind}")
    workers = parameters["workers"]
    if not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise ProgramRefused(f"{path}/parameters/workers", f"is {workers}, expected 1 to {MOST_WORKERS}")


def worker(policy_id: str, parameters: Mapping[str, Parameter]) -> Expression:
    """Return the worker of a task as an expression of `task` and `key`."""
    stated = {name: Leaf("constant", value) if isinstance(value, int) else value for name, value in parameters.items()}
    return found()[policy_id](**stated)
