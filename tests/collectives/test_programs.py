"""Attributes of collectives as text, and the report on ranks that do not meet."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import isfinite

import numpy as np
import pytest

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives import links, schedules
from tessera_reference.collectives.programs import run_program
from tessera_reference.graph.futures import ALGORITHMS, PATHS
from tessera_reference.ir.operation import Module
from tessera_reference.ir.targets import DEFAULT, target_of
from tessera_reference.ir.text import print_module
from tessera_reference.levels.texts import read_at
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

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
    return [result[0].values.tolist() for result in results]


def test_exported_text_has_plain_numbers_and_reads_the_same() -> None:
    """Other tools know no units of bytes."""
    line = "%f = tessera.collective.broadcast %x {subgroup=!tessera.shard<groups=[[1, 0], [2, 3]]>, chunk=4KiB}"
    actual = module(line, '"tessera.graph.return"(%x)', takes=f"%x: {T}")
    text = print_module(actual, export=True)
    assert "chunk = 4096" in text
    assert "!tessera.future<tensor<4xfp32>>" in text
    (again,) = read_at("graph", text, target_of(DEFAULT))
    assert print_module(again) == print_module(actual)


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


@cache
def numbers(name: str) -> frozenset[Fraction | float]:
    """Every number and infinity of a dtype of at most 16 bits."""
    found = dtype(name)
    codes = np.arange(1 << found.bits, dtype=f"uint{found.bits}")
    values = Array.from_bits(found, (len(codes),), codes.tobytes()).values.astype(np.float64).tolist()
    return frozenset(Fraction(value) if isfinite(value) else value for value in values if value == value)


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
    actual = message_module(SEND, "%s = tessera.await %f", RECV, "%y = tessera.await %g", RETURN)
    with pytest.raises(Failure) as failure:
        run_program(actual, actual.functions["f"], message_inputs())
    assert failure.value.status is Status.TESS_ERR_COLLECTIVE_MISMATCH
    text = str(failure.value)
    assert (
        "rank 0 waits with a send of tag 5 for rank 1, which waits with a send of tag 5 for rank 2, "
        "which waits with a send of tag 5 for rank 0"
    ) in text
    assert "ranks 0 to 2: send(" in text
    assert "issued before a rank waits for the other" in text
