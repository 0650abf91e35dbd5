"""The host API as an object: every function of `entries.FUNCTIONS` is a method of `Runtime` (runtime spec 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import calls, extensions  # noqa: F401, register the functions
from .state import FUNCTIONS, State


class Runtime(State):
    """A runtime on a simulated machine of its own."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """A function of the API."""


for _name, _function in FUNCTIONS.items():
    setattr(Runtime, _name, _function)
