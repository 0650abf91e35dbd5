"""Tasks: windows and pools, dependencies, workers, scopes; every time is computed by hand (section 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tessera_reference.wsp.builder import Kernel, Program, TaskWindow, Tensor

Execute = Callable[..., dict[str, Any]]


def stalls(result: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Those that happened, as count and cycles."""
    found = result["statistics"]["stalls"]
    return {reason: (each["count"], each["cycles"]) for reason, each in found.items() if each["count"]}


def independent(program: Program, count: int) -> tuple[Kernel, list[Tensor]]:
    """A kernel of 10 cycles that writes its tensor of 4 bytes, and tensors."""
    kernel = program.kernel("k", cycles=10, x="tensor").add("x", "x", 1)
    return kernel, [program.tensor(f"x{place}", "i32", 1) for place in range(count)]


def test_a_full_window_holds_back_issue(execute: Execute, program: Program) -> None:
    """Window 2, one worker, five tasks of 10: issues at 0, 0, 10, 20, 30; the process stalls three times 10 cycles."""
    kernel, tensors = independent(program, 5)
    program.task_window(TaskWindow(2))
    with program.process("p"):
        for each in tensors:
            program.task(kernel, each)
    result = execute(program)
    assert stalls(result) == {"TASK_RING_FULL": (3, 30)}
    statistics = result["statistics"]
    assert statistics["processes"] == {"p": 30}
    assert statistics["workers"] == [{"busy": 50, "tasks": 5}]
    assert statistics["total_cycles"] == 50
    assert statistics["high_water"] == {
        "task_ring": 2,
        "tensormap_pool": 2,
        "deplist_pool": 0,
        "heap_arena": 8,
        "ready_queue": 2,
    }


@pytest.mark.parametrize(
    ("sizes", "reason", "mark"),
    [
        ({"tensormap_pool": 2}, "TENSORMAP_POOL_FULL", {"tensormap_pool": 2}),
        ({"heap_arena": 11}, "HEAP_ARENA_FULL", {"heap_arena": 8}),
        ({"task_window": 2}, "TASK_RING_FULL", {"task_ring": 2}),
        ({"task_window": 2, "heap_arena": 8, "tensormap_pool": 2}, "TASK_RING_FULL", {"heap_arena": 8}),
        ({"heap_arena": 8, "tensormap_pool": 2}, "TENSORMAP_POOL_FULL", {"tensormap_pool": 2}),
    ],
)
def test_the_first_resource_that_lacks_is_the_reason(
    execute: Execute, program: Program, sizes: dict[str, int], reason: str, mark: dict[str, int]
) -> None:
    """All of these let two tasks of five be in flight."""
    kernel, tensors = independent(program, 5)
    with program.process("p"):
        for each in tensors:
            program.task(kernel, each)
    result = execute(program, resources=sizes)
    assert stalls(result) == {reason: (3, 30)}
    assert mark.items() <= result["statistics"]["high_water"].items()


def test_a_full_ready_queue(execute: Execute, program: Program) -> None:
    """One place: the second task is in the queue while the first runs, the third waits to 10, the fourth to 20."""
    kernel, tensors = independent(program, 4)
    program.resources(ready_queue=1)
    with program.process("p"):
        for each in tensors:
            program.task(kernel, each)
    result = execute(program)
    assert stalls(result) == {"READY_QUEUE_FULL": (3, 20)}
    assert result["statistics"]["high_water"]["ready_queue"] == 1


def test_a_full_deplist_pool(execute: Execute, program: Program) -> None:
    """One node: task 1 depends on task 0 and keeps its node to its end at 20, when task 2 has nothing to depend on."""
    kernel, tensors = independent(program, 1)
    program.resources(deplist_pool=1)
    with program.process("p"), program.repeat(3):
        program.task(kernel, tensors[0])
    result = execute(program)
    assert stalls(result) == {"DEPLIST_POOL_FULL": (1, 20)}
    assert result["statistics"]["total_cycles"] == 30


def test_another_reason_is_another_episode(execute: Execute, program: Program) -> None:
    """Task 2 waits for a ring slot to 10; then task 1 alone holds 8 of 12 bytes, and 8 more are free at 20."""
    small = program.kernel("small", cycles=10, x="tensor").add("x", "x", 1)
    x, y, z = program.tensor("x", "i32", 1), program.tensor("y", "i32", 2), program.tensor("z", "i32", 2)
    program.task_window(TaskWindow(2))
    program.resources(heap_arena=12)
    with program.process("p"):
        for each in (x, y, z):
            program.task(small, each)
    assert stalls(execute(program)) == {"TASK_RING_FULL": (1, 10), "HEAP_ARENA_FULL": (1, 10)}


def test_slots_are_freed_in_any_order(execute: Execute, program: Program) -> None:
    """Task 0 runs 100 cycles on worker 0, task 1 runs 10 on worker 1: its slot is free at 10, when task 2 starts."""
    long, short = program.kernel("long", cycles=100), program.kernel("short", cycles=10)
    program.task_window(TaskWindow(2))
    program.dispatch("affinity", workers=2)
    with program.process("p"):
        program.task(long, key=0)
        program.task(short, key=1)
        program.task(short, key=1)
    result = execute(program)
    assert stalls(result) == {"TASK_RING_FULL": (1, 10)}
    assert result["statistics"]["processes"] == {"p": 10}
    assert result["statistics"]["total_cycles"] == 100


def test_dependencies(execute: Execute, program: Program) -> None:
    """Five workers: 0 writes a; 1 and 2 read a; 3 writes a, after both readers; 4 reads b, which nobody writes."""
    write = program.kernel("write", cycles=10, x="tensor").add("x", "x", 1)
    read = program.kernel("read", cycles=7, source="tensor", to="tensor").copy("to", "source")
    a, b, c, d, e = (program.tensor(name, "i32", 1) for name in "abcde")
    program.dispatch("round_robin", workers=5)
    with program.process("p"):
        program.task(write, a)
        program.task(read, a, c)
        program.task(read, a, d)
        program.task(write, a)
        program.task(read, b, e)
        program.wait()
    result = execute(program)
    assert result["statistics"]["total_cycles"] == 27
    assert result["statistics"]["high_water"]["deplist_pool"] == 1 + 1 + 3
    values = {
        name: int.from_bytes(bytes.fromhex(each), "little") for name, each in result["statistics"]["tensors"].items()
    }
    assert values == {"a": 2, "b": 0, "c": 1, "d": 1, "e": 0}


def test_a_worker_takes_what_was_ready_first(execute: Execute, program: Program) -> None:
    """Task 1 waits for task 0, task 2 does not: the worker runs 0, 2, 1, as the channels at their ends tell."""
    kernel, (x, y) = independent(program, 2)
    done = program.channel("done", capacity=3)
    with program.process("p"):
        program.task(kernel, x, signals=[done])
        program.task(kernel, x, signals=[done])
        program.task(kernel, y, signals=[done])
    order = program.tensor("order", "u64", 1)
    digit = program.kernel("digit", d="tensor", of="scalar").mul("d", "d", 10).add("d", "d", "of")
    with program.process("watcher"), program.consume(done, into="n") as n:
        program.run(digit, order, n)
    tensors = execute(program)["statistics"]["tensors"]
    assert int.from_bytes(bytes.fromhex(tensors["order"]), "little") == 21  # 0, 2, 1


def test_a_task_waits_for_tokens_and_a_full_channel_keeps_its_worker(execute: Execute, program: Program) -> None:
    """The task is released at 5, ends at 15, and its second signal waits until the consumer takes the first, at 40.

    The consumer has both before the issuer goes on and closes the channel, in its next turn: a wait of no cycles.
    """
    go, done = program.channel("go"), program.channel("done")
    five, ten, forty = (program.kernel(f"k{cycles}", cycles=cycles) for cycles in (5, 10, 40))
    with program.process("starter"):
        program.run(five)
        program.send(go)
    with program.process("issuer"):
        program.task(ten, waits=[go], signals=[done, done])
        program.wait()
    with program.process("consumer"):
        program.run(forty)
        with program.consume(done, into="x"):
            pass
    result = execute(program)
    assert stalls(result) == {"CHANNEL_FULL_WAIT": (1, 25), "CHANNEL_EMPTY_WAIT": (1, 0)}
    assert result["statistics"]["processes"] == {"starter": 5, "issuer": 40, "consumer": 40}
    assert result["statistics"]["workers"] == [{"busy": 35, "tasks": 1}]


def test_a_scope_holds_what_its_complete_tasks_took(execute: Execute, program: Program) -> None:
    """Window 2. Tasks of the scope end at 10 and 20, the process leaves it at 50, when the third task is issued."""
    kernel, tensors = independent(program, 3)
    fifty = program.kernel("fifty", cycles=50)
    program.task_window(TaskWindow(2))
    with program.process("p"):
        with program.scope():
            program.task(kernel, tensors[0])
            program.task(kernel, tensors[1])
            program.run(fifty)
        program.task(kernel, tensors[2])
    result = execute(program)
    assert stalls(result) == {}
    assert result["statistics"]["total_cycles"] == 60
    assert result["statistics"]["high_water"]["task_ring"] == 2


def test_the_end_of_a_scope_is_no_barrier(execute: Execute, program: Program) -> None:
    kernel, tensors = independent(program, 1)
    with program.process("p"), program.scope():
        program.task(kernel, tensors[0])
    assert execute(program)["statistics"]["processes"] == {"p": 0}


def test_a_scope_that_holds_more_than_the_window_is_a_deadlock(execute: Execute, program: Program) -> None:
    kernel, tensors = independent(program, 3)
    program.task_window(TaskWindow(2))
    with program.process("p"), program.scope():
        for each in tensors:
            program.task(kernel, each)
    result = execute(program)
    report = result["deadlock"]
    assert (result["outcome"], report["time"]) == ("deadlock", 20)
    assert report["window"] == {"size": 2, "used": 2, "high_water": 2}
    assert report["scopes"] == [{"process": "p", "depth": 1, "held": 2}]
    assert report["held_by_scopes"] is True
    assert report["waiting"] == [
        {"process": "p", "reason": "TASK_RING_FULL", "for": "task_ring", "statement": "body/0/body/2"}
    ]
    assert report["cycle"] == ["process p", "resource task_ring", "scope of p"]
    assert execute(program, resources={"task_window": 3})["outcome"] == "completed"


def test_two_processes_that_wait_for_each_other(execute: Execute, program: Program) -> None:
    first, second = program.channel("first"), program.channel("second")
    with program.process("a"):
        program.receive(first, "x")
        program.send(second)
    with program.process("b"):
        program.receive(second, "y")
        program.send(first)
    report = execute(program)["deadlock"]
    assert report["cycle"] == ["process a", "channel first", "process b", "channel second"]
    assert [each["state"] for each in report["channels"]] == ["empty", "empty"]


def test_a_request_larger_than_its_resource_is_a_deadlock(execute: Execute, program: Program) -> None:
    kernel, tensors = independent(program, 1)
    program.resources(heap_arena=3)
    with program.process("p"):
        program.task(kernel, tensors[0])
    report = execute(program)["deadlock"]
    assert report["cycle"] == []
    assert report["mitigations"][0]["knob"] == "heap_arena"


def test_run_waits_for_tasks_that_write_its_tensors(execute: Execute, program: Program) -> None:
    kernel, (x, y) = independent(program, 2)
    with program.process("p"):
        program.task(kernel, x)
        program.run(kernel, y)
        program.run(kernel, x)
    with program.process("q"):
        program.load("seen", x)
    result = execute(program)
    assert result["statistics"]["processes"] == {"p": 20, "q": 10}
    assert result["statistics"]["slots"] == {"seen": "1"}


@pytest.mark.parametrize(
    ("policy", "parameters", "workers"),
    [
        ("round_robin", {}, [0, 1, 2, 0, 1, 2]),
        ("affinity", {}, [2, 2, 0, 1, 1, 0]),
        ("hash", {}, [0, 0, 0, 2, 1, 0]),
    ],
)
def test_policies(
    execute: Execute, program: Program, policy: str, parameters: dict[str, int], workers: list[int]
) -> None:
    """Keys 5, 5, 0, 7, 2^64 - 3 and none, which is 0; for hash the workers follow from FNV-1a, computed apart."""
    kernel = program.kernel("k")
    program.dispatch(policy, workers=3, **parameters)
    with program.process("p"):
        for key in (5, 5, 0, 7, 2**64 - 3):
            program.task(kernel, key=key)
        program.task(kernel)
    expected = [_fnv1a(key) % 3 for key in (5, 5, 0, 7, 2**64 - 3, 0)] if policy == "hash" else workers
    assert execute(program)["statistics"]["assignments"] == expected


def _fnv1a(key: int) -> int:
    digest = 14695981039346656037
    for place in range(8):
        digest = (digest ^ (key >> 8 * place & 255)) * 1099511628211 % 2**64
    return digest


def test_a_policy_of_the_user(execute: Execute, program: Program) -> None:
    kernel, shift = program.kernel("k"), program.symbol("shift", 1)
    form = {"op": "mod", "operands": [{"op": "add", "operands": [{"input": "task"}, shift.form]}, {"constant": 4}]}
    program.dispatch("expression", workers=4)
    program.form["schedule"]["policy"]["parameters"]["worker"] = form
    with program.process("p"), program.repeat(5):
        program.task(kernel)
    assert execute(program)["statistics"]["assignments"] == [1, 2, 3, 0, 1]
    assert execute(program, symbols={"shift": 3})["statistics"]["assignments"] == [3, 0, 1, 2, 3]
    form["operands"][1] = {"constant": 5}
    error = execute(program)["error"]
    assert (error["code"], error["statement"]) == ("WORKER_OUT_OF_RANGE", "body/0/body/0")
