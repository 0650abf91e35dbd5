"""Blocks in lockstep against one block after another: the same bits, and the same faults."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS
from tessera_reference.ir.diagnostics import Rejection, UnsupportedConstruct
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.language import compile_source
from tessera_reference.levels.execution import lower, run_lowered, specialized
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
from tessera_reference.tile import interpreter
from tessera_reference.tile.fragments import FragmentStore, FragmentZero, LoadMatrix, MmaSync
from tessera_reference.tile.operations import Barrier, CopyAsync, CopyCommit, CopyWait, LaneId, ShuffleSync

LANES, BLOCKS = 64, 5


class Both:
    """Runs a function both ways; `launches` says of each launch if its blocks ran in lockstep to the end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch
        self.launches: list[bool] = []
        attempt = interpreter._in_lockstep

        def noted(*arguments):
            found = attempt(*arguments)
            self.launches.append(found is not None)
            return found

        monkeypatch.setattr(interpreter, "_in_lockstep", noted)
        monkeypatch.setattr(interpreter, "WORTHWHILE", 0)
        monkeypatch.setattr(interpreter, "MOST_LANES", 3 * LANES)

    def __call__(self, run):
        self.patch.setattr(interpreter, "LOCKSTEP", False)
        plain = outcome(run)
        self.patch.setattr(interpreter, "LOCKSTEP", True)
        self.launches.clear()
        assert outcome(run) == plain
        return plain


def outcome(run):
    """The bits of the results, or the words of the refusal."""
    try:
        return [result.to_bits() for result in run()]
    except Rejection as refusal:
        return [str(diagnostic) for diagnostic in refusal.diagnostics]


@pytest.fixture
def both(monkeypatch):
    """A runner of both ways."""
    return Both(monkeypatch)


class Rows:
    """A kernel whose block b works on row b of [BLOCKS, LANES]; `x` is the element of the thread there."""

    def __init__(self, kernel, held="fp32"):
        self.k = kernel(kernel.buffer(held, BLOCKS, LANES), kernel.buffer(held, BLOCKS, LANES),
                        grid=(BLOCKS, 1, 1), block=(LANES, 1, 1))  # fmt: skip
        self.b, self.t = self.k.block_id(), self.k.thread()
        self.x = self.k.load(self.k[0], self.b, self.t)
        self.held = held

    def finish(self, both, value=None):
        """Store a value, and run both ways on 0, 1, 2 and so on."""
        if value is not None:
            self.k.store(value, self.k[1], self.b, self.t)
        data = self.k.array(self.held, np.arange(BLOCKS * LANES).reshape(BLOCKS, LANES) % 200)
        return both(lambda: self.k.run(data, None))


def doubled(r):
    return r.k.add(r.x, r.x)


def through_shared(r):
    k = r.k
    shared = k.allocate("fp32", LANES)
    k.store(r.x, shared, r.t)
    k.all(Barrier)
    return k.load(shared, k.minus(k.constant(LANES - 1), r.t))


def copied(r):
    k = r.k
    shared = k.allocate("fp32", LANES)
    k.all(CopyAsync, k[0], shared, r.b, r.t, r.t, bytes=4)
    k.all(CopyCommit)
    k.all(CopyWait, pending=0)
    k.all(Barrier)
    return k.load(shared, k.minus(k.constant(LANES - 1), r.t))


def divided_and_counted_down(r):
    """Indices 6, 4, 2 and 0, for lanes below 40; what depends on an index and the lane alone is computed once."""
    k = r.k
    shared = k.allocate("fp32", 7, LANES)

    def stage(i):
        k.store(r.x, shared, i, k.over(k.add(r.t, k.times(i, 2)), 2))
        return ()

    k.loop(0, 7, 1, lambda i: k.store(r.x, shared, i, r.t) or ())
    k.all(Barrier)
    k.branch(k.less(r.t, 1), lambda: k.loop(6, -1, -2, stage) or ())
    k.all(Barrier)
    return k.load(shared, k.rest(r.t, 7), r.t)


def summed_under_a_mask(r):
    k = r.k
    below = k(ShuffleSync, r.x, delta=3)
    (chosen,) = k.branch(k.less(r.t, 40), lambda: k.add(r.x, below), lambda: below)
    (total,) = k.loop(0, 3, 1, lambda i, carried: k.add(carried, chosen), r.x)
    return total


def of_both_zeros(r):
    """The constants 0.0 and -0.0 are equal numbers with different bits."""
    zeros = [r.k.constant(zero, "fp32") for zero in (0.0, -0.0)]
    (chosen,) = r.k.branch(r.k.less(r.t, 40), lambda: zeros[0], lambda: zeros[1])
    return chosen


def chosen_by_block(r):
    (found,) = r.k.branch(r.k.less(r.b, 3), lambda: r.k.add(r.x, r.x), lambda: r.x)
    return found


def chosen_by_data(r):
    (found,) = r.k.branch(r.k.less(r.x, r.k.constant(70.0, "fp32")), lambda: r.k.add(r.x, r.x), lambda: r.x)
    return found


def shared_by_block(r):
    k = r.k
    shared = k.allocate("fp32", BLOCKS, LANES)
    k.store(r.x, shared, r.b, r.t)
    return k.load(shared, r.b, r.t)


def turns_by_block(r):
    (total,) = r.k.loop(0, r.b, 1, lambda i, carried: r.k.add(carried, r.x), r.x)
    return total


def in_place(r):
    r.k.store(r.x, r.k[0], r.b, r.t)
    return r.x


ALIKE = [doubled, through_shared, copied, divided_and_counted_down, summed_under_a_mask, of_both_zeros]


@pytest.mark.parametrize("body", ALIKE)
def test_blocks_that_do_the_same_run_in_lockstep(kernel, both, body):
    rows = Rows(kernel)
    rows.finish(both, body(rows))
    assert both.launches == [True]


@pytest.mark.parametrize("body", [chosen_by_block, chosen_by_data, shared_by_block, turns_by_block, in_place])
def test_blocks_that_differ_run_one_after_another(kernel, both, body):
    rows = Rows(kernel)
    rows.finish(both, body(rows))
    assert both.launches == [False]


def beyond_the_end(r):
    return r.k.load(r.k[0], r.k.add(r.b, 1), r.t)


def uninitialised(r):
    return r.k.load(r.k.allocate("fp32", LANES), r.t)


def without_a_barrier(r):
    shared = r.k.allocate("fp32", LANES)
    r.k.store(r.x, shared, r.t)
    return r.k.load(shared, r.k.minus(r.k.constant(LANES - 1), r.t))


def before_the_wait(r):
    shared = r.k.allocate("fp32", LANES)
    r.k.all(CopyAsync, r.k[0], shared, r.b, r.t, r.t, bytes=4)
    return r.k.load(shared, r.t)


def partial_barrier(r):
    r.k.branch(r.k.less(r.t, 32), lambda: r.k.all(Barrier))
    return r.x


def partial_warp(r):
    r.k.branch(r.k.less(r.t, 40), lambda: (r.k(ShuffleSync, r.x, delta=1), ())[1])
    return r.x


def misaligned(r):
    shared = r.k.allocate("fp32", LANES)
    r.k.all(CopyAsync, r.k[0], shared, r.b, r.k.rest(r.t, 8), r.t, bytes=8)
    return r.x


def written_by_all(r):
    r.k.store(r.x, r.k[1], r.k.constant(0), r.t)


def written_by_neighbours(r):
    r.k.store(r.x, r.k[1], r.k.over(r.b, 2), r.t)


def read_where_another_writes(r):
    r.k.store(r.x, r.k[1], r.b, r.t)
    r.k.load(r.k[1], r.k.over(r.b, 2), r.t)


def not_written(r):
    r.k.branch(r.k.less(r.t, 5), lambda: r.k.store(r.x, r.k[1], r.b, r.t) or ())


FAULTS = [
    beyond_the_end, uninitialised, without_a_barrier, before_the_wait, partial_barrier, partial_warp, misaligned,
    written_by_all, written_by_neighbours, read_where_another_writes, not_written,
]  # fmt: skip


@pytest.mark.parametrize("body", FAULTS)
def test_a_fault_is_reported_as_of_one_block_after_another(kernel, both, body):
    rows = Rows(kernel)
    actual = rows.finish(both, body(rows))
    assert isinstance(actual[0], str) and both.launches == [False]


def test_a_fault_of_the_last_block_alone_is_found(kernel, both):
    rows = Rows(kernel, "int32")
    actual = rows.finish(both, rows.k.over(rows.x, rows.k.minus(rows.b, BLOCKS - 1)))
    assert "division by zero" in actual[0]


def turns(r):
    (total,) = r.k.loop(0, 7, 1, lambda i, carried: r.k.add(carried, r.x), r.x)
    return total


def turns_that_carry_nothing(r):
    """Lockstep writes such turns one after another."""
    shared = r.k.allocate("fp32", LANES)
    r.k.loop(0, 7, 1, lambda i: r.k.store(r.x, shared, r.t) or ())
    return r.k.load(shared, r.t)


@pytest.mark.parametrize("turns", [turns, turns_that_carry_nothing])
def test_the_limit_on_instructions_is_that_of_the_whole_launch(kernel, both, turns):
    rows = Rows(kernel)
    rows.k.store(turns(rows), rows.k[1], rows.b, rows.t)
    data = rows.k.array("fp32", np.ones((BLOCKS, LANES)))
    spent = BLOCKS * (2 + len(rows.k.build.instructions) + 7 * 2 - 1)
    assert isinstance(both(lambda: rows.k.run(data, None, steps=spent))[0], bytes)
    assert both.launches == [True]
    assert "at most" in both(lambda: rows.k.run(data, None, steps=spent - 1))[0]


def test_fragments_run_in_lockstep(kernel, both):
    held = kernel.fragment("bf16", 16, 16, 16)
    k = kernel(kernel.buffer("bf16", BLOCKS, 256), kernel.buffer("fp32", BLOCKS, 16, 16), grid=(BLOCKS, 1, 1))
    b, lane = k.block_id(), k(LaneId)
    tile, total = k.allocate("bf16", 16, 16), k.allocate("fp32", 16, 16)

    def copy(i):
        at = k.add(k.times(i, 32), lane)
        k.store(k.load(k[0], b, at), tile, k.over(at, 16), k.rest(at, 16))
        return ()

    k.loop(0, 8, 1, copy)
    k.all(Barrier)
    zero = k.constant(0)
    matrix = k(LoadMatrix, tile, zero, zero, returns=held)
    product = k(MmaSync, matrix, k(LoadMatrix, tile, zero, zero, returns=held), k(FragmentZero, returns=held),
                m=16, n=16, k=16)  # fmt: skip
    k.all(FragmentStore, product, total, zero, zero)
    k.all(Barrier)

    def give(i):
        at = k.add(k.times(i, 32), lane)
        k.store(k.load(total, k.over(at, 16), k.rest(at, 16)), k[1], b, k.over(at, 16), k.rest(at, 16))
        return ()

    k.loop(0, 8, 1, give)
    data = k.array("bf16", np.arange(BLOCKS * 256).reshape(BLOCKS, 256) % 7)
    both(lambda: k.run(data, None))
    assert both.launches == [True]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", ["tile", "target"])
def test_the_corpus_has_the_same_bits_in_lockstep(both, level):
    in_lockstep, target = 0, target_of(DEFAULT)
    for program in PROGRAMS:
        inputs = {name: Array.from_bits(dtype(x.dtype), x.shape, x.data) for name, x in program.inputs.items()}
        try:
            lowered = lower(specialized(compile_source(program.source).module, "f", inputs), level, target)
        except UnsupportedConstruct:
            continue
        both(lambda lowered=lowered, inputs=inputs: run_lowered(level, lowered, "f", inputs, target))
        in_lockstep += sum(both.launches)
    assert in_lockstep > 20


@pytest.mark.parametrize(("shift", "lane", "place"), [(1, 3, "%p0[1, 4]"), (-1, 0, "%p0[1, -1]")])
def test_an_index_out_of_bounds_names_the_thread_and_the_element(kernel, shift, lane, place):
    """Four threads of row 1: the last one goes too far right, or the first too far left."""
    k = kernel(kernel.buffer("fp32", 2, 4), kernel.buffer("fp32", 4), grid=(3, 1, 1), block=(4, 1, 1))
    k.load(k[0], k.constant(1), k.add(k.thread(), shift))
    goes = f"load: thread ({lane}, 0, 0) of block (0, 0, 0) goes to {place}, out of bounds: the shape is [2, 4]"
    with pytest.raises(Rejection) as caught:
        k.run(kernel.array("fp32", [[0.0] * 4] * 2), None)
    assert [found.message for found in caught.value.diagnostics] == [goes]
