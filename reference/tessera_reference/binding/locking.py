"""One lock around every call of the binding, so that threads may share contexts, meshes and streams.

The simulated machine runs in the thread that waits for it; so a wait holds the lock until the work is done. Only calls
of the binding are locked: the arrays of the application are its own business.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import ParamSpec, TypeVar

__all__ = ["LOCK", "locked", "locked_class"]

LOCK = threading.RLock()

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Class = TypeVar("Class", bound=type)


def locked(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """The function, which runs while nothing else of the binding does."""

    @wraps(function)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with LOCK:
            return function(*arguments, **named)

    return run


def locked_class(cls: Class) -> Class:
    """The class, all of whose methods and properties are locked; a generator is so while it is made only."""
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType):
            setattr(cls, name, locked(member))
        elif isinstance(member, property):
            read = None if member.fget is None else locked(member.fget)
            write = None if member.fset is None else locked(member.fset)
            setattr(cls, name, property(read, write, doc=member.__doc__))
    return cls
