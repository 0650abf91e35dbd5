"""Collectives whose data travel in a narrower dtype (collectives specification 2.4 and 2.5; AMB-COLL-61 to -64)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, product

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import (
    ALGORITHMS,
    OWN_OR_NAMED,
    WAYS,
    afterwards,
    named_algorithm,
    share,
)
from tessera_conformance.chapters.collectives.kit.questions import OVER_RANKS
from tessera_conformance.chapters.collectives.kit.readings import (
    RARE,
    is_lacking,
    lies_within,
    recognize_operators,
    recognize_own_whole,
    recognize_sums_over_a_wire,
    recognize_unquantized,
    refuses_remainders,
    takes_wide_wires,
)
from tessera_conformance.chapters.collectives.kit.wires import UNIT, WHOLE, WIRES, half_steps, of_values
from tessera_conformance.chapters.runtime.kit.refusals import refused
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.oracle.exact import (
    INFINITY,
    NAN,
    NEGATIVE_ZERO,
    Value,
    exponent_of,
    finite,
    float_format,
    values_of,
)
from tessera_conformance.protocol import Rejected, Returned
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_conformance.vectors.judging import golden, judge

LOSSLESS = {
    "bf16": ("bf16", "fp8_e4m3", "fp8_e5m2"),
    "fp16": ("fp16", "fp8_e4m3", "fp8_e5m2"),
    "fp8": ("fp8_e4m3",),
    "fp8_e4m3": ("fp8_e4m3",),
    "fp8_e5m2": ("fp8_e5m2",),
}
"""The data of which a wire holds every value."""

FLOATS = ("fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2")
FINEST = {
    "fp64": 1 + Fraction(1, 1 << 20),
    "fp32": 1 + Fraction(1, 1 << 20),
    "fp16": 1 + Fraction(1, 1 << 10),
    "bf16": Fraction(1, 1 << 30),
    "fp8_e4m3": 1 + Fraction(1, 8),
    "fp8_e5m2": Fraction(1, 1 << 14),
}
"""A number of each dtype that no lossy wire carries beside 1 and 2."""
LOSSY = [(wire, data) for wire in WIRES for data in FLOATS if data not in LOSSLESS[wire]]


def named(pairs: Sequence[tuple[str, str]]) -> list[object]:
    """Wires and data as parameters, each with the clauses of its wire."""
    clauses = {"bf16": "COLL-02.5-06", "fp16": "COLL-02.5-07"}
    return [
        pytest.param(wire, data, marks=[clause(clauses.get(wire, "COLL-02.5-08")), *of_data(data)], id=f"{wire}-{data}")
        for wire, data in pairs
    ]


def of_data(dtype: str) -> list[pytest.MarkDecorator]:
    """Return the features of a dtype that a library of collectives may lack as data."""
    return [feature(name) for name in OVER_RANKS.get(dtype, ())]


def sent(x: Tensor, wire: str) -> list[Value]:
    """Return the elements as they are on the wire: rounded once."""
    return [float_format(WIRES[wire]).round(value) for value in values_of(x)]


def received(values: Sequence[Value], data: str) -> Tensor:
    """Values of the wire, cast to the dtype of the data."""
    return Tensor.from_words(data, (len(values),), [float_format(data).encode(value) for value in values])


def contributions(data: str, wire: str, ranks: int) -> list[Tensor]:
    """Numbers of a few binades, most of which the wire rounds; sums of what it sends are exact in fp32 in any order.

    At first each rank in turn brings a number whose sum with 1 is a tie of the wire, and the others bring 1.
    """
    step = Fraction(2) ** (float_format(WIRES[wire]).fraction_bits + 1)
    large = [[step if rank == place else Fraction(1) for place in range(ranks)] for rank in range(ranks)]
    words = [counted(data, (24,), seed=1200 + rank, exponents=(-2, 1)) for rank in range(ranks)]
    return [of_values(data, [*large[rank], *values_of(words[rank])]) for rank in range(ranks)]


@golden("collectives/wires")
def test_golden(impl, check, vector):
    """Casts and top-k messages have the frozen bits, which exact rational arithmetic confirms."""
    judge(impl, check, vector)


@feature("operation-access", "compression")
@clause("COLL-02.5-03", "COLL-02.4-03", "COLL-02.4-05")
@pytest.mark.parametrize(("wire", "data"), named(LOSSY))
def test_sums_of_what_was_sent_are_rounded_to_the_wire_once(impl, check, wire, data):
    """Every contribution once, none of the partial sums, the result once; by every algorithm, in every share.

    As AMB-COLL-61 has it; shares may have to be of one size (AMB-RT-04).
    """
    target = float_format(WIRES[wire])
    for at, ranks in enumerate((1, 2, 3, 5, 8)):
        inputs = contributions(data, wire, ranks)
        columns = zip(*(map(finite, sent(x, wire)) for x in inputs), strict=True)
        expected = [target.round(sum(column, Fraction(0))) for column in columns]
        for way in ({}, WAYS[1 + at], WAYS[1 + (at + 2) % len(ALGORITHMS)]):
            given = {"inputs": inputs, "op": "sum", "wire": wire, "level": "fast", **way}
            observed = impl.collectives.run(operation="all_reduce", **given)
            if way and is_lacking(observed):
                continue
            outputs = outputs_of(check, data, observed)
            judge_sums(check, inputs, wire, outputs, expected, f"all_reduce {way}")
            observed = impl.collectives.run(operation="reduce_scatter", **given)
            if refuses_remainders(observed, "reduce_scatter", inputs[0].size, ranks):
                continue
            shares = outputs_of(check, data, observed)
            judge_sums(check, inputs, wire, shares, expected, f"reduce_scatter {way}", shares=True)


def outputs_of(check, data, observed):
    """The results of a collective over a wire; one that takes no fp64 there is another reading."""
    check.reading("AMB-COLL-06", "fp64 refused", data == "fp64" and isinstance(observed, Rejected))
    return check.returns(observed)["outputs"]


def judge_sums(check, inputs, wire, outputs, expected, what, *, shares=False):
    """Each rank has the sums, or its share of them; sums that are rounded elsewhere are another reading."""
    data, ranks = inputs[0].dtype, len(inputs)
    places = [share(len(expected), rank, ranks) if shares else slice(None) for rank in range(ranks)]
    right = [received(expected[own], data) for own in places]
    if outputs != right:
        parts = list(zip(places, outputs, strict=True))
        recognize_sums_over_a_wire(check, inputs, wire, parts, shares=shares)
    for rank, (output, own) in enumerate(zip(outputs, right, strict=True)):
        check.bits(output, own, f"{what}, rank {rank} of {ranks}")


@feature("operation-access", "compression")
@clause("COLL-02.5-03", "COLL-02.4-03")
@pytest.mark.parametrize("op", ["prod", "mean", "max", "min"])
@pytest.mark.parametrize("wire", list(WIRES))
def test_other_operators_combine_what_was_sent(impl, check, wire, op):
    """Products and quotients are exact in fp32 and rounded to the wire once, the others are of the wire.

    As AMB-COLL-61 has it.
    """
    combine: dict[str, Callable[[Sequence[Fraction]], Fraction]] = {
        "prod": lambda column: column[0] * column[1],
        "mean": lambda column: sum(column, Fraction(0)) / len(column),
        "max": max,
        "min": min,
    }
    inputs = [counted("fp32", (24,), seed=1220 + rank, exponents=(-2, 1)) for rank in range(2)]
    columns = zip(*(map(finite, sent(x, wire)) for x in inputs), strict=True)
    expected = [float_format(WIRES[wire]).round(combine[op](column)) for column in columns]
    observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op=op, wire=wire, level="fast")
    recognize_operators(check, observed, op)
    for rank, output in enumerate(check.returns(observed)["outputs"]):
        check.bits(output, received(expected, "fp32"), f"{op}, rank {rank}")


@feature("operation-access", "compression")
@clause("COLL-02.4-05", "COLL-02.5-03")
@pytest.mark.parametrize("wire", list(WIRES))
def test_fp64_data_are_added_in_fp64(impl, check, wire):
    """Sums are rounded from fp64 to the wire at once; by way of fp32 they would be lost or be ties.

    As AMB-COLL-06 and AMB-COLL-61 have it.
    """
    target, little = float_format(WIRES[wire]), Fraction(1, 1 << 16)
    rows = [
        [1 + target.epsilon / 2 + Fraction(1, 1 << 40), Fraction(1 << 13), Fraction(1 << 12)],
        [Fraction(0), little, (1 << 12) * target.epsilon / 2],
        [Fraction(0), Fraction(-(1 << 13)), little],
    ]
    if little < target.smallest:
        rows = [row[:1] for row in rows]
    inputs = [of_values("fp64", row) for row in rows]
    columns = zip(*(map(finite, sent(x, wire)) for x in inputs), strict=True)
    expected = [target.round(sum(column, Fraction(0))) for column in columns]
    for way in WAYS:
        observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op="sum", wire=wire, level="fast", **way)
        if way and is_lacking(observed):
            continue
        for rank, output in enumerate(outputs_of(check, "fp64", observed)):
            check.bits(output, received(expected, "fp64"), f"{way}, rank {rank}")


@feature("operation-access", "compression")
@clause("COLL-02.5-03", "COLL-02.4-03")
@pytest.mark.parametrize("algorithm", OWN_OR_NAMED)
@pytest.mark.parametrize("wire", ["bf16", "fp16"])
def test_inexact_sums_lie_as_near_as_fp32_brings_them(impl, check, wire, algorithm):
    """Data of many binades, in any order, err by half a step of the wire and the error of fp32; all ranks agree.

    As AMB-COLL-61 has it.
    """
    target = float_format(WIRES[wire])
    inputs = [counted("fp32", (64,), seed=1240 + rank, exponents=(-14, 8)) for rank in range(16)]
    exact, bounds = [], []
    for column in zip(*(map(finite, sent(x, wire)) for x in inputs), strict=True):
        total, error = sum(column, Fraction(0)), sum(map(abs, column), Fraction(0)) * len(column) / (1 << 24)
        exact.append(total)
        bounds.append(error + Fraction(2) ** (exponent_of(abs(total) + error) - target.fraction_bits - 1))
    given = {"inputs": inputs, "op": "sum", "wire": wire, "level": "fast", **named_algorithm(algorithm)}
    outputs = check.returns(impl.collectives.run(operation="all_reduce", **given))["outputs"]
    check.within(outputs[0], exact, bounds, "half a step of the wire and the error of fp32")
    check.bits(outputs[0], received(sent(outputs[0], wire), "fp32"), "values of the wire")
    for rank, output in enumerate(outputs):
        check.bits(output, outputs[0], f"rank {rank} and rank 0")


@feature("operation-access", "compression")
@clause("COLL-02.4-05")
@pytest.mark.parametrize("operation", ["broadcast", "all_gather", "all_to_all"])
@pytest.mark.parametrize(("wire", "data"), named(LOSSY))
def test_what_moves_is_rounded_to_the_wire_once(impl, check, wire, data, operation):
    """A root's own buffer and a rank's own block too; ties, overflow, NaN and infinities as casts have them.

    As AMB-COLL-61 has it.
    """
    special: list[Value] = [NAN, NEGATIVE_ZERO, INFINITY, float_format(data).largest, -float_format(data).smallest]
    inputs = [of_values(data, [*special, *values_of(counted(data, (13,), seed=1260 + rank))]) for rank in range(3)]
    arrive = [values_of(received(sent(x, wire), data)) for x in inputs]
    given = {"root": 1} if operation == "broadcast" else {}
    observed = impl.collectives.run(operation=operation, inputs=inputs, wire=wire, level="fast", **given)
    expected = afterwards(operation, arrive, root=1)
    outputs = outputs_of(check, data, observed)
    whole = [values_of(x) for x in inputs]
    kept = [afterwards(operation, [*arrive[:r], whole[r], *arrive[r + 1 :]], root=1)[r] for r in range(3)]
    recognize_own_whole(
        check, outputs, [received(row, data) for row in kept], [received(row, data) for row in expected]
    )
    for rank, output in enumerate(outputs):
        check.bits(output, received(expected[rank], data), f"rank {rank}")


@feature("operation-access", "compression")
@clause("COLL-02.5-03")
@pytest.mark.parametrize("wire", ["bf16", "fp16", "fp8_e5m2"])
def test_sums_overflow_only_at_the_end(impl, check, wire):
    """Sums beyond the wire's range on the way are of fp32; beyond it at the end, they are what a cast gives.

    As AMB-COLL-61 has it.
    """
    top = float_format(WIRES[wire]).largest
    big = top if wire != "bf16" else Fraction(2) ** 126
    for rows in (
        [[big, big], [big, big], [-big, big], [-big, -big]],
        [[-big, big], [big, big], [big, big], [-big, Fraction(0)]],
    ):
        inputs = [of_values("fp32", row) for row in rows]
        expected = [float_format(WIRES[wire]).round(sum(column, Fraction(0))) for column in zip(*rows, strict=True)]
        observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op="sum", wire=wire, level="fast")
        for rank, output in enumerate(check.returns(observed)["outputs"]):
            check.bits(output, received(expected, "fp32"), f"rank {rank}")


@feature("operation-access", "compression")
@clause("RT-13-09", "COLL-02.4-05")
@pytest.mark.parametrize("level", ["strict", "deterministic"])
@pytest.mark.parametrize(("wire", "data"), [pytest.param(*pair, marks=of_data(pair[1])) for pair in LOSSY])
def test_a_lossy_wire_is_refused_where_bits_are_promised(impl, check, wire, data, level):
    """Every operation refuses it, for a narrower dtype or one as wide, and for any values (AMB-COLL-05, -62)."""
    sums = [{"operation": operation, "op": "sum"} for operation in ("all_reduce", "reduce_scatter")]
    operations = (*sums, {"operation": "all_gather"}, {"operation": "broadcast", "root": 1})

    def narrow():
        """Return the answer to the narrower of two floats as a wire."""
        inputs = [of_values("fp32", [FINEST["fp32"]])] * 2
        return impl.collectives.run(operation="all_gather", inputs=inputs, level=level, wire="bf16")

    for last, given in product((FINEST[data], Fraction(4)), operations):
        call = {"inputs": [of_values(data, [Fraction(1), Fraction(2), Fraction(0), last])] * 2, **given}
        plain = check.returns(impl.collectives.run(**call, level=level))["outputs"]
        outputs_of(check, data, impl.collectives.run(**call, level="fast", wire=wire))
        observed = impl.collectives.run(**call, level=level, wire=wire)
        check.reading("AMB-COLL-62", "widths are compared", takes_wide_wires(observed, wire, data, narrow))
        # FINEST, which the wire changes, came first and was refused
        harmless = last == 4 and isinstance(observed, Returned) and observed.value["outputs"] == plain
        check.reading("AMB-COLL-62", "refused only where the values at hand change", harmless)
        recognize_unquantized(check, observed, plain)
        refused(check, observed, "TESS_ERR_DETERMINISM_VIOLATION")


@feature("operation-access", "compression")
@clause("COLL-02.5-01")
@pytest.mark.parametrize("level", ["strict", "deterministic", "fast"])
@pytest.mark.parametrize(
    ("wire", "data"),
    [pytest.param(wire, data, marks=of_data(data)) for wire, known in LOSSLESS.items() for data in known],
)
def test_a_wire_that_holds_the_data_changes_no_bit(impl, check, wire, data, level):
    """It is allowed under every policy; results are rounded to the data's dtype alone (AMB-COLL-62)."""
    target = float_format(data)
    above_a_tie = [Fraction(256), 128 * target.epsilon, Fraction(1, 512), Fraction(0), Fraction(0)]
    words = [counted(data, (20,), seed=1280 + rank, exponents=(-2, 1)) for rank in range(5)]
    inputs = [of_values(data, [first, *values_of(x)]) for first, x in zip(above_a_tie, words, strict=True)]
    columns = list(zip(*(map(finite, values_of(x)) for x in inputs), strict=True))
    expected = {
        "sum": [target.round(sum(column, Fraction(0))) for column in columns],
        "max": [target.round(max(column)) for column in columns],
    }
    for op, values in expected.items():
        observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op=op, wire=wire, level=level)
        for rank, output in enumerate(check.returns(observed)["outputs"]):
            check.bits(output, received(values, data), f"{op}, rank {rank}")


@feature("operation-access", "compression")
@clause("COLL-02.5-01")
@pytest.mark.parametrize("level", ["strict", "fast"])
@pytest.mark.parametrize("wire", ["fp32", "fp64", "tf32", "int8", "fp4", "e4m3", "BF16", ""])
def test_another_wire_of_a_collective_is_refused(impl, check, wire, level):
    """Even where it is the dtype of the data; the message names the wire and those that there are."""
    inputs = [counted("fp32", (8,), seed=1290 + rank) for rank in range(2)]
    observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op="sum", wire=wire, level=level)
    refused(check, observed, "TESS_ERR_INVALID_VALUE", wire, "bf16", "fp8_e5m2")


@feature("operation-access", "compression")
@clause("COLL-02.5-01")
@pytest.mark.parametrize("level", ["strict", "fast"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "int16", "bool", "complex64"])
def test_data_without_a_wire_are_unsupported(impl, check, dtype, level):
    """Integers, truth values and complex numbers, whether they are combined or move (AMB-COLL-62, AMB-RT-59)."""
    x = counted(dtype, (8,), seed=1291) if dtype != "complex64" else Tensor(dtype, (8,), bytes(64))
    for given in ({"operation": "all_reduce", "op": "max" if dtype == "bool" else "sum"}, {"operation": "all_gather"}):
        legal = impl.collectives.run(inputs=[x, x], level=level, **given)
        check.given(dtype not in RARE or not is_lacking(legal), f"collectives of {dtype} are there")
        plain = check.returns(legal)["outputs"]
        observed = impl.collectives.run(inputs=[x, x], level=level, wire="bf16", **given)
        whole = "int" in dtype and isinstance(observed, Returned) and observed.value["outputs"] == plain
        check.reading("AMB-COLL-62", "integers travel as they are", whole)
        refused(check, observed, "TESS_ERR_UNSUPPORTED", dtype)


@feature("operation-access", "compression")
@clause("COLL-02.5-02")
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter", "all_gather"])
@pytest.mark.parametrize("wire", ["fp8", "fp8_e5m2", "fp16", "bf16"])
def test_blockwise_collectives_lose_half_a_step_of_each_block(impl, check, wire, operation):
    """The bound holds for a rank's operand and for each combined result; neighbouring blocks differ by binades.

    The roundings of fp32 in sums of three add no more than four of its units of what is added (AMB-COLL-61, -63).
    """
    ranks, block, count = 3, 4, 21
    data = []
    for rank in range(ranks):
        own = share(count, rank, ranks) if operation == "all_gather" else slice(0, count)
        words = values_of(counted("fp32", (own.stop - own.start,), seed=1300 + rank, exponents=(-1, 1)))
        data.append([finite(word) * Fraction(2) ** (9 * (place // block % 3)) for place, word in enumerate(words)])
    given = {"inputs": [of_values("fp32", row) for row in data], "wire": wire, "qscheme": "blockwise", "block": block}
    given |= {} if operation == "all_gather" else {"op": "sum"}
    outputs = check.returns(impl.collectives.run(operation=operation, level="fast", **given))["outputs"]
    shares = [share(count, rank, ranks) for rank in range(ranks)]
    if operation == "all_gather":
        lost = [half_steps(row, WIRES[wire], block) for row in data]
        for rank, output in enumerate(outputs):
            check.within(output, list(chain(*data)), list(chain(*lost)), f"what rank {rank} gathers")
        return
    exact = [sum(column, Fraction(0)) for column in zip(*data, strict=True)]
    places = shares if operation == "reduce_scatter" else [slice(0, count)] * ranks

    def bounds(brought: Sequence[slice], combined: Sequence[slice]) -> list[Fraction]:
        """Return the bounds of the sums: blocks begin anew in the parts of a contribution, and of what is combined."""
        lost = [half_steps(row, WIRES[wire], block, brought) for row in data]
        off = [
            sum(errors, Fraction(0)) + 4 * UNIT * sum(map(abs, column), Fraction(0))
            for errors, column in zip(zip(*lost, strict=True), zip(*data, strict=True), strict=True)
        ]
        far = [abs(value) + bound for value, bound in zip(exact, off, strict=True)]
        return [a + b for a, b in zip(off, half_steps(far, WIRES[wire], block, combined), strict=True)]

    decided = bounds(WHOLE, shares if operation == "reduce_scatter" else WHOLE)
    if not all(lies_within(output, exact[own], decided[own]) for output, own in zip(outputs, places, strict=True)):
        for alternative, other in (
            ("blocks of a share", bounds(shares, shares)),
            ("a share has the blocks of the whole result", bounds(WHOLE, WHOLE)),
        ):
            follows = (lies_within(output, exact[own], other[own]) for output, own in zip(outputs, places, strict=True))
            check.reading("AMB-COLL-63", alternative, all(follows))
    for rank, (output, own) in enumerate(zip(outputs, places, strict=True)):
        check.within(output, exact[own], decided[own], f"rank {rank}")
        some = any(finite(found) != value for found, value in zip(values_of(output), exact[own], strict=True))
        check.true(some, f"rank {rank}: something was compressed", output)


@feature("operation-access", "compression")
@clause("COLL-02.5-02", "RT-13-09")
@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"level": "strict"}, "TESS_ERR_DETERMINISM_VIOLATION"),
        ({"level": "deterministic"}, "TESS_ERR_DETERMINISM_VIOLATION"),
        ({"qscheme": "tensorwise"}, "TESS_ERR_INVALID_VALUE"),
        ({"block": 0}, "TESS_ERR_INVALID_VALUE"),
        ({"wire": None}, "TESS_ERR_INVALID_VALUE"),
        ({"qscheme": None}, "TESS_ERR_INVALID_VALUE"),
        ({"inputs": [tensor_of("bf16", [1, 2])] * 2}, "TESS_ERR_UNSUPPORTED"),
        ({"inputs": [of_values("fp32", [NAN, Fraction(1)])] * 2}, "TESS_ERR_INVALID_VALUE"),
        ({"inputs": [of_values("fp32", [INFINITY, Fraction(1)])] * 2}, "TESS_ERR_INVALID_VALUE"),
    ],
    ids=["strict", "deterministic", "scheme", "block", "no wire", "no scheme", "bf16", "nan", "infinity"],
)
def test_blockwise_collectives_that_cannot_be_are_refused(impl, check, given, status):
    """Bits that a level promises, another scheme, a scheme without a wire, data without a scale (AMB-COLL-62, -63)."""
    usual = {"operation": "all_reduce", "inputs": [tensor_of("fp32", [1, 2])] * 2, "op": "sum", "level": "fast"}
    usual |= {"wire": "fp8", "qscheme": "blockwise", "block": 4}
    check.returns(impl.collectives.run(**usual))
    request = {name: value for name, value in (usual | given).items() if value is not None}
    check.status(impl.collectives.run(**request), status)
