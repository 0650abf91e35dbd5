"""Random programs whose results do not depend on the sizes of resources, and these results, from a sequential model.

Processes own their tensors and slots; a channel has one producer and one consumer, and carries tokens of one kind. So
results do not depend on time. Statements are generated in an order in which they can run one after the other (a token
is taken after it is sent), and the model executes them in this order: with room for all, a program completes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tessera_conformance.fuzz.tree import Chooser

from .programs import (
    channel,
    instruction,
    kernel,
    process,
    program,
    receive,
    repeat,
    run,
    schedule,
    scope,
    send,
    slot,
    task,
    tensor,
    wait,
)

U64 = 1 << 64
ROOM = 64
"""The capacity of a channel in tokens; no program sends so many."""
MIX = kernel(
    "mix",
    {"a": "tensor", "by": "scalar"},
    [instruction("mul", "a", "a", 31), instruction("add", "a", "a", "by")],
    cycles=5,
)
COPY_MIX = kernel(
    "copy_mix",
    {"a": "tensor", "b": "tensor", "by": "scalar"},
    [*MIX["payload"]["instructions"], instruction("add", "b", "b", "a")],
    cycles=2,
    per_element=1,
)


@dataclass
class Actor:
    """A generated process: its statements, and the values of its tensors and its slot in the model."""

    name: str
    body: list[dict[str, Any]] = field(default_factory=list)
    tensors: list[int] = field(default_factory=lambda: [0, 0, 0])
    value: int = 0

    def tensor(self, place: int) -> str:
        """Return the name of a tensor."""
        return f"{self.name}{place}"


@dataclass
class Link:
    """A channel, and its tokens that were sent and not taken; `by_tasks` is True if tasks signal, and if tasks wait."""

    name: str
    producer: Actor
    consumer: Actor
    by_tasks: tuple[bool, bool]
    tokens: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Generated:
    """A program with large channels, and the elements of its tensors and the slots at the end."""

    program: Mapping[str, Any]
    tensors: Mapping[str, int]
    slots: Mapping[str, str]
    links: tuple[str, ...]


def generate(choose: Chooser) -> Generated:
    """Return a program of two to four processes on one to three workers."""
    actors = [Actor(name) for name in "pqrs"[: choose.between(2, 4)]]
    links = [_link(choose, place, actors) for place in range(choose.between(1, 4))]
    for _ in range(choose.between(6, 28)):
        _act(choose, actors, links)
    for link in links:
        while link.tokens:
            _take(choose, link)
    tensors = {actor.tensor(place): value % U64 for actor in actors for place, value in enumerate(actor.tensors)}
    policy, workers = choose.pick(["round_robin", "affinity", "hash"]), choose.between(1, 3)
    one = program(
        *(process(actor.name, *actor.body) for actor in actors),
        channels=[channel(link.name, ROOM, choose.pick([0, 0, 3])) for link in links],
        kernels=[MIX, COPY_MIX],
        tensors=[tensor(name, "u64", [0]) for name in tensors],
        schedule=schedule(policy, workers),
    )
    seen = {f"{actor.name}_x": str(actor.value) for actor in actors}
    return Generated(one, tensors, seen, tuple(link.name for link in links))


def _link(choose: Chooser, place: int, actors: list[Actor]) -> Link:
    producer = choose.pick(actors)
    consumer = choose.pick([actor for actor in actors if actor is not producer])
    return Link(f"c{place}", producer, consumer, (choose.chance(4), choose.chance(4)))


def _act(choose: Chooser, actors: list[Actor], links: list[Link]) -> None:
    """Append the next statement of some process, or those of both ends of a channel."""
    actor, kind = choose.pick(actors), choose.below(10)
    if kind < 3:
        actor.body.append(_work(choose, actor))
    elif kind < 6:
        _send(choose, choose.pick(links))
    elif kind == 6:
        waiting = [link for link in links if link.tokens]
        if waiting:
            _take(choose, choose.pick(waiting))
    elif kind == 7:
        actor.body.append(wait())
    elif kind == 8:
        inner = [_work(choose, actor) for _ in range(choose.between(1, 4))]
        actor.body.append(scope(*inner, scope(_work(choose, actor))) if choose.chance(3) else scope(*inner))
    else:
        a, by, count = choose.below(3), choose.between(1, 9), choose.between(1, 4)
        actor.body.append(repeat(count, task("mix", actor.tensor(a), by, key=by)))
        for _ in range(count):
            _mix(actor, a, by)


def _work(choose: Chooser, actor: Actor) -> dict[str, Any]:
    """Return a kernel on tensors of the process, with the value of its slot or a constant."""
    statement = run if choose.chance(5) else task
    own = choose.chance(2)
    by, value = (slot(f"{actor.name}_x"), actor.value) if own else (7, 7)
    a = choose.below(3)
    _mix(actor, a, value)
    if choose.chance(3):
        b = (a + 1) % 3
        actor.tensors[b] = (actor.tensors[b] + actor.tensors[a]) % U64
        return statement("copy_mix", actor.tensor(a), actor.tensor(b), by)
    return statement("mix", actor.tensor(a), by)


def _mix(actor: Actor, place: int, by: int) -> None:
    actor.tensors[place] = (actor.tensors[place] * 31 + by) % U64


def _send(choose: Chooser, link: Link) -> None:
    """Append a send of a token, by the process or by a task; most tokens are taken at once."""
    if len(link.tokens) >= 8:
        return
    actor = link.producer
    if link.by_tasks[0]:
        _mix(actor, 0, 3)
        actor.body.append(task("mix", actor.tensor(0), 3, signals=[link.name]))
        link.tokens.append(-1)
    else:
        token = choose.between(1, 99)
        actor.body.append(send(link.name, token))
        link.tokens.append(token)
    if not choose.chance(3):
        _take(choose, link)


def _take(choose: Chooser, link: Link) -> None:
    """Append a take of the first token by a task or the process; a task's token, a number, goes into an unused slot."""
    actor, token = link.consumer, link.tokens.pop(0)
    if link.by_tasks[1]:
        a = choose.below(3)
        _mix(actor, a, 5)
        actor.body.append(task("mix", actor.tensor(a), 5, waits=[link.name]))
    elif token < 0:
        actor.body.append(receive(link.name, "number"))
    else:
        actor.body.append(receive(link.name, f"{actor.name}_x"))
        actor.value = token


Sizes: TypeAlias = tuple[dict[str, int], dict[str, int]]
"""The sizes of resources, and of channels."""


def bounded(choose: Chooser, times: int) -> tuple[Generated, list[Sizes]]:
    """Return a program, and smaller sizes for several runs of it."""
    generated = generate(choose)
    return generated, [smaller(choose, generated.links) for _ in range(times)]


def smaller(choose: Chooser, links: tuple[str, ...]) -> Sizes:
    """Return sizes of resources, each of which is enough for one task, and capacities of channels."""
    sizes = {
        "task_window": choose.between(1, 4),
        "tensormap_pool": choose.between(2, 5),
        "deplist_pool": choose.between(2, 6),
        "heap_arena": choose.between(16, 40),
        "ready_queue": choose.between(1, 3),
    }
    kept = {name: size for name, size in sizes.items() if not choose.chance(3)}
    return kept, {f"channel.{link}.capacity": choose.between(1, 3) for link in links}
