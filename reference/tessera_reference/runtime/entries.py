"""The table of the host API: each function under its C name, and how it answers its callers (runtime spec 4, 7).

A file of `calls` defines the functions of one section: each takes the state of the runtime and then its arguments,
returns its outputs, and raises `Failure`, which need not name the function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from ..abi.status import Failure, Status, within
from ..numerics.errors import NumericsFailure
from .arguments import invalid
from .state import State

__all__ = ["FUNCTIONS", "entry", "infallible", "report"]

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions as their callers see them."""

Function = TypeVar("Function", bound=Callable[..., Any])


def entry(*outputs: str) -> Callable[[Function], Function]:
    """Register a function of the API by its name, with the names of its outputs.

    Callers get a status or, of a function with outputs, a status and what it returned, None where it failed. Nothing
    raises. With `null` they name outputs whose pointer is NULL.
    """

    def register(function: Function) -> Function:
        FUNCTIONS[function.__name__] = _answering(function, outputs)
        return function

    return register


def infallible(function: Function) -> Function:
    """Register a function that cannot fail: callers get what it returns, without a status."""
    FUNCTIONS[function.__name__] = function
    return function


def _answering(function: Callable[..., Any], outputs: tuple[str, ...]) -> Callable[..., Any]:
    name = function.__name__

    @wraps(function)
    def call(state: State, *arguments: Any, null: tuple[str, ...] = (), **named: Any) -> Any:
        state.machine.host_call()
        try:
            if null:
                _require_places(outputs, null)
            answer = function(state, *arguments, **named)
        except Failure as failure:
            return failed(state, failure.status, str(within(failure, name)))
        except NumericsFailure as failure:
            return failed(state, Status.TESS_ERR_INVALID_VALUE, f"{name}: {failure}")
        except MemoryError:
            text = f"{name}: the simulating machine has no memory left; expected smaller sizes"
            return failed(state, Status.TESS_ERR_OUT_OF_MEMORY, text)
        return (Status.TESS_OK, answer) if outputs else Status.TESS_OK

    def failed(state: State, status: Status, text: str) -> Any:
        report(state, status, text)
        return (status, None) if outputs else status

    return call


def _require_places(outputs: tuple[str, ...], null: tuple[str, ...]) -> None:
    for output in outputs:
        if output in null:
            raise invalid(f"{output} is NULL", "a pointer to where the result goes")


def report(state: State, status: Status, text: str) -> Status:
    """Remember how a call failed; returns its status."""
    state.last_status, state.last_error = status, text
    state.log.note("info", f"{status.name}: {text}")
    return status
