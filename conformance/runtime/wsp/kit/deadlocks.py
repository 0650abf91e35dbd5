"""Programs that end in a deadlock, and the contents of their reports, computed by hand (sections 3.3 and 3.4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .programs import (
    channel,
    filler,
    process,
    program,
    receive,
    repeat,
    run,
    schedule,
    scope,
    send,
    task,
    tensor,
    wait,
    work,
)

CHANNEL_EMPTY, CHANNEL_FULL, RING_FULL = "CHANNEL_EMPTY_WAIT", "CHANNEL_FULL_WAIT", "TASK_RING_FULL"


@dataclass(frozen=True)
class Deadlock:
    """A program, and of its report: time, window (size, used, high water), channels, waiting, depths, knobs.

    `waiting` has the reason and the object of each waiting process, `scopes` the depth and the number of held slots, by
    process. `knobs` are settings that would help, some only together, with their least helpful values; none if only
    another program helps.
    """

    name: str
    program: Mapping[str, Any]
    time: int
    window: tuple[int, int, int]
    waiting: Mapping[str, tuple[str, str]]
    channels: Mapping[str, str] = field(default_factory=dict)
    scopes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    held_by_scopes: bool = False
    knobs: Mapping[str, int] = field(default_factory=dict)


def circle() -> Deadlock:
    """Three processes each wait for a token of the next; a fourth has ended and closed its channel."""
    body = {"a": ("ca", "cb"), "b": ("cb", "cc"), "c": ("cc", "ca")}
    waiters = [process(name, run("w3"), receive(own, "x"), send(other)) for name, (own, other) in body.items()]
    return Deadlock(
        "circle",
        program(
            *waiters,
            process("d", run("w7"), send("cd")),
            channels=[channel(name) for name in ("ca", "cb", "cc", "cd")],
            kernels=work(3, 7),
            schedule=schedule(window=64),
        ),
        time=7,
        window=(64, 0, 0),
        waiting={name: (CHANNEL_EMPTY, own) for name, (own, _) in body.items()},
        channels=dict.fromkeys(("ca", "cb", "cc"), "empty"),
    )


def crossed(count: int) -> Deadlock:
    """A producer fills one channel before it sends into the other, which its consumer wants to read first."""
    return Deadlock(
        f"crossed-{count}",
        program(
            process("producer", repeat(count, run("w3"), send("data", 1)), send("start")),
            process("consumer", receive("start", "s"), repeat(count, receive("data", "x"), run("w7"))),
            channels=[channel("start"), channel("data", 2)],
            kernels=work(3, 7),
            schedule=schedule(window=64),
        ),
        time=9,
        window=(64, 0, 0),
        waiting={"producer": (CHANNEL_FULL, "data"), "consumer": (CHANNEL_EMPTY, "start")},
        channels={"start": "empty", "data": "full"},
        knobs={"channel.data.capacity": count},
    )


def window_and_channel(window: int = 2, tasks: int = 3) -> Deadlock:
    """Tasks wait for tokens that their issuer sends after the last of them; the window has room for fewer."""
    return Deadlock(
        f"window-and-channel-{window}-{tasks}",
        program(
            process("issuer", *[task("w7", waits=["go"])] * tasks, repeat(tasks, send("go"))),
            process("other", run("w3")),
            channels=[channel("go")],
            kernels=work(3, 7),
            schedule=schedule("round_robin", 2, window),
        ),
        time=3,
        window=(window, window, window),
        waiting={"issuer": (RING_FULL, "task_ring")},
        channels={"go": "empty"},
        knobs={"task_window": tasks},
    )


def scope_too_large(tasks: int = 5, window: int = 3) -> Deadlock:
    """A scope in a scope issues more tasks than the window has slots; all issued ones are complete."""
    return Deadlock(
        f"scope-{tasks}-{window}",
        program(
            process("holder", scope(task("w3"), scope(*[task("w7")] * (tasks - 1)))),
            process("other", scope(run("w3"), receive("never", "x")), send("never")),
            channels=[channel("never")],
            kernels=work(3, 7),
            schedule=schedule("round_robin", 1, window),
        ),
        time=3 + 7 * (window - 1),
        window=(window, window, window),
        waiting={"holder": (RING_FULL, "task_ring"), "other": (CHANNEL_EMPTY, "never")},
        channels={"never": "empty"},
        scopes={"holder": (2, window), "other": (1, 0)},
        held_by_scopes=True,
    )


def scope_and_window() -> Deadlock:
    """The scope of one process holds the slots that it and another process need."""
    return Deadlock(
        "scope-and-window",
        program(
            process("holder", scope(scope(scope(*[task("w3")] * 4)))),
            process("other", run("w9"), task("w7"), task("w7")),
            kernels=work(3, 7, 9),
            schedule=schedule("round_robin", 2, 2),
        ),
        time=9,
        window=(2, 2, 2),
        waiting={"holder": (RING_FULL, "task_ring"), "other": (RING_FULL, "task_ring")},
        scopes={"holder": (3, 2)},
        held_by_scopes=True,
        knobs={"task_window": 4},
    )


def scope_and_arena() -> Deadlock:
    """A scope holds outputs of 12 and 5 bytes, and 8 more do not fit an arena of 24."""
    fills = [task("five", name, 7) for name in ("a", "b", "c")]
    return Deadlock(
        "scope-and-arena",
        program(
            process("holder", scope(*fills), wait()),
            kernels=[filler("five", 5)],
            tensors=[tensor("a", "i32", [0] * 3), tensor("b", "u8", [0] * 5), tensor("c", "fp64", [0])],
            schedule=schedule("round_robin", 2, 7, heap_arena=24),
        ),
        time=5,
        window=(7, 2, 2),
        waiting={"holder": ("HEAP_ARENA_FULL", "heap_arena")},
        scopes={"holder": (1, 2)},
        held_by_scopes=True,
        knobs={"heap_arena": 25},
    )


def scope_and_tensor_map() -> Deadlock:
    """A scope holds both TensorMap entries."""
    return Deadlock(
        "scope-and-tensor-map",
        program(
            process("holder", scope(*[task("five", "a", index) for index in range(3)])),
            kernels=[filler("five", 5)],
            tensors=[tensor("a", "u8", [0])],
            schedule=schedule("round_robin", 2, 64, tensormap_pool=2),
        ),
        time=10,
        window=(64, 2, 2),
        waiting={"holder": ("TENSORMAP_POOL_FULL", "tensormap_pool")},
        scopes={"holder": (1, 2)},
        held_by_scopes=True,
        knobs={"tensormap_pool": 3},
    )


def larger_than_arena() -> Deadlock:
    """One task writes more than the arena has; no scope holds bytes, so that an open scope is not the reason."""
    return Deadlock(
        "larger-than-arena",
        program(
            process("issuer", task("five", "a", 1), wait(), scope(task("five", "b", 1))),
            kernels=[filler("five", 5)],
            tensors=[tensor("a", "u8", [0] * 5), tensor("b", "i32", [0] * 3)],
            schedule=schedule("round_robin", 1, 64, heap_arena=7),
        ),
        time=5,
        window=(64, 0, 1),
        waiting={"issuer": ("HEAP_ARENA_FULL", "heap_arena")},
        scopes={"issuer": (1, 0)},
        knobs={"heap_arena": 12},
    )


def queue_and_channel() -> Deadlock:
    """The tasks of a worker's queue of two wait for a token that comes after a third."""
    return Deadlock(
        "queue-and-channel",
        program(
            process("issuer", *[task("w3", waits=["go"])] * 3, repeat(3, send("go"))),
            channels=[channel("go", 3)],
            kernels=work(3),
            schedule=schedule("round_robin", 1, 64, ready_queue=2),
        ),
        time=0,
        window=(64, 2, 2),
        waiting={"issuer": ("READY_QUEUE_FULL", "ready_queue")},
        channels={"go": "empty"},
        knobs={"ready_queue": 3},
    )


def window_and_queue() -> Deadlock:
    """The window and the queue have room for two of three tasks that wait for tokens to come: both have to grow."""
    return Deadlock(
        "window-and-queue",
        program(
            process("issuer", *[task("w3", waits=["go"])] * 3, repeat(3, send("go"))),
            channels=[channel("go", 3)],
            kernels=work(3),
            schedule=schedule("round_robin", 1, 2, ready_queue=2),
        ),
        time=0,
        window=(2, 2, 2),
        waiting={"issuer": (RING_FULL, "task_ring")},
        channels={"go": "empty"},
        knobs={"task_window": 3, "ready_queue": 3},
    )


def dependencies_and_channel() -> Deadlock:
    """Tasks that depend on one that waits for a token: the third node is one too many."""
    return Deadlock(
        "dependencies-and-channel",
        program(
            process("issuer", task("five", "a", 1, waits=["go"]), *[task("five", "a", 2)] * 3, send("go")),
            channels=[channel("go")],
            kernels=[filler("five", 5)],
            tensors=[tensor("a", "u8", [0])],
            schedule=schedule("round_robin", 1, 64, deplist_pool=2),
        ),
        time=0,
        window=(64, 3, 3),
        waiting={"issuer": ("DEPLIST_POOL_FULL", "deplist_pool")},
        channels={"go": "empty"},
        knobs={"deplist_pool": 3},
    )


DEADLOCKS: Sequence[Deadlock] = (
    circle(),
    crossed(3),
    crossed(7),
    window_and_channel(),
    window_and_channel(1, 7),
    scope_too_large(),
    scope_and_window(),
    scope_and_arena(),
    scope_and_tensor_map(),
    larger_than_arena(),
    queue_and_channel(),
    window_and_queue(),
    dependencies_and_channel(),
)
HELPED = tuple(deadlock for deadlock in DEADLOCKS if deadlock.knobs)
"""Programs that larger settings make complete."""
HELD = tuple(deadlock for deadlock in DEADLOCKS if deadlock.scopes)
"""Programs with an open scope."""


def enlarged(program: Mapping[str, Any], knobs: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return a program with the capacities `channel.NAME.capacity`, and the other knobs, as settings of a run."""
    channels = [
        channel | {"capacity": knobs.get(f"channel.{channel['name']}.capacity", channel.get("capacity", 1))}
        for channel in program["csp"]["channels"]
    ]
    changed = {**program, "csp": {**program["csp"], "channels": channels}}
    return changed, {name: size for name, size in knobs.items() if not name.startswith("channel.")}
