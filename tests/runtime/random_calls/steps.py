"""All steps, how often each is taken, and how a session begins."""

from __future__ import annotations

from collections.abc import Callable

from . import steps_objects, steps_settings, steps_work
from .session import Session

Step = Callable[[Session], None]
STEPS: dict[Step, int] = steps_objects.STEPS | steps_work.STEPS | steps_settings.STEPS


def begin(session: Session) -> None:
    """A context with a mesh, streams, memory and kernels, so that most steps have something to work on."""
    steps_objects.init(session)
    for _ in range(2):
        steps_objects.mesh_create(session)
        steps_objects.stream_create(session)
        steps_objects.malloc(session)
        steps_objects.host_memory(session)
    steps_objects.event_create(session)
    steps_objects.module_load(session)
    for _ in range(5):
        steps_objects.kernel_get(session)
    session.compare()
    session.begun = True


def take(session: Session, step: Step) -> None:
    """One step, and the comparison after it."""
    step(session)
    session.compare()


def finish(session: Session) -> None:
    """Everything can be waited for and taken down."""
    for stream in list(session.world.streams):
        steps_objects.synchronized(session, stream)
    session.compare()
    for context in list(session.world.contexts):
        session.judged("tessShutdown", {"ctx": context}, {steps_objects.OK})
