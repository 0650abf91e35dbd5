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
from pkgutil import iter_modules

from ..statements import Expression


@cache
def found() -> Mapping[str, Callable[..., Expression]]:
    """The functions `worker` by policy id."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").worker for name in names}
