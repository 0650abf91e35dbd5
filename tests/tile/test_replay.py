"""Launches by a plan against launches instruction by instruction: the same bits, and the same faults."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS
from tessera_reference.graph.elementwise import Multiply
from tessera_reference.ir.diagnostics import Rejection, UnsupportedConstruct
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.ir.types import Scalar
from tessera_reference.kernel_machine import replay
from tessera_reference.language import compile_source
from tessera_reference.levels.execution import lower, run_lowered, specialized
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.tile import interpreter
from tessera_reference.tile.fragments import FragmentStore, FragmentZero, LoadMatrix, MmaSync
from tessera_reference.tile.operations import Barrier, CopyAsync, LaneId, ShuffleSync

LANES, BLOCKS = 64, 3
PLACES = np.arange(BLOCKS * LANES).reshape(BLOCKS, LANES)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**-149, -(2.0**-126), 3.0], np.float32)[PLACES % 8]


class Repeated:
    """Runs a function four times, on two inputs in turn, by a plan from the third time on, and once without plans."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch
        self.plans = 0
        run = interpreter.Plan.run

        def counted(plan, arguments):
            made = run(plan, arguments)
            self.plans += made is not None
            return made

        monkeypatch.setattr(interpreter.Plan, "run", counted)

    def __call__(self, run, *inputs):
        self.patch.setattr(interpreter, "LOCKSTEP", False)
        plain = [outcome(lambda data=data: run(data)) for data in inputs]
        self.patch.setattr(interpreter, "LOCKSTEP", True)
        for _ in range(4):
            assert [outcome(lambda data=data: run(data)) for data in inputs] == plain
        return plain


def outcome(run):
    """The bits of the results, or the words of the refusal."""
    try:
        return [result.to_bits() for result in run()]
    except Rejection as refusal:
        return [str(diagnostic) for diagnostic in refusal.diagnostics]


@pytest.fixture
def repeated(monkeypatch):
    """A runner with and without plans."""
    return Repeated(monkeypatch)


class Rows:
    """A kernel whose block b works on row b; `x` is the element of the thread in the first buffer of two."""

    def __init__(self, kernel, held="fp32"):
        self.k = kernel(kernel.buffer(held, BLOCKS, LANES), kernel.buffer(held, BLOCKS, LANES),
                        grid=(BLOCKS, 1, 1), block=(LANES, 1, 1))  # fmt: skip
        self.held = held
        self.b, self.t = self.k.block_id(), self.k.thread()
        self.x = self.k.load(self.k[0], self.b, self.t)

    def number(self, value):
        return self.k.constant(value, self.held)

    def finish(self, repeated, value, *inputs):
        if value is not None:
            self.k.store(value, self.k[1], self.b, self.t)
        function = self.k.function

        def run(data):
            return interpreter.run_kernel(function, (self.k.array(self.held, data), None), self.k.target)

        return repeated(run, *(inputs or (PLACES % 100, PLACES[::-1] % 7)))


def reversed_in_shared(r):
    shared = r.k.allocate(r.held, LANES)
    r.k.store(r.x, shared, r.t)
    r.k.all(Barrier)
    return r.k.load(shared, r.k.minus(r.k.constant(LANES - 1), r.t))


def row_of_another_block(r):
    return r.k.load(r.k[0], r.k.minus(r.k.constant(BLOCKS - 1), r.b), r.t)


def padded(r):
    """A choice between data and a constant, whose zero has a sign."""
    (chosen,) = r.k.branch(r.k.less(r.t, 40), lambda: r.x, lambda: r.number(-0.0))
    return chosen


def chosen_by_block(r):
    (chosen,) = r.k.branch(r.k.less(r.b, 2), lambda: r.k.add(r.x, r.x), lambda: r.number(0.0))
    return chosen


def of_both_zeros(r):
    """The constants 0.0 and -0.0 are equal numbers with different bits."""
    return r.k.add(r.k.times(r.x, r.number(0.0)), r.k.times(r.x, r.number(-0.0)))


def carried(r):
    """A sum over the warp, begun by a constant."""

    def turn(i, total):
        return r.k.add(total, r.k(ShuffleSync, r.x, delta=3))

    (total,) = r.k.loop(0, 5, 1, turn, r.number(1.0))
    return total


def carried_by_no_turn(r):
    (total,) = r.k.loop(0, 0, 1, lambda i, total: r.k.add(total, r.x), r.number(1.0))
    return r.k.add(total, r.x)


def under_a_mask(r):
    """Other lanes read the value of a branch, and have a copy themselves."""
    shared = r.k.allocate(r.held, LANES)
    r.k.store(r.x, shared, r.t)
    r.k.all(Barrier)

    def doubled():
        x = r.k.load(shared, r.k.add(r.t, 30))
        return r.k.times(r.k.add(x, x), r.x)

    (chosen,) = r.k.branch(r.k.less(r.t, 34), doubled, lambda: r.x)
    return chosen


def written_in_place(r):
    """The first buffer, too, is a result."""
    r.k.store(r.k.add(r.x, r.x), r.k[0], r.b, r.t)
    return r.k.load(r.k[0], r.b, r.t)


STATIC = [
    reversed_in_shared, row_of_another_block, padded, chosen_by_block, of_both_zeros, carried, carried_by_no_turn,
    under_a_mask, written_in_place,
]  # fmt: skip


@pytest.mark.parametrize("body", STATIC)
def test_a_launch_that_does_not_depend_on_data_runs_by_a_plan(kernel, repeated, body):
    rows = Rows(kernel)
    rows.finish(repeated, body(rows), PLACES % 100, SPECIAL)
    assert repeated.plans == 6  # of eight, all but the first two


@pytest.mark.parametrize("held", ["bf16", "fp16", "fp8_e4m3", "fp64", "int32", "int64"])
def test_elements_of_32_and_64_bits_run_by_a_plan(kernel, repeated, held):
    rows = Rows(kernel, held)
    rows.finish(repeated, rows.k.add(reversed_in_shared(rows), rows.x), PLACES % 8, PLACES % 5)
    assert repeated.plans == 6


def condition(r):
    (chosen,) = r.k.branch(r.k.less(r.x, r.number(3)), lambda: r.k.add(r.x, r.x), lambda: r.x)
    return chosen


def address(r):
    return r.k.load(r.k[0], r.b, r.k.rest(r.x, LANES))


def one_address(r):
    """The same in all lanes and blocks, as a bound is."""
    return r.k.load(r.k[0], r.b, r.k.load(r.k[0], 0, 0))


def place_of_a_store(r):
    r.k.store(r.x, r.k[1], r.b, r.k.add(r.t, r.k.minus(r.x, r.x)))


def turns(r):
    (total,) = r.k.loop(0, r.k.load(r.k[0], 0, 1), 1, lambda i, total: r.k.add(total, r.x), r.x)
    return total


def address_through_shared_memory(r):
    shared = r.k.allocate("int32", LANES)
    r.k.store(r.t, shared, r.t)
    return r.k.load(r.k[0], r.b, r.k.load(shared, r.t))


@pytest.mark.parametrize(
    "body", [condition, address, one_address, place_of_a_store, turns, address_through_shared_memory]
)
def test_a_launch_that_may_depend_on_data_has_no_plan(kernel, repeated, body):
    rows = Rows(kernel, "int32")
    rows.finish(repeated, body(rows), PLACES % 9, PLACES[::-1] % 7)
    assert repeated.plans == 0


@pytest.mark.parametrize("held", ["int8", "bool", "complex64"])
def test_elements_without_room_for_a_number_have_no_plan(kernel, repeated, held):
    rows = Rows(kernel, held)
    rows.finish(repeated, rows.x, PLACES % 2, PLACES // 2 % 2)
    assert repeated.plans == 0


def race_in_the_last_block(r):
    shared = r.k.allocate(r.held, LANES)
    last = r.k.less(r.k.minus(r.k.constant(BLOCKS - 2), r.b), 0)
    r.k.store(r.x, shared, r.t)
    r.k.branch(last, lambda: r.k.store(r.x, shared, 0) or ())
    return r.x


def beyond_the_end_in_the_last_block(r):
    return r.k.load(r.k[0], r.k.over(r.k.times(r.b, BLOCKS), BLOCKS - 1), r.t)


def without_a_barrier(r):
    shared = r.k.allocate(r.held, LANES)
    r.k.store(r.x, shared, r.t)
    return r.k.load(shared, r.k.minus(r.k.constant(LANES - 1), r.t))


def uninitialised(r):
    return r.k.load(r.k.allocate(r.held, LANES), r.t)


def before_the_wait(r):
    shared = r.k.allocate(r.held, LANES)
    r.k.all(CopyAsync, r.k[0], shared, r.b, r.t, r.t, bytes=4)
    return r.k.load(shared, r.t)


def partial_barrier(r):
    r.k.branch(r.k.less(r.t, 32), lambda: r.k.all(Barrier))
    return r.x


def written_by_two_blocks(r):
    r.k.store(r.x, r.k[1], r.k.over(r.b, 2), r.t)


def not_written(r):
    r.k.branch(r.k.less(r.t, 5), lambda: r.k.store(r.x, r.k[1], r.b, r.t) or ())


@pytest.mark.parametrize("body", [
    race_in_the_last_block, beyond_the_end_in_the_last_block, without_a_barrier, uninitialised, before_the_wait,
    partial_barrier, written_by_two_blocks, not_written,
])  # fmt: skip
def test_a_fault_is_reported_every_time(kernel, repeated, body):
    rows = Rows(kernel)
    plain = rows.finish(repeated, body(rows))
    assert all(isinstance(text, str) for (text, *_) in plain) and repeated.plans == 0


def test_an_operation_that_fails_on_later_data_is_reported(kernel, repeated):
    rows = Rows(kernel, "int32")
    plain = rows.finish(repeated, rows.k.over(rows.k.constant(12), rows.x), PLACES + 1, PLACES[::-1])
    assert isinstance(plain[0][0], bytes) and "division by zero" in plain[1][0]
    assert repeated.plans == 3  # those on the first input, but the first one


def test_an_operation_that_fails_is_reported_where_nothing_reads_its_result(kernel, repeated):
    rows = Rows(kernel, "int32")
    rows.k.over(rows.k.constant(12), rows.x)
    plain = rows.finish(repeated, rows.x, PLACES + 1, PLACES[::-1])
    assert "division by zero" in plain[1][0]


def test_every_second_element_and_every_element_backwards(kernel, repeated):
    k = kernel(kernel.buffer("fp32", 2 * LANES), kernel.buffer("fp32", LANES), grid=(1, 1, 1), block=(LANES, 1, 1))
    t = k.thread()
    pairs = k.add(k.load(k[0], k.times(t, 2)), k.load(k[0], k.add(k.times(t, 2), 1)))
    same = k.add(k.load(k[0], 3), k.load(k[0], k.minus(k.constant(2 * LANES - 1), t)))
    k.store(k.times(pairs, same), k[1], t)
    function = k.function
    data = [k.array("fp32", np.arange(2 * LANES) % size) for size in (7, 11)]
    repeated(lambda x: interpreter.run_kernel(function, (x, None), k.target), *data)
    assert repeated.plans == 6


def test_a_plan_of_too_many_places_is_given_up(kernel, repeated, monkeypatch):
    monkeypatch.setattr(replay, "MOST_PLACES", 0)
    rows = Rows(kernel)
    rows.finish(repeated, rows.k.add(rows.x, row_of_another_block(rows)))
    assert repeated.plans == 0


def test_what_a_mask_keeps_from_failing_does_not_fail(kernel, repeated):
    rows = Rows(kernel, "int32")
    k = rows.k
    (quotient,) = k.branch(k.less(rows.t, 32), lambda: k.over(k.constant(12), rows.x), lambda: rows.x)
    data = np.where(PLACES % LANES < 32, PLACES + 1, 0)
    rows.finish(repeated, quotient, data, data * 2)
    assert repeated.plans == 6


def test_a_recording_of_too_many_elements_is_given_up(kernel, repeated, monkeypatch):
    monkeypatch.setattr(replay, "MOST_ELEMENTS", 2 * BLOCKS * LANES)
    rows = Rows(kernel)
    rows.finish(repeated, rows.k.add(rows.k.add(rows.x, rows.x), rows.x))
    assert repeated.plans == 0


def test_scalars_are_data(kernel, repeated):
    k = kernel(kernel.buffer("fp32", LANES), Scalar(dtype("fp32")), grid=(1, 1, 1), block=(LANES, 1, 1))
    k.store(k(Multiply, k[1], k[1]), k[0], k.thread())
    function = k.function
    scalars = [k.array("fp32", number) for number in (1.0, 2.0)]
    repeated(lambda scalar: interpreter.run_kernel(function, (None, scalar), k.target), *scalars)
    assert repeated.plans == 6


@pytest.mark.parametrize("kept", ["the last sum", "every sum"])
@pytest.mark.parametrize("accum", ["fp32", "fp16"])
def test_products_that_continue_a_sum_share_rows_or_have_two_starts(kernel, repeated, kept, accum):
    """Three products in a chain, and a fourth of the same operands as the last that begins at zero."""
    held = kernel.fragment("fp16", 16, 16, 16)
    k = kernel(kernel.buffer("fp16", 2, 256), kernel.buffer(accum, 2, 4, 16, 16), grid=(2, 1, 1))
    b, lane = k.block_id(), k(LaneId)
    tile, zero = k.allocate("fp16", 48, 16), k.constant(0)

    def copy(i):
        at = k.add(k.times(i, 32), lane)
        k.store(k.load(k[0], b, k.rest(at, 256)), tile, k.over(at, 16), k.rest(at, 16))
        return ()

    k.loop(0, 24, 1, copy)
    k.all(Barrier)
    rows = [k(LoadMatrix, tile, k.constant(16 * i), zero, returns=held) for i in range(3)]
    first = sums = k(FragmentZero, returns=held, accum=dtype(accum))
    sums = [first]
    for row in rows:
        sums.append(k(MmaSync, row, rows[1], sums[-1], m=16, n=16, k=16, accum=dtype(accum)))
    sums.append(k(MmaSync, rows[2], rows[1], first, m=16, n=16, k=16, accum=dtype(accum)))
    every = sums[1:] if kept == "every sum" else [sums[3]] * 3 + [sums[4]]
    for i, fragment in enumerate(every):
        k.all(FragmentStore, fragment, k[1], b, k.constant(i), zero, zero)
    function = k.function
    data = [k.array("fp16", (np.arange(512).reshape(2, 256) % size - 3) / 8) for size in (7, 11)]
    repeated(lambda x: interpreter.run_kernel(function, (x, None), k.target), *data)
    assert repeated.plans == 6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", ["tile", "target"])
def test_the_corpus_has_the_same_bits_by_plans(repeated, level):
    target = target_of(DEFAULT)
    for program in PROGRAMS:
        inputs = {name: Array.from_bits(dtype(x.dtype), x.shape, x.data) for name, x in program.inputs.items()}
        try:
            lowered = lower(specialized(compile_source(program.source).module, "f", inputs), level, target)
        except UnsupportedConstruct:
            continue
        repeated(lambda data, lowered=lowered: run_lowered(level, lowered, "f", data, target), inputs)
    assert repeated.plans > 100
