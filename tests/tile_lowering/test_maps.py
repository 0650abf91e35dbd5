"""Elementwise chains and operations that move elements become kernels with the bits of Graph IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]


def whole(name: str, values: Any) -> Array:
    return Array(DTYPES[name], np.asarray(values, DTYPES[name].carrier))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_chains_of_elementwise_operations(programs: Any, dtype: str, target: str) -> None:
    x, y = (dtype, 9, 17), (dtype, 17)
    lowered = programs.same("op.gelu(op.relu(x) * y + op.exp(x)) / y - op.tanh(y)", target, x=x, y=y)
    assert all(kernel.attributes["smem_bytes"] == 0 for kernel in lowered.kernels)
    programs.same(f"op.select(x < y, -x, op.cast(1.0, dtype={dtype}))", target, x=x, y=y)
    programs.same("op.abs(op.clamp(x, y, y))", target, x=x, y=y)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_wrap(programs: Any, dtype: str) -> None:
    x, y = programs.codes(dtype, (300,), 1), programs.codes(dtype, (300,), 2)
    programs.same("op.cast(x * y - y, dtype=int8)", x=x, y=y)


def test_casts_take_their_overflow_along(programs: Any) -> None:
    x = programs.codes("fp32", (400,), 3)
    programs.same('op.cast(x, dtype=fp8_e4m3, overflow="nonfinite")', x=x)
    programs.same("op.cast(x, dtype=fp8_e4m3)", x=x)
    programs.same("op.cast(x, dtype=int16)", x=x)
    programs.same("op.cast(x, dtype=complex64) * op.cast(x, dtype=complex64)", x=x)


MOVEMENTS = [
    ("op.transpose(x)", (5, 7)),
    ("op.transpose(x, perm=[1, 2, 0])", (3, 4, 5)),
    ("op.reshape(x, shape=[7, 5])", (5, 7)),
    ("op.reshape(x, shape=[-1])", (5, 7)),
    ("op.reshape(x, shape=[5, 1, 7, 1])", (5, 7)),
    ("op.broadcast(x, shape=[3, 5, 7])", (5, 1)),
    ("op.pad(x, low=[1, 0], high=[2, 3], value=1.5)", (3, 2)),
    ("op.pad(x, low=[1, 1], high=[2, 0])", (0, 2)),
    ("op.pad(x, low=[0, 0], high=[0, 0])", (3, 2)),
    ("op.concat(x, x, axis=0)", (3, 2)),
    ("op.concat(x, op.slice(x, starts=[0, 1], stops=[4, 1]), x, axis=1)", (4, 3)),
    ("x[1, 2:5]", (3, 7)),
    ("x[:, 5:0:-2]", (3, 7)),
    ("x[1]", (3, 7)),
    ("x[2:2]", (3, 7)),
    ("op.slice(x, starts=[0, 6], stops=[3, 0], steps=[2, -3])", (3, 7)),
    ("x[1, 2:5] = x[0, 0:3]; return x;", (3, 7)),
    ("x[:, 5:0:-2] = x[:, 0:3]; return x;", (3, 7)),
    ("x[2:2] = x[0:0]; return x;", (3, 7)),
    ("x[1] = 2.0; return x;", (3, 7)),
    ('op.layout_cast(x, to="col_major")', (3, 7)),
]


@pytest.mark.parametrize(("body", "shape"), MOVEMENTS)
def test_movements(programs: Any, body: str, shape: tuple[int, ...]) -> None:
    programs.same(body, x=("fp32", *shape))
    programs.same(body, "gfx942", x=("fp32", *shape))


@pytest.mark.parametrize("dtype", ["bool", "int64", "complex128"])
def test_movements_of_other_dtypes(programs: Any, dtype: str) -> None:
    programs.same("op.pad(op.transpose(x), low=[1, 0], high=[0, 2])", x=(dtype, 3, 4))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("axis", "indices"), [(0, [2, 0, 2, 1]), (1, [[1, 0], [3, 3]]), (2, 1), (-1, [])])
def test_gathering(programs: Any, index: str, axis: int, indices: Any) -> None:
    programs.same(f"op.gather(x, i, axis={axis})", x=("fp32", 3, 4, 2), i=whole(index, indices))


def test_positions_and_indices_of_the_program(programs: Any) -> None:
    programs.same("let p: tensor<3x40xint32> = op.iota(shape=[3, 40], axis=1); return p;")
    programs.same("let p: tensor<300xbf16> = op.iota(shape=[300], dtype=bf16); return p + op.cast(0.5, dtype=bf16);")
    programs.same("x[i, 1:3]", x=("fp32", 3, 7), i=whole("int32", 2))
    programs.same("x[i] = y; return x;", x=("fp32", 3, 7), y=("fp32", 7), i=whole("int32", 1))
    programs.same("x[1:3, i] = y; return x;", x=("fp32", 3, 7), y=("fp32", 2), i=whole("int32", 6))


@pytest.mark.parametrize(
    ("body", "index"),
    [
        ("op.gather(x, op.broadcast(i, shape=[4]), axis=0)", whole("int32", 3)),
        ("op.gather(x, op.broadcast(i, shape=[4]), axis=0)", whole("int32", -1)),
        ("op.gather(x, op.broadcast(i, shape=[4]), axis=0)", whole("int64", 1 << 32)),
        ("x[i, 1:3]", whole("int32", 3)),
        ("x[i] = y; return x;", whole("int32", 3)),
    ],
)
def test_an_index_outside_is_an_error_of_the_running_kernel(programs: Any, body: str, index: Array) -> None:
    signature = f"x: tensor<3x7xfp32>, y: tensor<7xfp32>, i: {index.dtype}"
    lowered = programs.lower(body, signature)
    inputs = {"x": programs.numbers("fp32", (3, 7)), "y": programs.numbers("fp32", (7,)), "i": index}
    for module in (lowered.graph, lowered.tile):
        with pytest.raises(Rejection) as caught:
            execute(module, "f", inputs)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.phase == "execute"
        assert "out of" in diagnostic.message


def test_a_divisor_of_zero_is_one_in_the_kernel_too_and_padding_is_none(programs: Any) -> None:
    """Lanes beyond the tensor divide nothing: 0 by 0 there would be an error that the program does not have."""
    lowered = programs.same("x / y", x=whole("int32", range(40)), y=whole("int32", range(1, 41)))
    with pytest.raises(Rejection):
        execute(lowered.tile, "f", {"x": whole("int32", range(40)), "y": whole("int32", range(40))})


@pytest.mark.parametrize("scalar", ["fp32", "fp64", "int32", "int64"])
def test_scalars_of_32_and_64_bits_are_parameters(programs: Any, scalar: str) -> None:
    lowered = programs.same("op.broadcast(c, shape=[3, 4])", c=(scalar,))
    assert [str(each.type) for each in lowered.kernel.parameters] == [f"memref<3x4x{scalar}>[addrspace=global]", scalar]


@pytest.mark.parametrize("scalar", ["bf16", "tf32", "fp8_e5m2", "int8", "bool", "complex64"])
def test_other_scalars_travel_as_buffers_of_one_element(programs: Any, scalar: str) -> None:
    lowered = programs.same("op.broadcast(c, shape=[3, 4])", c=(scalar,))
    assert str(lowered.kernel.parameters[0].type) == f"memref<1x{scalar}>[addrspace=global]"


def test_buffers_come_before_scalars(programs: Any) -> None:
    """Inputs, outputs, scalars (LANG-16-02), whatever the order of use."""
    lowered = programs.same(
        "let z: tensor<3x4xfp32> = c * x + y; return z, z * c;", c=("fp32",), x=("fp32", 3, 4), y=("fp32", 4)
    )
    kinds = [str(parameter.type) for parameter in lowered.kernel.parameters]
    memref = "memref<{}xfp32>[addrspace=global]".format
    assert sorted(kinds[:2]) == [memref("3x4"), memref("4")]
    assert kinds[2:] == [memref("3x4"), memref("3x4"), "fp32"]


@pytest.mark.parametrize("tile", ["m=4, n=8", "m=1, n=1", "m=64, n=64"])
def test_the_grid_follows_the_tile(programs: Any, tile: str) -> None:
    body = f"let y: tensor<2x9x17xfp32> = x + x; schedule.tile(y, {tile}, pad=[{{}}, {{}}]); return y;"
    m, n = (int(part.split("=")[1]) for part in tile.split(","))
    lowered = programs.same(body.format(-9 % m, -17 % n), x=("fp32", 2, 9, 17))
    assert lowered.kernel.attributes["grid"] == (-(-17 // n), -(-9 // m), 2)


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "int8"])
def test_what_is_prefetched_is_read_from_shared_memory(programs: Any, dtype: str, target: str) -> None:
    body = "schedule.prefetch(x); schedule.prefetch(b); return (x * b) + c;"
    given = {"x": (dtype, 2, 33, 16), "b": (dtype, 16), "c": (dtype, 2, 33, 1)}
    lowered = programs.same(body, target, **given)
    assert {each.returns.shape for each in lowered.operations("shared.alloc")} == {(1, 32, 16), (1, 1, 16)}
    assert lowered.operations("cp.async")
    loaded = [each.memory for each in lowered.operations("load")]
    assert [memory.space for memory in loaded].count("global") == 1


def test_empty_and_long_tensors(programs: Any) -> None:
    programs.same("x + x", x=("fp32", 0, 3))
    programs.same("x + x", x=("bf16", 5000))
    programs.same("x + y", x=("fp32", 2, 3, 4, 5), y=("fp32", 3, 1, 5))
