"""Futures and messages of programs: text, ranks under any schedule, and the report on ranks that do not meet."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import isfinite
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives import links, schedules
from tessera_reference.collectives.programs import find_function, run_program
from tessera_reference.graph.execution import UnknownFunction, execute_on_mesh
from tessera_reference.graph.futures import ALGORITHMS, PATHS, WIRES, loses
from tessera_reference.graph.interpreter import InputMismatch
from tessera_reference.ir.attributes import ByteCount, attribute_text
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.module import Module
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.ir.text import print_module
from tessera_reference.levels.texts import read_at
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype

T = "tensor<4xfp32>"


def module(
    *lines: str, takes: str = f"%x: {T}, %c: bool", gives: str = T, axes: str = '"dp", "tp"', shape: str = "2, 2"
) -> Module:
    """A module with the function @f."""
    types = ", ".join(part.partition(": ")[2] for part in takes.split(", %"))
    text = "\n".join(
        [
            '"builtin.module"() ({',
            f'"tessera.graph.mesh"() {{sym_name = "g", axes = [{axes}], shape = [{shape}]}} : () -> ()',
            f'"tessera.graph.func"() ({{\n^bb0({takes}):',
            *lines,
            f'}}) {{sym_name = "f", function_type = ({types}) -> ({gives})}} : () -> ()',
            '}) {sym_name = "m"} : () -> ()',
        ]
    )
    (found,) = read_at("graph", text, target_of(DEFAULT))
    return found


def row(*values: float) -> Array:
    """A vector of fp32."""
    return Array.checked(dtype("fp32"), values)


def inputs(flags: Sequence[bool]) -> list[dict[str, Array]]:
    """Return the inputs of the ranks: powers of ten."""
    return [
        {"x": row(*[10.0**rank] * 4), "c": Array(dtype("bool"), np.asarray(flag))} for rank, flag in enumerate(flags)
    ]


def run(found: Module, flags: Sequence[bool]) -> list[list[float]]:
    """The first result of each rank."""
    results = run_program(found, found.functions["f"], inputs(flags))
    return [each[0].values.tolist() for each in results]


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1"), (1023, "1023"), (1024, "1KiB"), (3 << 19, "1536KiB"), (1 << 20, "1MiB"), (5 << 30, "5GiB"), (0, "0")],
)
def test_bytes_print_with_the_largest_unit_that_measures_them(number: int, text: str) -> None:
    assert attribute_text(ByteCount(number)) == text


@given(st.integers(1, 2**62))
def test_bytes_are_read_as_they_are_printed(number: int) -> None:
    lines = [f'%f = tessera.collective.all_reduce %x {{op="sum", axis="dp", chunk={ByteCount(number)}}}']
    found = module(*lines, '"tessera.graph.return"(%x)', takes=f"%x: {T}")
    assert found.functions["f"].body.instructions[0].operation.attributes["chunk"] == number


def test_exported_text_has_plain_numbers_and_reads_the_same() -> None:
    """Other tools know no units of bytes."""
    line = "%f = tessera.collective.broadcast %x {subgroup=!tessera.shard<groups=[[1, 0], [2, 3]]>, chunk=4KiB}"
    found = module(line, '"tessera.graph.return"(%x)', takes=f"%x: {T}")
    text = print_module(found, export=True)
    assert "chunk = 4096" in text
    assert "!tessera.future<tensor<4xfp32>>" in text
    (again,) = read_at("graph", text, target_of(DEFAULT))
    assert print_module(again) == print_module(found)


def test_a_future_of_a_dimension_that_is_not_known_keeps_it() -> None:
    """Through a call, a loop and an await."""
    open_ = "tensor<?xfp32>"
    found = module(
        '%f = tessera.collective.all_reduce %x {op="sum", axis="dp"}',
        f'%r = "tessera.graph.if"(%c) ({{\n"tessera.graph.yield"(%f)\n}}, {{\n"tessera.graph.yield"(%f)\n}})'
        f" : (bool) -> !tessera.future<{open_}>",
        "%y = tessera.await %r",
        '%z = "tessera.graph.add"(%y, %x)',
        '"tessera.graph.return"(%z)',
        takes=f"%x: {open_}, %c: bool",
        gives=open_,
    )
    assert run(found, [True, False, True, True])[0] == [102.0] * 4


def test_futures_may_cross_functions_of_the_module_but_not_leave_it() -> None:
    """A program that is run takes tensors and gives tensors."""
    found = module('%f = tessera.collective.all_reduce %x {op="sum", axis="dp"}', '"tessera.graph.return"(%f)',
                   takes=f"%x: {T}", gives=f"!tessera.future<{T}>")  # fmt: skip
    with pytest.raises(InputMismatch, match="result of @f"):
        run_program(found, found.functions["f"], [{}] * 4)
    with pytest.raises(UnknownFunction, match="'g'"):
        find_function([found], "g")


CROSSED = [
    '%r = "tessera.graph.if"(%c) ({',
    '%f = tessera.collective.all_reduce %x {op="sum", axis="dp"}',
    '%g = tessera.collective.all_reduce %x {op="sum", axis="tp"}',
    "%a = tessera.await %f",
    "%b = tessera.await %g",
    '%y = "tessera.graph.subtract"(%a, %b)',
    '"tessera.graph.yield"(%y)',
    "}, {",
    '%h = tessera.collective.all_reduce %x {op="sum", axis="tp"}',
    '%i = tessera.collective.all_reduce %x {op="sum", axis="dp"}',
    "%d = tessera.await %h",
    "%e = tessera.await %i",
    '%z = "tessera.graph.subtract"(%e, %d)',
    '"tessera.graph.yield"(%z)',
    f"}}) : (bool) -> {T}",
    '"tessera.graph.return"(%r)',
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.lists(st.booleans(), min_size=4, max_size=4))
def test_no_schedule_of_the_ranks_changes_a_bit(choices: list[int], flags: list[bool]) -> None:
    """Whichever rank goes on next, what they have is the same."""
    drawn = iter(choices)

    def choice(ready: Sequence[int]) -> int:
        return ready[next(drawn, 0) % len(ready)]

    results = execute_on_mesh(CROSSED_MODULE, "f", inputs(flags), choice=choice)
    assert [each[0].values.tolist() for each in results] == [[90.0] * 4, [999.0] * 4, [-999.0] * 4, [-90.0] * 4]


CROSSED_MODULE = module(*CROSSED)


def test_ranks_that_wait_in_a_circle_are_named() -> None:
    """With the axes along which they wait, their calls and their places."""
    lines = list(CROSSED)
    lines[2], lines[3] = lines[3], lines[2]
    lines[9], lines[10] = lines[10], lines[9]
    with pytest.raises(Failure) as caught:
        run(module(*lines), [True, False, False, True])
    assert caught.value.status is Status.TESS_ERR_COLLECTIVE_MISMATCH
    text = str(caught.value)
    assert "rank 0 waits along axis dp for rank 2, which waits along axis tp for rank 3" in text
    assert "ranks 0 and 3: all_reduce(tensor<4xfp32>, axis=dp, op=sum) in <ir>:6" in text


def test_a_rank_that_never_comes_is_named() -> None:
    """Also where its group has dropped the future and ended."""
    lines = [*CROSSED[:2], '"tessera.graph.yield"(%x)', "}, {", '"tessera.graph.yield"(%x)', *CROSSED[-2:]]
    with pytest.raises(Failure, match="rank 1 waits for rank 3, which has ended"):
        run(module(*lines), [True, True, True, False])


def test_a_group_that_disagrees_once_meets_no_more() -> None:
    """The first disagreement is the one that is told."""
    lines = [
        CROSSED[0],
        '%f = tessera.collective.all_reduce %x {op="sum", axis="dp", chunk=1KiB}',
        '%g = tessera.collective.all_reduce %x {op="max", axis="dp"}',
        '"tessera.graph.yield"(%x)',
        "}, {",
        '%h = tessera.collective.all_reduce %x {op="sum", axis="dp"}',
        '%i = tessera.collective.all_reduce %x {op="min", axis="dp"}',
        '"tessera.graph.yield"(%x)',
        *CROSSED[-2:],
    ]
    with pytest.raises(Failure, match="the chunk of ranks 0 and 2 differs: 1KiB and none"):
        run(module(*lines), [True, True, False, False])


def test_a_failure_of_a_collective_comes_before_what_its_ranks_fail_at_later() -> None:
    """Parts of an extent that the ranks do not divide, of a future that nobody has awaited yet."""
    open_ = "tensor<?xfp32>"
    found = module(
        '%f = tessera.collective.reduce_scatter %x {op="sum", axis="dp"}',
        '"tessera.graph.assert"(%c) {message = "later"}',
        '"tessera.graph.return"(%x)',
        takes=f"%x: {open_}, %c: bool",
        gives=open_,
    )
    odd = [{"x": row(1, 2, 3), "c": Array(dtype("bool"), np.asarray(False))}] * 4
    for choice in (min, max):
        with pytest.raises(Rejection, match="has no 2 equal parts"):
            execute_on_mesh(found, "f", odd, choice=choice)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("data", [name for name, each in DTYPES.items() if each.kind == "float"])
def test_a_wire_loses_what_it_has_no_number_for(data: str, wire: str) -> None:
    """Judged by every number of the dtypes of 16 bits and fewer; the wider ones always lose."""
    held, sent = dtype(data).storage, dtype(WIRES[wire])
    assert loses(wire, dtype(data)) == (held.bits > 16 or not numbers(held.name) <= numbers(sent.name))


@cache
def numbers(name: str) -> frozenset[Fraction | float]:
    """Every number and infinity of a dtype of at most 16 bits."""
    found = dtype(name)
    codes = np.arange(1 << found.bits, dtype=f"uint{found.bits}")
    values = Array.from_bits(found, (len(codes),), codes.tobytes()).values.astype(np.float64).tolist()
    return frozenset(Fraction(each) if isfinite(each) else each for each in values if each == each)


def test_the_dialect_knows_the_algorithms_and_paths_of_the_schedules() -> None:
    """One list of each, though the dialect stands below them."""
    assert ("auto", *schedules.ALGORITHMS) == ALGORITHMS
    assert ("auto", *links.PATHS) == PATHS


INTS = "tensor<4xint32>"


def message_module(*lines: str, ranks: int = 3) -> Module:
    """A module with the function @f of one vector."""
    text = "\n".join(
        [
            '"builtin.module"() ({',
            f'"tessera.graph.mesh"() {{sym_name = "g", axes = ["dp"], shape = [{ranks}]}} : () -> ()',
            f'"tessera.graph.func"() ({{\n^bb0(%x: {INTS}):',
            *lines,
            f'}}) {{sym_name = "f", function_type = ({INTS}) -> ({INTS})}} : () -> ()',
            '}) {sym_name = "m"} : () -> ()',
        ]
    )
    (found,) = read_at("graph", text, target_of(DEFAULT))
    return found


def message_inputs(ranks: int = 3) -> list[dict[str, Array]]:
    return [{"x": Array(dtype("int32"), np.arange(4, dtype=np.int32) + 10 * rank)} for rank in range(ranks)]


SEND = f"%f = tessera.collective.send %x : {INTS} {{shift=1, tag=5}}"
RECV = f"%g = tessera.collective.recv %x : {INTS} {{shift=-1, tag=5}}"
RETURN = f'"tessera.graph.return"(%y) : ({INTS}) -> ()'


def test_the_circle_is_named_with_its_ranks_and_calls() -> None:
    found = message_module(SEND, "%s = tessera.await %f", RECV, "%y = tessera.await %g", RETURN)
    with pytest.raises(Failure) as failure:
        run_program(found, found.functions["f"], message_inputs())
    assert failure.value.status is Status.TESS_ERR_COLLECTIVE_MISMATCH
    text = str(failure.value)
    assert (
        "rank 0 waits with a send of tag 5 for rank 1, which waits with a send of tag 5 for rank 2, "
        "which waits with a send of tag 5 for rank 0"
    ) in text
    assert "ranks 0 to 2: send(" in text
    assert "issued before a rank waits for the other" in text


def test_the_order_in_which_ranks_go_on_changes_nothing() -> None:
    legal = message_module(SEND, RECV, "%s = tessera.await %f", "%y = tessera.await %g", RETURN, ranks=5)
    crossed = message_module(SEND, "%s = tessera.await %f", RECV, "%y = tessera.await %g", RETURN, ranks=5)
    said = set()
    for seed in range(20):
        random = Random(seed)
        results = execute_on_mesh(legal, "f", message_inputs(5), choice=random.choice)
        assert [each[0].values[0] for each in results] == [40, 0, 10, 20, 30]
        with pytest.raises(Rejection) as rejection:
            execute_on_mesh(crossed, "f", message_inputs(5), choice=random.choice)
        said.add(str(rejection.value))
    assert len(said) == 1
