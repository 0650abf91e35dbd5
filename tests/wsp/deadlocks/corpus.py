"""What the corpus of deadlocks is made of: programs, why they wait, and what helps against it, worked out by hand.

A cure is the set of settings that the run needs at least; no cure says that only another program helps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tessera_reference.wsp.builder import Channel, Kernel, Program, Tensor

__all__ = ["DEADLOCKS", "EMPTY", "FULL", "TASK", "Deadlock", "adder", "channel", "deadlock", "receives", "sends"]

Cure = Mapping[str, int]


@dataclass(frozen=True)
class Deadlock:
    """A program that deadlocks, why its processes and tasks wait, and its cures."""

    build: Callable[[Program], None]
    reasons: frozenset[str]
    cures: Sequence[Cure]

    @property
    def program(self) -> Program:
        """The program, built anew."""
        program = Program(self.build.__name__)
        self.build(program)
        return program


DEADLOCKS: dict[str, Deadlock] = {}
EMPTY, FULL, TASK = "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT", "TASK_WAIT"


def deadlock(reasons: Sequence[str], *cures: Cure) -> Callable[[Callable[[Program], None]], Callable[[Program], None]]:
    """Add a program to the corpus."""

    def add(build: Callable[[Program], None]) -> Callable[[Program], None]:
        DEADLOCKS[build.__name__] = Deadlock(build, frozenset(reasons), cures)
        return build

    return add


def channel(name: str, capacity: int) -> Cure:
    """The setting of a channel."""
    return {f"channel.{name}.capacity": capacity}


def adder(program: Program, tensors: int) -> tuple[Kernel, Sequence[Tensor]]:
    """A kernel of 10 cycles that adds 1 to a tensor, and tensors of 4 bytes."""
    kernel = program.kernel("k", cycles=10, x="tensor").add("x", "x", 1)
    return kernel, [program.tensor(f"x{place}", "i32", 1) for place in range(tensors)]


def sends(program: Program, channel: Channel, count: int) -> None:
    """Several tokens."""
    for value in range(count):
        program.send(channel, value)


def receives(program: Program, channel: Channel, count: int) -> None:
    """Several tokens."""
    for _ in range(count):
        program.receive(channel, "v")
