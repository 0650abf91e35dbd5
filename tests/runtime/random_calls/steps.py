"""All steps, how often each is taken, and how a session begins."""

from __future__ import annotations

from collections.abc import Callable

from . import (
    steps_collectives,
    steps_copies,
    steps_graphs,
    steps_issues,
    steps_launches,
    steps_live,
    steps_memory,
    steps_modules,
    steps_settings,
)
from .session import Session

__all__ = ["STEPS", "Step", "begin", "finish", "take"]

Step = Callable[[Session], None]

PARTS = (
    steps_live,
    steps_memory,
    steps_copies,
    steps_modules,
    steps_launches,
    steps_collectives,
    steps_issues,
    steps_graphs,
    steps_settings,
)
STEPS: dict[Step, int] = {step: weight for part in PARTS for step, weight in part.STEPS.items()}


def begin(session: Session) -> None:
    """A context with a mesh, streams, memory and kernels, so that most steps have something to work on."""
    steps_live.init(session)
    for _ in range(2):
        steps_live.mesh_create(session)
        steps_live.stream_create(session)
        steps_memory.malloc(session)
        steps_memory.host_memory(session)
    steps_live.event_create(session)
    steps_modules.module_load(session)
    for _ in range(5):
        steps_modules.kernel_get(session)
    session.compare()
    session.begun = True


def take(session: Session, step: Step) -> None:
    """One step, and the comparison after it."""
    step(session)
    session.compare()


def finish(session: Session) -> None:
    """Everything can be waited for and taken down."""
    for stream in list(session.world.streams):
        steps_live.synchronized(session, stream)
    session.compare()
    for context in list(session.world.contexts):
        session.judged("tessShutdown", {"ctx": context}, {steps_live.OK})
