"""Random programs: seeds change nothing, no bound is exceeded, smaller bounds give the same results or a deadlock.

Each process has tensors and slots of its own, and a channel has one sender and one receiver where results are compared
under other bounds: of several the order would depend on times, which bounds change.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.wsp.builder import Program
from tessera_reference.wsp.compiler import compile_program
from tessera_reference.wsp.executor.run import Run
from tessera_reference.wsp.package import Package, package_bytes
from tessera_reference.wsp.reading import load
from tessera_reference.wsp.targets import target

CHANNELS, PROCESSES = 3, 3
small = st.integers(0, 3)
sizes = st.fixed_dictionaries(
    {
        "task_window": st.integers(1, 4),
        "tensormap_pool": st.integers(1, 4),
        "deplist_pool": st.integers(1, 4),
        "heap_arena": st.integers(8, 40),
        "ready_queue": st.integers(1, 3),
    }
)


@cache
def statement(process: int, shared: bool, depth: int, sending: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """A statement of a process; `shared`: it may use every channel, and tasks wait and signal.

    The body of a `consume` sends nothing: tokens that go round would never end.
    """
    slot = st.sampled_from([f"s{process}_{place}" for place in range(2)])
    tensor = st.sampled_from([{"tensor": f"t{process}_{place}"} for place in range(3)])
    sends = st.integers(0, CHANNELS - 1) if shared else st.just(process)
    takes = st.integers(0, CHANNELS - 1) if shared else st.just((process + 1) % CHANNELS)
    to, source = sends.map("c{}".format), takes.map("c{}".format)
    value = st.one_of(small.map(lambda n: {"constant": n}), slot.map(lambda name: {"slot": name}))
    arguments = st.tuples(tensor, tensor, value).map(list)
    call = {"kernel": st.sampled_from(["zero", "short", "long"]), "arguments": arguments}
    waits = st.lists(source, max_size=2) if shared else st.just([])
    signals = st.lists(to, max_size=2) if shared and sending else st.just([])
    kinds = [
        {"op": st.just("task"), **call, "key": value, "waits": waits, "signals": signals},
        {"op": st.just("task"), **call, "key": value},
        {"op": st.just("run"), **call},
        {"op": st.just("receive"), "channel": source, "into": slot},
        {"op": st.just("load"), "slot": slot, "tensor": tensor.map(lambda each: each["tensor"]), "element": value},
        {"op": st.just("wait")},
    ]
    if sending:
        kinds.append({"op": st.just("send"), "channel": to, "value": value})
    if depth:
        body = st.lists(statement(process, shared, depth - 1, sending), max_size=4)
        quiet = st.lists(statement(process, shared, depth - 1, sending=False), max_size=4)
        kinds += [
            {"op": st.just("scope"), "body": body},
            {"op": st.just("cond"), "when": value, "then": body, "otherwise": body},
            {"op": st.just("repeat"), "count": small.map(lambda n: {"constant": n}), "index": slot, "body": body},
            {"op": st.just("consume"), "channel": source, "into": slot, "body": quiet},
        ]
    return st.one_of([st.fixed_dictionaries(each) for each in kinds])


@st.composite
def packages(draw: st.DrawFn, shared: bool) -> Package:
    """A package, through its bytes."""
    program = Program("random")
    for place in range(CHANNELS):
        program.channel(f"c{place}", capacity=draw(small), latency=draw(small))
    for name, cycles in (("zero", 0), ("short", 1), ("long", 7)):
        kernel = program.kernel(name, cycles=cycles, a="tensor", b="tensor", by="scalar")
        kernel.add("a", "a", "b").add("a", "a", "by")
    for process in range(PROCESSES):
        for place in range(3):
            program.tensor(f"t{process}_{place}", "u64", 1, [place])
    program.dispatch(draw(st.sampled_from(["round_robin", "affinity", "hash"])), workers=draw(st.integers(1, 3)))
    program.resources(heap_arena=4096)
    for process in range(PROCESSES):
        body = draw(st.lists(statement(process, shared, 2), max_size=6))
        program.form["csp"]["processes"].append({"name": f"p{process}", "body": body})
    found = target("cpu_sim")
    assert found is not None
    return load(package_bytes(compile_program(program.form, found)[0]))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(packages(shared=True), sizes, st.integers(0, 2**32))
def test_a_seed_changes_nothing(package: Package, bounds: dict[str, int], seed: int) -> None:
    expected = Run(package, resources=bounds).finish().result()
    assert Run(package, resources=bounds, seed=seed).finish().result() == expected


@settings(max_examples=100, deadline=None)
@given(packages(shared=True), sizes)
def test_no_bound_is_ever_exceeded(package: Package, bounds: dict[str, int]) -> None:
    run = Run(package, resources=bounds)
    limits = {**bounds, "task_ring": bounds["task_window"]}
    del limits["task_window"]
    goes_on = True
    while goes_on:
        goes_on = run.step()
        statistics = run.result()["statistics"]
        over = [name for name, size in limits.items() if statistics["used"][name] > size]
        assert over == []
        assert all(statistics["high_water"][name] <= size for name, size in limits.items())
        for channel, stated in zip(run.machine.channels, package.channels, strict=True):
            assert len(channel.tokens) <= stated.capacity
    if run.outcome == "completed":
        scoped = ("task_ring", "tensormap_pool", "deplist_pool", "heap_arena", "ready_queue")
        assert {name: statistics["used"][name] for name in scoped} == dict.fromkeys(scoped, 0)
        ends = [*statistics["processes"].values(), *(each.time for each in run.machine.workers)]
        assert statistics["total_cycles"] == max(ends)


@settings(max_examples=150, deadline=None)
@given(packages(shared=False), sizes)
def test_smaller_bounds_give_the_same_results_or_a_deadlock(package: Package, bounds: dict[str, int]) -> None:
    large = Run(package).finish()
    few = Run(package, resources=bounds).finish()
    if large.outcome == "completed":
        assert few.outcome in ("completed", "deadlock")
    if large.outcome == few.outcome == "completed":
        for member in ("slots", "tensors", "channels", "kernels"):
            assert large.result()["statistics"][member] == few.result()["statistics"][member]


@settings(max_examples=60, deadline=None)
@given(packages(shared=True))
def test_a_deadlock_names_everyone_who_waits(package: Package) -> None:
    run = Run(package).finish()
    if run.deadlock is not None:
        waiting = {each["process"] for each in run.deadlock["waiting"] if "task" not in each}
        assert waiting == {each.name for each in run.machine.processes if not each.done}
        tasks = {each["task"] for each in run.deadlock["waiting"] if "task" in each}
        assert tasks == set(run.machine.tasks)
        assert run.deadlock["waiting"]
