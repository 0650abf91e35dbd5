"""Matrix instructions as they execute: lanes laid out by hand, results folded by plain Python."""

from __future__ import annotations

from typing import Any

import pytest

from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import Vector
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.operations.llvm import Mul
from tessera_reference.target_ir.operations.vendors import MFMA, MmaSync


def small(rows: int, columns: int, salt: int) -> list[list[int]]:
    """Small integers, which every dtype holds and every sum here holds exactly."""
    return [[(5 * row + 3 * column * column + salt) % 9 - 4 for column in range(columns)] for row in range(rows)]


def fold(a: list[list[int]], b: list[list[int]], row: int, column: int) -> int:
    """One element of the product."""
    return sum(a[row][k] * b[k][column] for k in range(len(b)))


def product_kernel(kernels: Any, target: str, held: str, counts: tuple[int, int, int], product: Any) -> Any:
    """Each lane loads its share of A, B and C, multiplies, and stores its share of the result."""
    types = [Vector(count, DTYPES[held]) for count in counts[:2]]
    types.append(Vector(counts[2], DTYPES[held].accumulator))

    def body(build: Any, a: Any, b: Any, c: Any, d: Any) -> None:
        lane = build.thread()
        shares = [
            build.load(pointer, build(Mul, lane, build.constant(type_.extent)), type_)
            for pointer, type_ in zip((a, b, c), types, strict=True)
        ]
        build.store(product(build, *shares), d, build(Mul, lane, build.constant(counts[2])))

    warp = 64 if target.startswith("gfx") else 32
    parameters = dict.fromkeys("abcd", kernels.buffer)
    return kernels.kernel(parameters, body, block=(warp, 1, 1), target=target)


def multiplied(kernels: Any, made: Any, held: str, shares: list[list[list[Any]]]) -> list[list[Any]]:
    """The share of the result of each lane."""
    kinds = (held, held, DTYPES[held].accumulator.name)
    a, b, c = (kernels.array(kind, share).values for kind, share in zip(kinds, shares, strict=True))
    arrays = [kernels.array(kind, x.reshape(-1)) for kind, x in zip(kinds, (a, b, c), strict=True)]
    result = kernels.run(made, *arrays, arrays[2])[3].values
    lanes = len(shares[2])
    return result.reshape(lanes, -1).tolist()


@pytest.mark.parametrize("held", ["bf16", "fp16"])
def test_m16n8k16_multiplies_what_the_lanes_hold(kernels: Any, held: str) -> None:
    """Shares by the PTX ISA's formulas of m16n8k16; small integers, so that only the places matter."""
    a, b, c = small(16, 16, 1), small(16, 8, 2), small(16, 8, 3)
    lanes = [(lane >> 2, lane % 4) for lane in range(32)]
    share_a = [[a[g + 8 * (i // 2 % 2)][t * 2 + (i & 1) + 8 * (i // 4)] for i in range(8)] for g, t in lanes]
    share_b = [[b[t * 2 + (i & 1) + 8 * (i // 2)][g] for i in range(4)] for g, t in lanes]
    places = [[(g + 8 * (i // 2), t * 2 + (i & 1)) for i in range(4)] for g, t in lanes]
    share_c = [[c[row][column] for row, column in each] for each in places]
    made = product_kernel(
        kernels, "sm_90", held, (8, 4, 4), lambda build, *shares: build(MmaSync, *shares, m=16, n=8, k=16)
    )
    expected = [[fold(a, b, row, column) + c[row][column] for row, column in each] for each in places]
    assert multiplied(kernels, made, held, [share_a, share_b, share_c]) == expected


def test_mfma_16x16x16_multiplies_what_the_lanes_hold(kernels: Any) -> None:
    """Shares by the equations of the calculator."""
    a, b, c = small(16, 16, 4), small(16, 16, 5), small(16, 16, 6)
    lanes = [(lane % 16, lane // 16) for lane in range(64)]
    share_a = [[a[line][4 * block + i] for i in range(4)] for line, block in lanes]
    share_b = [[b[4 * block + i][line] for i in range(4)] for line, block in lanes]
    share_c = [[c[4 * block + i][line] for i in range(4)] for line, block in lanes]
    made = product_kernel(
        kernels, "gfx90a", "bf16", (4, 4, 4), lambda build, *shares: build(MFMA["mfma.f32.16x16x16bf16.1k"], *shares)
    )
    expected = [[fold(a, b, 4 * block + i, line) + c[4 * block + i][line] for i in range(4)] for line, block in lanes]
    assert multiplied(kernels, made, "bf16", [share_a, share_b, share_c]) == expected


def test_the_fold_rounds_every_step(kernels: Any) -> None:
    """2**24 + 1 + 1 - 2**24 is 0 when every sum is rounded to fp32 in ascending k; the exact sum is 2."""
    row = [4096.0, 1.0, 1.0, -4096.0]
    column = [4096.0, 1.0, 1.0, 4096.0]
    lanes = [(lane % 16, lane // 16) for lane in range(64)]
    share_a = [[row[i] if block == 0 else 0.0 for i in range(4)] for _, block in lanes]
    share_b = [[column[i] if block == 0 else 0.0 for i in range(4)] for _, block in lanes]
    made = product_kernel(
        kernels, "gfx942", "fp16", (4, 4, 4), lambda build, *shares: build(MFMA["mfma.f32.16x16x16f16"], *shares)
    )
    found = multiplied(kernels, made, "fp16", [share_a, share_b, [[0.0] * 4] * 64])
    assert found == [[0.0] * 4] * 64


def test_integers_wrap(kernels: Any) -> None:
    """The largest int32 and one more is the least."""
    made = product_kernel(
        kernels, "sm_80", "int8", (4, 4, 2), lambda build, *shares: build(MmaSync, *shares, m=8, n=8, k=16)
    )
    ones = [[1 if lane % 4 == 0 and i == 0 else 0 for i in range(4)] for lane in range(32)]
    found = multiplied(kernels, made, "int8", [ones, ones, [[2**31 - 1] * 2] * 32])
    assert found == [[-(2**31)] * 2] * 32


@pytest.mark.parametrize(
    ("shape", "held", "counts"),
    [((16, 16, 16), "bf16", (8, 8, 8)), ((16, 8, 16), "fp32", (8, 4, 4)), ((16, 8, 16), "bf16", (4, 4, 4))],
)
def test_what_is_no_instruction_is_refused(
    shape: tuple[int, int, int], held: str, counts: tuple[int, int, int]
) -> None:
    """Another shape, another dtype, and a share of another size."""
    a, b = (Vector(count, DTYPES[held]) for count in counts[:2])
    m, n, k = shape
    with pytest.raises(Refusal):
        MmaSync(a=a, b=b, c=Vector(counts[2], DTYPES["fp32"]), m=m, n=n, k=k).results()
