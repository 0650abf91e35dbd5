"""Processes of the virtual-time engine, and what they wait for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from typing import Any

__all__ = ["Process", "Wait"]


class Wait(ABC):
    """What a process waits for."""

    __slots__ = ()

    @abstractmethod
    def suspend(self, process: Process) -> None:
        """Keep the process until it may go on."""

    def wakers(self) -> Iterable[Process]:
        """The processes that could let it go on, as far as is known."""
        return ()

    @abstractmethod
    def describe(self) -> str:
        """What is waited for, in words."""


class Process:
    """A coroutine that the engine drives."""

    __slots__ = ("coroutine", "done", "name", "send", "waits_for")

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        self.name = name
        self.coroutine = coroutine
        self.send = coroutine.send
        self.waits_for: Wait | None = None
        self.done = False
