"""Dispatch policies (section 3.1): every module here is one, found by looking; adding one edits nothing else.

A module has `ID`, `PARAMETERS`, which says of each parameter `number` or `expression`, and `worker`. That function
returns the worker of a task as a ScalarExpr of the parameters, of `task` (the issue number) and `key`. The executor
evaluates the expression, and the native program has it in C. Every policy has `workers`. A capability matrix states all
policies as `dispatch.*`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeAlias

from ..errors import ProgramRefused, RunError
from ..statements import Constant, Expression, Values

MOST_WORKERS = 1 << 16
Place: TypeAlias = Callable[[int, int], int]
Parameter: TypeAlias = int | Expression


@cache
def found() -> Mapping[str, Any]:
    """The modules by policy id."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return {module.ID: module for module in sorted(modules, key=lambda module: str(module.ID))}


def check(policy_id: str, parameters: Mapping[str, Parameter], path: str) -> None:
    """A policy exists and has its parameters. Raises `ProgramRefused`."""
    policy = found().get(policy_id)
    if policy is None:
        raise ProgramRefused(f"{path}/id", f"is {policy_id}, expected one of {', '.join(found())}")
    if set(parameters) != set(policy.PARAMETERS):
        expected = ", ".join(policy.PARAMETERS)
        raise ProgramRefused(f"{path}/parameters", f"are {', '.join(parameters) or 'none'}, expected {expected}")
    for parameter, kind in policy.PARAMETERS.items():
        value = parameters[parameter]
        if (kind == "number") != isinstance(value, int):
            raise ProgramRefused(f"{path}/parameters/{parameter}", f"is no {kind}")
    workers = parameters["workers"]
    if not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise ProgramRefused(f"{path}/parameters/workers", f"is {workers}, expected 1 to {MOST_WORKERS}")


def worker(policy_id: str, parameters: Mapping[str, Parameter]) -> Expression:
    """Return the worker of a task as an expression of `task` and `key`."""
    stated = {name: Constant(value) if isinstance(value, int) else value for name, value in parameters.items()}
    expression: Expression = found()[policy_id].worker(stated)
    return expression


def placement(policy_id: str, parameters: Mapping[str, Parameter], symbols: list[int]) -> Place:
    """Return the function from issue number and key of a task to a worker, which raises `RunError`."""
    workers, expression = parameters["workers"], worker(policy_id, parameters)
    assert isinstance(workers, int)
    now = Values(symbols)

    def place(task: int, key: int) -> int:
        now.task, now.key = task, key
        chosen = expression.value(now)
        if chosen >= workers:
            raise RunError("WORKER_OUT_OF_RANGE", f"the policy places task {task} on worker {chosen} of {workers}")
        return chosen

    return place
