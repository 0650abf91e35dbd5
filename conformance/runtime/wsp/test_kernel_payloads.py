"""The payloads of kernels, instruction by instruction, in each dtype (PTO-WSP v10, 7.2; AMB-WSP-62)."""

from __future__ import annotations

import numpy as np
import pytest

from tessera_conformance.chapters.runtime.wsp.kit.programs import (
    instruction,
    kernel,
    process,
    program,
    run,
    schedule,
    task,
)
from tessera_conformance.chapters.runtime.wsp.kit.runs import statistics
from tessera_conformance.marks import clause, feature

pytestmark = feature("wsp-kernels", "wsp-packages", "wsp-statistics")

DTYPES = {
    **{f"i{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    "fp32": np.dtype("<f4"),
    "fp64": np.dtype("<f8"),
    "bool": np.dtype("?"),
}
NUMBERS = [name for name in DTYPES if name != "bool"]
EVERY_NUMBER = pytest.mark.parametrize("dtype", NUMBERS)
ARITHMETIC = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def operands(dtype):
    """Two rows that overflow, differ in sign and, in floats, have zeros of both signs, an infinity and NaN."""
    type_ = DTYPES[dtype]
    if type_.kind == "b":
        return np.array([0, 0, 1, 1], "?"), np.array([0, 1, 0, 1], "?")
    if type_.kind == "f":
        large, nan = np.finfo(type_).max, np.nan
        a = [1.1, -0.0, 0.0, nan, large, -2.5, np.inf, 3.0]
        b = [-2.3, 0.0, -0.0, 1.0, large, 7.25, 1.0, nan]
    else:
        least, largest = np.iinfo(type_).min, np.iinfo(type_).max
        a, b = [least, 3, largest, 5, largest - 1], [1, largest, 1, 100, largest]
        if least < 0:
            a, b = [*a, -7, 2, -1], [*b, 3, -9, least]
    return np.array(a, type_), np.array(b, type_)


def tensor_of(name, row):
    """The declaration of a tensor with these elements."""
    dtype = next(key for key, type_ in DTYPES.items() if type_ == row.dtype)
    return {"name": name, "dtype": dtype, "count": len(row), "initial": row.tobytes().hex()}


def quiet(row):
    """The row with every NaN made the quiet one."""
    return np.where(np.isnan(row), row.dtype.type(np.nan), row) if row.dtype.kind == "f" else row


def extreme(a, b, first_is_less):
    """The lesser or the greater of each pair: NaN goes on, and -0 is below +0."""
    if a.dtype.kind != "f":
        return np.where((a < b) == first_is_less, a, b)
    below = (a < b) | ((a == b) & np.signbit(a))
    return quiet(
        np.where(np.isnan(a + b) & (np.isnan(a) | np.isnan(b)), np.nan, np.where(below == first_is_less, a, b))
    )


def computed(impl, check, rows, instructions, scalars=()):
    """Run a kernel of these instructions over tensors, and return their bytes by name."""
    parameters = dict.fromkeys(rows, "tensor") | {f"s{place}": "scalar" for place in range(len(scalars))}
    one = program(
        process("p", run("k", *rows, *scalars)),
        kernels=[kernel("k", parameters, instructions)],
        tensors=[tensor_of(name, row) for name, row in rows.items()],
    )
    return statistics(impl, check, one)["tensors"]


@clause("WSP-07.2-16")
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_instruction_of_two_operands(impl, check, dtype):
    """Integers wrap and are compared with their signs, floats are IEEE; of bool there are least and greatest alone."""
    a, b = operands(dtype)
    names = ("min", "max") if dtype == "bool" else ("add", "sub", "mul", "min", "max")
    rows = {"a": a, "b": b, **{name: np.zeros_like(a) for name in names}}
    actual = computed(impl, check, rows, [instruction(name, name, "a", "b") for name in names])
    for name in names:
        with np.errstate(all="ignore"):
            expected = quiet(ARITHMETIC[name](a, b)) if name in ARITHMETIC else extreme(a, b, name == "min")
        check.equal(actual[name], expected.astype(a.dtype).tobytes().hex(), f"{name} of {dtype}")


@clause("WSP-07.2-16")
@EVERY_NUMBER
def test_a_sum_adds_in_the_order_of_the_elements(impl, check, dtype):
    """More than a hundred elements, whose sum wraps, or rounds otherwise in another order; a 7 is overwritten."""
    type_ = DTYPES[dtype]
    step = np.arange(1, 131)
    row = (1 / step if type_.kind == "f" else step * (np.iinfo(type_).max // 100)).astype(type_)
    total = row[:1].copy()
    with np.errstate(all="ignore"):
        for element in row[1:]:
            total += element
    if type_.kind == "f":
        assert total[0] != np.sum(row), "pairs give the same number"
    actual = computed(impl, check, {"a": row, "y": np.full(1, 7, type_)}, [instruction("sum", "y", "a")])
    check.equal(actual["y"], total.tobytes().hex(), f"the sum of {dtype}")


@clause("WSP-07.2-16")
@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_and_constants_are_numbers_of_the_dtype(impl, check, dtype):
    """Of 64 bits without a sign they wrap, round to the nearest number, or are true; iota counts from one."""
    type_ = DTYPES[dtype]
    values = [0, 1, 300, (1 << 24) + 1, 1 << 32, (1 << 53) + 1, (1 << 63) + 5, (1 << 63) + (1 << 39) + 1, (1 << 64) - 1]
    names = [f"y{place}" for place in range(len(values))]
    fills = [instruction("fill", name, f"s{place}") for place, name in enumerate(names)]
    rows = {name: np.zeros(3, type_) for name in (*names, "c")} | {"w": np.zeros(1 if dtype == "bool" else 300, type_)}
    more = [] if dtype == "bool" else [instruction("iota", "w", "s2")]
    actual = computed(impl, check, rows, [*fills, instruction("fill", "c", values[-2]), *more], values)
    for name, value in (*zip(names, values, strict=True), ("c", values[-2])):
        number = np.array([value], "<u8")
        expected = np.repeat(number != 0 if dtype == "bool" else number.astype(type_), 3)
        check.equal(actual[name], expected.astype(type_).tobytes().hex(), f"{value} in {dtype}")
    if more:
        expected = np.arange(300, dtype="<u8").astype(type_) + np.array(300, "<u8").astype(type_)
        check.equal(actual["w"], expected.tobytes().hex(), "three hundred numbers from three hundred on")


@clause("WSP-01.2-05", "WSP-02.4-02")
@pytest.mark.parametrize("order", [(2, 9, 4), (9, 2, 4), (4, 2, 9)])
@pytest.mark.parametrize("statement", [run, task], ids=["run", "task"])
def test_the_cycles_of_a_kernel_are_those_of_its_largest_tensor(impl, check, order, statement):
    """The largest tensor may be at any place among its tensors (AMB-WSP-61)."""
    rows = {name: np.zeros(count, "<i4") for name, count in zip("abc", order, strict=True)}
    parameters = dict.fromkeys(rows, "tensor")
    filling = [instruction("fill", name, 1) for name in rows]
    one = program(
        process("p", statement("k", *rows)),
        kernels=[kernel("k", parameters, filling, cycles=5, per_element=3)],
        tensors=[tensor_of(name, row) for name, row in rows.items()],
        schedule=schedule("round_robin", 1, 1),
    )
    check.equal(statistics(impl, check, one)["total_cycles"], 5 + 3 * 9, "the makespan")
