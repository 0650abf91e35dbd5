"""The conversion of a tensor to the wire and back (collectives specification 2.5 and 6; AMB-COLL-26, -37, -38)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, repeat
from math import prod

import pytest

from tessera_conformance.chapters.collectives.kit.readings import lies_within, recognize_bare_fp8
from tessera_conformance.chapters.collectives.kit.wires import (
    SINGLE,
    UNIT,
    WHOLE,
    WIRES,
    half_steps,
    of_values,
    rows_of,
    telling,
)
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.exact import (
    INFINITY,
    NAN,
    NEGATIVE_INFINITY,
    NEGATIVE_ZERO,
    Value,
    finite,
    float_format,
    values_of,
)
from tessera_conformance.protocol import Rejected, Returned
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

BLOCKS = [([40], 8), ([41], 8), ([3, 5], 4), ([2, 3, 4], 5), ([10], 100), ([5], 1), ([6, 0], 4), ([0], 3)]
"""Shapes and blocks: the last block short, rows that end within a block, one block, none."""


def named(wires: Sequence[str]) -> list[object]:
    """Wires as parameters, each with the clause that names it."""
    clauses = {"bf16": "COLL-02.5-06", "fp16": "COLL-02.5-07"}
    return [pytest.param(wire, marks=clause(clauses.get(wire, "COLL-02.5-08")), id=wire) for wire in wires]


@feature("compression-probe")
@clause("COLL-08-05")
@pytest.mark.parametrize("source", ["fp32", "fp64", "fp16", "bf16", "fp8_e5m2"])
@pytest.mark.parametrize("wire", named(list(WIRES)))
def test_a_wire_dtype_is_a_cast_there_and_back(impl, check, wire, source):
    """Rounded once to nearest even, ties, subnormals, overflow, infinities, NaN and signs of zeros included."""
    target, origin = float_format(WIRES[wire]), float_format(source)
    x = of_values(source, list(telling(target)))
    observed = impl.collectives.compress(input=x, dtype=wire)
    recognize_bare_fp8(check, observed, wire)
    recognize_overflow(impl, check, x, wire, observed)
    actual = check.returns(observed)
    sent = [target.encode(value) for value in values_of(x)]
    check.bits(actual["payload"], Tensor.from_words(WIRES[wire], x.shape, sent), "what travels")
    back = [origin.encode(target.decode(code)) for code in sent]
    check.bits(actual["restored"], Tensor.from_words(source, x.shape, back), "what is restored")
    check.equal("scales" in actual, False, "whether a scale travels without a scheme")


def recognize_overflow(impl, check, x, wire, observed):
    """End the case where numbers beyond the wire's range are refused, or become its largest number (AMB-COLL-37)."""
    target, values = float_format(WIRES[wire]), values_of(x)
    beyond = [isinstance(value, Fraction) and abs(value) > target.largest for value in values]
    if isinstance(observed, Rejected):
        within = [value for value, far in zip(values, beyond, strict=True) if not far]
        answer = impl.collectives.compress(input=of_values(x.dtype, within), dtype=wire)
        check.reading("AMB-COLL-37", "overflow is refused", any(beyond) and isinstance(answer, Returned))
    elif isinstance(observed, Returned):
        top = [target.largest * (1 if finite(value) > 0 else -1) if far else value
               for value, far in zip(values, beyond, strict=True)]  # fmt: skip
        words = [target.encode(value) for value in top]
        saturates = observed.value["payload"].words().tolist() == words != [target.encode(value) for value in values]
        check.reading("AMB-COLL-37", "fp16 and bf16 saturate", saturates)


@feature("compression-probe")
@pytest.mark.parametrize("wire", named(["bf16", "fp16", "fp8", "fp8_e5m2"]))
def test_the_payload_has_the_shape_of_the_tensor(impl, check, wire):
    """Scalars, empty tensors and several axes travel as they are."""
    for shape in ((), (0,), (2, 0), (3, 4, 5)):
        x = counted("fp32", shape, seed=401)
        observed = impl.collectives.compress(input=x, dtype=wire)
        recognize_bare_fp8(check, observed, wire)
        actual = check.returns(observed)
        check.equal((actual["payload"].dtype, actual["payload"].shape), (WIRES[wire], shape), "what travels")
        check.equal((actual["restored"].dtype, actual["restored"].shape), ("fp32", shape), "what is restored")


@feature("compression-probe")
@clause("COLL-02.5-01")
@pytest.mark.parametrize(
    "wire", ["fp32", "fp64", "tf32", "int8", "bool", "complex64", "fp4", "fp8_e4m3fn", "e4m3", "BF16", "float16", ""]
)
@pytest.mark.parametrize("scheme", [{}, {"qscheme": "blockwise", "block": 4}], ids=["cast", "blockwise"])
def test_another_wire_dtype_is_refused(impl, check, wire, scheme):
    """bf16, fp16 and fp8 travel, and the two fp8 formats by their names; nothing else does."""
    x = counted("fp32", (8,), seed=402)
    check.returns(impl.collectives.compress(input=x, dtype="bf16", **scheme))
    check.status(impl.collectives.compress(input=x, dtype=wire, **scheme), "TESS_ERR_INVALID_VALUE")


@feature("compression-probe")
@clause("COLL-02.5-01")
@pytest.mark.parametrize("dtype", ["int32", "int8", "bool", "complex64"])
def test_data_that_no_wire_rounds_are_unsupported(impl, check, dtype):
    """Integers, truth values and complex numbers are not compressed."""
    x = counted(dtype, (8,), seed=403) if dtype != "complex64" else Tensor(dtype, (8,), bytes(64))
    answer = impl.collectives.compress(input=x, dtype="bf16")
    whole = "int" in dtype and isinstance(answer, Returned) and answer.value["restored"] == x
    check.reading("AMB-COLL-37", "integers travel as they are", whole)
    check.status(answer, "TESS_ERR_UNSUPPORTED")


@feature("compression-probe")
@clause("COLL-02.5-02", "COLL-06-06")
@pytest.mark.parametrize(("shape", "block"), BLOCKS)
@pytest.mark.parametrize("wire", ["fp8", "fp8_e5m2", "fp16", "bf16"])
def test_blocks_are_restored_within_half_a_step(impl, check, wire, shape, block):
    """Blocks of consecutive elements, across rows, each with a scale; neighbouring blocks differ by binades."""
    for name, values in inputs(prod(shape), block).items():
        x = of_values("fp32", values, shape)
        given = {"dtype": wire, "qscheme": "blockwise", "block": block}
        observed = impl.collectives.compress(input=x, **given)
        recognize_bare_fp8(check, observed, wire)
        actual = check.returns(observed)
        check.equal(actual["block"], block, "the block that was taken")
        judge_blocks(check, x, actual, WIRES[wire], block, name)


@feature("compression-probe")
@clause("COLL-02.5-02", "COLL-06-06")
@pytest.mark.parametrize("wire", ["fp8", "fp8_e5m2", "fp16", "bf16"])
def test_the_ends_of_fp32_keep_their_signs(impl, check, wire):
    """The largest numbers of either sign come back within an eighth, on their own side of zero."""
    top = SINGLE.largest
    values = [-top, top / 2, -top / 2, top]
    observed = impl.collectives.compress(input=of_values("fp32", values), dtype=wire, qscheme="blockwise", block=4)
    recognize_bare_fp8(check, observed, wire)
    check.within(check.returns(observed)["restored"], values, [abs(value) / 8 for value in values], "what is restored")


@feature("compression-probe")
@clause("COLL-02.5-02", "COLL-06-06")
@pytest.mark.parametrize("wire", ["fp8", "fp8_e5m2", "fp16", "bf16"])
def test_the_block_is_declared_where_none_is_asked_for(impl, check, wire):
    """The answer says how many elements share a scale."""
    x = counted("fp32", (1000,), seed=404, exponents=(-20, 20))
    observed = impl.collectives.compress(input=x, dtype=wire, qscheme="blockwise")
    recognize_bare_fp8(check, observed, wire)
    actual = check.returns(observed)
    block = actual.get("block", 0)
    check.true(block >= 1, "the block has at least one element", block)
    judge_blocks(check, x, actual, WIRES[wire], block, "the declared block")


@feature("compression-probe")
@clause("COLL-02.5-02", "COLL-06-06")
@pytest.mark.parametrize("wire", ["fp8", "fp8_e5m2", "fp16", "bf16"])
@pytest.mark.parametrize("bad", [NAN, INFINITY, NEGATIVE_INFINITY], ids=["nan", "inf", "-inf"])
def test_a_block_that_has_no_scale_is_refused(impl, check, wire, bad):
    """NaN and infinities at any place of a block are not lost in a scale (AMB-COLL-38)."""
    for place in (0, 3, 6):
        values: list[Value] = [Fraction(i + 1) for i in range(7)]
        values[place] = bad
        call = impl.collectives.compress(input=of_values("fp32", values), dtype=wire, qscheme="blockwise", block=3)
        if isinstance(call, Returned):
            lost = [value is NAN for value in values_of(call.value["restored"])]
            check.reading(
                "AMB-COLL-38", "NaN makes the whole block NaN", lost == [i // 3 == place // 3 for i in range(7)]
            )
        check.status(call, "TESS_ERR_INVALID_VALUE")


@feature("compression-probe")
@clause("COLL-02.5-02")
@pytest.mark.parametrize(
    "given",
    [
        {"qscheme": "blockwise", "block": 0},
        {"qscheme": "blockwise", "block": -4},
        {"qscheme": "tensorwise"},
        {"qscheme": ""},
        {"qscheme": "Blockwise", "block": 4},
        {"block": 4},
    ],
    ids=repr,
)
def test_another_scheme_or_block_is_refused(impl, check, given):
    """blockwise is the scheme; a block has at least one element, and belongs to a scheme."""
    x = counted("fp32", (8,), seed=405)
    check.returns(impl.collectives.compress(input=x, dtype="fp8_e4m3", qscheme="blockwise", block=4))
    check.status(impl.collectives.compress(input=x, dtype="fp8_e4m3", **given), "TESS_ERR_INVALID_VALUE")


@feature("compression-probe")
@clause("COLL-02.5-02")
@pytest.mark.parametrize("dtype", ["fp64", "bf16", "int32"])
def test_scales_are_for_fp32_data(impl, check, dtype):
    """A scale of fp32 does not serve wider data, and other data are not scaled unasked (AMB-COLL-38)."""
    x = counted(dtype, (8,), seed=406)
    observed = impl.collectives.compress(input=x, dtype="fp8_e4m3", qscheme="blockwise", block=4)
    check.status(observed, "TESS_ERR_UNSUPPORTED")


def judge_blocks(check, x: Tensor, actual: dict[str, Tensor], wire: str, block: int, what: str) -> None:
    """The form of a message, that its codes and scales are what is restored, and half a step of each block."""
    check.equal((actual["payload"].dtype, actual["payload"].shape), (wire, x.shape), f"{what}: the payload")
    scales = actual.get("scales")
    check.true(scales is not None, f"{what}: scales travel too")
    payload, restored, data = actual["payload"], actual["restored"], list(map(finite, values_of(x)))
    ends = {NAN, INFINITY, NEGATIVE_INFINITY}.intersection([*values_of(payload), *values_of(scales)])
    if not ends:

        def fits(parts: Sequence[slice]) -> bool:
            if scales.size != len(lengths_of(x.size, block, parts)):
                return False
            scaled = lies_within(restored, *dequantized(payload, scales, block, parts))
            return scaled and lies_within(restored, data, half_steps(data, wire, block, parts))

        check.reading("AMB-COLL-38", "blocks of a row", fits(rows_of(x.shape)) and not fits(WHOLE))
    check.equal((scales.dtype, scales.shape), ("fp32", (-(-x.size // block),)), f"{what}: one scale a block")
    check.true(not ends, f"{what}: codes and scales are finite")
    check.within(restored, *dequantized(payload, scales, block), f"{what}: code times scale of the block")
    check.within(restored, data, half_steps(data, wire, block), f"{what}: half a step of the block")


def lengths_of(size: int, block: int, parts: Sequence[slice]) -> list[int]:
    """The elements of each block of a flat tensor."""
    sizes = [len(range(size)[part]) for part in parts]
    return [min(block, elements - start) for elements in sizes for start in range(0, elements, block)]


def dequantized(
    payload: Tensor, scales: Tensor, block: int, parts: Sequence[slice] = WHOLE
) -> tuple[list[Fraction], list[Fraction]]:
    """Codes times the scales of their blocks, which begin anew in each part, and how far a rounding may take them."""
    factors = chain.from_iterable(map(repeat, values_of(scales), lengths_of(payload.size, block, parts)))
    products = [finite(code) * finite(factor) for code, factor in zip(values_of(payload), factors, strict=True)]
    return products, [UNIT * abs(product) + SINGLE.smallest / 2 for product in products]


def inputs(count: int, block: int) -> dict[str, list[Value]]:
    """Data for blocks: each 11 binades above the last, or below; special blocks in turn; the ends of fp32."""
    words = values_of(counted("fp32", (count,), seed=407, exponents=(-1, 1)))
    rising = [finite(word) * Fraction(2) ** (11 * (i // block)) for i, word in enumerate(words)]
    lowest = [finite(word) * Fraction(2) ** (-146 + i % 7) for i, word in enumerate(words)]
    top = SINGLE.largest
    special: list[list[Value]] = [
        [Fraction(0), NEGATIVE_ZERO],
        [top * 3 / 4, -top / 3, top / 7],
        [SINGLE.smallest, -SINGLE.smallest, Fraction(0)],
        [Fraction(-448), Fraction(272), Fraction(-304), Fraction(1, 512)],
        [-SINGLE.smallest * 627, SINGLE.smallest * 400],
        [Fraction(1), Fraction(1, 1 << 30), NEGATIVE_ZERO],
    ]
    mixed = [
        special[i // block % len(special)][i % block % len(special[i // block % len(special)])] for i in range(count)
    ]
    return {
        "rising blocks": [SINGLE.round(value / Fraction(2) ** 100) for value in rising],
        "subnormal blocks": [SINGLE.round(value) for value in lowest],
        "special blocks": [SINGLE.round(value) if isinstance(value, Fraction) else value for value in mixed],
    }
