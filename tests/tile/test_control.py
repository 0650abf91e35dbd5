"""Loops, which all threads of a block run alike, and branches, which mask the lanes that do not take them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tessera_reference.ir.diagnostics import UnsupportedConstruct
from tessera_reference.ir.module import Block
from tessera_reference.tile.interpreter import run_kernel


def test_a_loop_carries_values_from_turn_to_turn(kernel):
    """Lane t adds t * i for i = 3, 5, 7, and counts the turns."""
    k = kernel(kernel.buffer("int32", 32, 2))
    t = k.thread()
    total, turns = k.loop(
        3, 9, 2, lambda i, total, turns: (k.add(total, k.times(t, i)), k.add(turns, 1)), k.constant(0), k.constant(0)
    )
    k.store(total, k[0], t, 0)
    k.store(turns, k[0], t, 1)
    assert k.result(None) == [[t * (3 + 5 + 7), 3] for t in range(32)]


def test_a_loop_may_count_down_or_not_turn_at_all(kernel):
    k = kernel(kernel.buffer("int32", 32, 2))
    t = k.thread()
    for column, (start, stop, step) in enumerate([(5, 0, -2), (5, 5, 1)]):
        (total,) = k.loop(start, stop, step, lambda i, total: k.add(k.times(total, 10), i), k.constant(0))
        k.store(total, k[0], t, column)
    assert k.result(None) == [[531, 0]] * 32


def test_a_bound_that_differs_between_threads_is_an_error(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.loop(0, t, 1, lambda i: ())
    found = k.fails(None)
    assert found.category == "tile"
    assert "stop differs between threads: 0, and 1 in thread (1, 0, 0) of block (0, 0, 0)" in found.message


def test_a_bound_may_differ_in_lanes_that_are_not_active(kernel):
    """Only lane 7 loops, to its own number."""
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    (total,) = k.branch(
        k.equal(t, 7),
        lambda: k.loop(0, t, 1, lambda i, total: k.add(total, i), k.constant(0)),
        lambda: k.constant(-1),
    )
    k.store(total, k[0], t)
    assert k.result(None) == [21 if t == 7 else -1 for t in range(32)]


def test_a_step_of_zero_is_an_error(kernel):
    k = kernel(kernel.buffer("int32", 32))
    k.loop(0, 4, 0, lambda i: ())
    assert "step is 0" in k.fails(None).message


def test_a_branch_yields_for_each_lane_what_its_side_does(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    (value,) = k.branch(
        k.less(t, 10),
        lambda: k.branch(k.less(t, 4), lambda: k.times(t, 2), lambda: k.times(t, 3)),
        lambda: k.minus(k.constant(0), t),
    )
    k.store(value, k[0], t)
    assert k.result(None) == [2 * t if t < 4 else 3 * t if t < 10 else -t for t in range(32)]


def test_only_the_lanes_of_a_branch_write(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.branch(k.less(t, 5), lambda: k.store(k.constant(1), k[0], t), lambda: k.store(k.constant(2), k[0], t))
    assert k.result(None) == [1] * 5 + [2] * 27


def test_a_branch_inside_a_branch_is_taken_by_lanes_of_both(kernel):
    """Even lanes below 10 write over what was given."""
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    even = k.equal(k.rest(t, 2), 0)
    k.branch(k.less(t, 10), lambda: k.branch(even, lambda: k.store(t, k[0], t)))
    assert k.result(kernel.array("int32", [-1] * 32)) == [t if t < 10 and t % 2 == 0 else -1 for t in range(32)]


def test_a_branch_that_no_lane_takes_does_not_run(kernel):
    """It would not end, and goes out of bounds."""
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.branch(
        k.less(t, 0),
        lambda: (k.store(t, k[0], k.add(t, 1000)), k.loop(0, 1 << 30, 1, lambda i: ()))[1:][0],
    )
    k.store(t, k[0], t)
    assert k.result(None, steps=1000) == list(range(32))


def test_inactive_lanes_divide_by_whatever_they_hold(kernel):
    k = kernel(kernel.buffer("int32", 32), kernel.buffer("int32", 32))
    t = k.thread()
    divisor = k.load(k[0], t)
    (value,) = k.branch(k.equal(divisor, 0), lambda: k.constant(-1), lambda: k.over(k.constant(100), divisor))
    k.store(value, k[1], t)
    divisors = [t % 5 for t in range(32)]
    assert k.result(kernel.array("int32", divisors), None) == [100 // d if d else -1 for d in divisors]


def test_an_active_lane_that_divides_by_zero_is_named(kernel):
    k = kernel(kernel.buffer("int32", 32))
    t = k.thread()
    k.branch(k.less(k.constant(3), t), lambda: k.over(t, k.minus(t, 20)) and ())
    found = k.fails(None)
    assert found.category == "numerics"
    assert found.message == "divide: integer division by zero in thread (20, 0, 0) of block (0, 0, 0)"


def test_a_loop_that_does_not_end_is_refused_before_it_begins(kernel):
    k = kernel(kernel.buffer("int32", 32))
    k.loop(0, 1 << 30, 1, lambda i: k.add(i, 1) and ())
    found = k.fails(None, steps=10_000)
    assert found.message.startswith("for: a launch runs at most 10000 instructions")


def test_a_kernel_that_does_not_end_is_stopped_where_it_is(kernel):
    k = kernel(kernel.buffer("int32", 32))
    k.loop(0, 100, 1, lambda i: k.loop(0, 100, 1, lambda j: k.add(j, 1) and ()) and ())
    found = k.fails(None, steps=10_000)
    assert found.message.startswith(("add: ", "for: "))
    assert "at most 10000 instructions" in found.message


def test_an_empty_loop_is_counted_too(kernel):
    k = kernel(kernel.buffer("int32", 32))
    k.loop(0, 1 << 30, 1, lambda i: ())
    assert "for: a launch runs at most 10000" in k.fails(None, steps=10_000).message


def test_a_grid_that_could_not_end_is_refused_before_it_begins(kernel):
    k = kernel(kernel.buffer("int32", 1), grid=(1 << 30, 60000, 1))
    k.thread()
    assert "thread_id: a launch runs at most" in k.fails(None).message


def test_regions_nested_deeper_than_this_machine_goes_are_not_called_wrong(kernel):
    k = kernel(kernel.buffer("int32", 1))
    k.branch(k.less(k.thread(), 32), lambda: ())
    innermost = k.build.instructions.pop()
    for _ in range(20_000):
        outer = replace(innermost, regions=(Block((), (innermost,), (), "yield"), innermost.regions[1]))
        innermost = outer
    k.build.instructions.append(innermost)
    with pytest.raises(UnsupportedConstruct, match="deep_regions"):
        run_kernel(k.function, [kernel.array("int32", [0])], k.target)
