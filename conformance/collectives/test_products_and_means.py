"""Products and means over ranks, in every dtype that has them (collectives specification, 2.1; AMB-COLL-31, -95)."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import inf, nan

import pytest

from tessera_conformance.chapters.collectives.kit.exchanges import ALGORITHMS, WAYS
from tessera_conformance.chapters.collectives.kit.programs import (
    FIRST_LINE,
    awaits,
    issue,
    on_ranks,
    program,
    returns,
)
from tessera_conformance.chapters.collectives.kit.readings import RARE, is_lacking, recognize_operators
from tessera_conformance.chapters.collectives.kit.wires import of_values
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.collectives import all_reduce, reduce_scatter
from tessera_conformance.oracle.exact import finite, float_format
from tessera_conformance.oracle.trees import Tree
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import COMPLEX, complex_of, counted

FLOATS = ("fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "fp32", "fp64")
INTEGERS = ("int8", "int16", "int32", "int64")
DTYPES = {"prod": (*FLOATS, *COMPLEX, *INTEGERS), "mean": (*FLOATS, *COMPLEX)}
CASES = [pytest.param(op, dtype, id=f"{op}-{dtype}") for op, dtypes in DTYPES.items() for dtype in dtypes]
RANKS = (1, 2, 3, 5, 7)


def rows(dtype: str, ranks: int, count: int) -> list[Tensor]:
    """Numbers of both signs whose product and mean depend on the order, and need rounding; integers that wrap."""
    seeds = range(1900, 1900 + 2 * ranks, 2)
    if dtype in COMPLEX:
        part = COMPLEX[dtype]
        return [
            complex_of(dtype, *(counted(part, (count,), seed=s, exponents=(-2, 2)) for s in (a, a + 1))) for a in seeds
        ]
    given = {} if dtype in INTEGERS else {"exponents": (-2, 2)}
    return [counted(dtype, (count,), seed=seed, **given) for seed in seeds]


def special(dtype: str) -> list[list[float]]:
    """Return three inputs: signed zeros, subnormals, overflow on the way and at the end, infinities, NaN."""
    layout = float_format(dtype)
    tiny, top, normal = float(layout.smallest), float(layout.largest), float(layout.smallest_normal)
    columns = [
        (-0.0, -0.0, -0.0),
        (-0.0, 0.0, -0.0),
        (0.0, -1.0, 2.0),
        (tiny, 0.5, 4.0),
        (-tiny, tiny, 1.0),
        (normal, 0.5, 1.5),
        (-normal, 0.75, 1.0),
        (3 * tiny, 0.5, 1.0),
        (top, 2.0, 0.5),
        (top, top, -top),
        (-top, top, top),
        (1.0, nan, 0.0),
    ]
    if layout.has_infinity:
        columns += [(inf, -1.0, 2.0), (0.0, inf, 1.0), (inf, -inf, 1.0), (-inf, -inf, -inf)]
    return [list(row) for row in zip(*columns, strict=True)]


# In `collectives.run`


@feature("operation-access", "algorithm-control")
@clause("LANG-09-06", "RT-13-01")
@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_under_strict_they_have_the_bits_of_the_canonical_tree(impl, check, op, dtype):
    """In the accumulator, a mean's quotient too, rounded once; by every algorithm, on every rank."""
    for ranks in RANKS:
        inputs = rows(dtype, ranks, 2 * ranks + 3)
        given = {"inputs": inputs, "op": op, "level": "strict"}
        for algorithm in ALGORITHMS:
            for operation, oracle in (("all_reduce", all_reduce), ("reduce_scatter", reduce_scatter)):
                observed = impl.collectives.run(operation=operation, algorithm=algorithm, **given)
                recognize_operators(check, observed, op)
                outputs = check.returns(observed)["outputs"]
                for rank, (actual, expected) in enumerate(zip(outputs, oracle(*inputs, op=op), strict=True)):
                    check.bits(actual, expected, f"{operation} by {algorithm}, rank {rank} of {ranks}")


@feature("operation-access", "algorithm-control")
@clause("LANG-09-05", "RT-06-04")
@pytest.mark.parametrize(("op", "dtype"), [(op, dtype) for op in DTYPES for dtype in ("fp32", "bf16", "fp64")])
def test_under_deterministic_they_have_the_order_of_their_algorithm(impl, check, op, dtype):
    """A product or mean has the order declared for a sum by its algorithm; every rank and run has the same bits."""
    for ranks in (3, 5, 7):
        count = ranks + 2
        inputs = rows(dtype, ranks, count)
        for algorithm in ALGORITHMS:
            given = {"inputs": inputs, "op": op, "algorithm": algorithm, "level": "deterministic"}
            observed = impl.collectives.run(operation="all_reduce", **given)
            recognize_operators(check, observed, op)
            outputs = check.returns(observed)["outputs"]
            again = check.returns(impl.collectives.run(operation="all_reduce", **given))["outputs"]
            for rank, output in enumerate([*outputs, *again]):
                check.bits(output, outputs[0], f"{algorithm}: rank {rank % ranks} of {ranks} and rank 0")
            size = len(outputs[0].data) // count
            for place in range(count):
                said = impl.numerics.declared(
                    operation="all_reduce",
                    dtype=dtype,
                    shapes=[[count]] * ranks,
                    attributes={"op": op, "algorithm": algorithm},
                    element=place,
                )
                tree = Tree.from_json(check.returns(said)["tree"]).over(ranks).to_json()
                pieces = [Tensor(dtype, (1,), x.data[place * size : (place + 1) * size]) for x in inputs]
                actual = Tensor(dtype, (1,), outputs[0].data[place * size : (place + 1) * size])
                check.bits(actual, all_reduce(*pieces, op=op, tree=tree)[0], f"{algorithm}, element {place} of {ranks}")


@feature("operation-access")
@clause("RT-13-01")
@level("strict")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", DTYPES)
def test_special_values(impl, check, op, dtype):
    """Signs of zeros, subnormals kept, infinities and NaN; overflow is that of the accumulator on the way."""
    inputs = [tensor_of(dtype, row) for row in special(dtype)]
    observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op=op, level="strict")
    recognize_operators(check, observed, op)
    for rank, (actual, expected) in enumerate(
        zip(check.returns(observed)["outputs"], all_reduce(*inputs, op=op), strict=True)
    ):
        check.bits(actual, expected, f"{op} of {dtype}, rank {rank}")


@feature("operation-access", "bf16-collectives")
@clause("RT-13-01")
def test_a_mean_is_rounded_once(impl, check):
    """Sums that fp32 has and bf16 has not, quotients that neither has, and a mean whose sum bf16 lacks (AMB-RT-57)."""
    layout = float_format("bf16")
    columns = [(Fraction(1), 1 + Fraction(1, 128), Fraction(1)), (layout.largest / 4,) * 3]
    columns += [(Fraction(n), Fraction(1), Fraction(k, 2)) for n in (256, 258, 262, 384, 510) for k in (0, 1, 3)]
    inputs = [of_values("bf16", list(row)) for row in zip(*columns, strict=True)]
    words = [layout.encode(layout.round(sum(column, Fraction(0)) / 3)) for column in columns]
    observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op="mean")
    recognize_operators(check, observed, "mean")
    outputs = check.returns(observed)["outputs"]
    stepwise = [{_rounded_each(layout, order) for order in permutations(column)} for column in columns]
    actual = outputs[0].words().tolist()
    by_steps = all(map(set.__contains__, stepwise, actual)) and actual != words
    check.reading("AMB-RT-57", "round at each step", by_steps)
    for rank, output in enumerate(outputs):
        check.bits(output, Tensor.from_words("bf16", (len(words),), words), f"rank {rank}")


def _rounded_each(layout, order):
    """The word of a mean whose sums are rounded one by one."""
    first, second, third = order
    total = layout.round(finite(layout.round(first + second)) + third)
    return layout.encode(layout.round(finite(total) / 3))


@feature("operation-access")
@clause("RT-13-01")
@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_integers_wrap(impl, check, dtype):
    """Modulo the size of their type; ends of the range and primes, over five ranks."""
    bits = 8 * len(tensor_of(dtype, [0]).data)
    high = (1 << (bits - 1)) - 1
    columns = [(high, high, 3, 5, 7), (-high - 1, -1, 1, 1, 1), (-high - 1, 3, 1, -1, 1), (101, 103, 107, 109, 113)]
    inputs = [tensor_of(dtype, list(row)) for row in zip(*columns, strict=True)]
    expected = []
    for a, b, c, d, e in columns:
        wrapped = (a * b * c * d * e) % (1 << bits)
        expected.append(wrapped - (1 << bits) if wrapped > high else wrapped)
    for way in WAYS:
        observed = impl.collectives.run(operation="all_reduce", inputs=inputs, op="prod", **way)
        if way and is_lacking(observed):
            continue
        check.given(dtype not in RARE or not is_lacking(observed), f"collectives of {dtype} are there")
        recognize_operators(check, observed, "prod")
        for rank, output in enumerate(check.returns(observed)["outputs"]):
            check.bits(output, tensor_of(dtype, expected), f"{way}, rank {rank}")


LACKING = [
    *(("mean", dtype) for dtype in (*INTEGERS, "bool")),
    ("prod", "bool"),
    ("sum", "bool"),
    *((op, dtype) for op in ("max", "min") for dtype in COMPLEX),
]


@feature("operation-access", "argument-checks")
@clause("RT-13-01")
@pytest.mark.parametrize(("op", "dtype"), LACKING)
@pytest.mark.parametrize("operation", ["all_reduce", "reduce_scatter"])
def test_an_operator_that_a_dtype_lacks_is_unsupported(impl, check, operation, op, dtype):
    """Means of integers, arithmetic of truth values, extremes of complex numbers; the twin has the operator.

    A library may lack truth values and others (AMB-RT-59).
    """
    size = {"bool": 1, "complex64": 8, "complex128": 16}.get(dtype) or len(tensor_of(dtype, [0]).data)
    inputs = [Tensor(dtype, (3,), bytes(3 * size))] * 3
    twin = "max" if dtype == "bool" else "sum"
    legal = impl.collectives.run(operation=operation, inputs=inputs, op=twin)
    check.given(dtype not in RARE or not is_lacking(legal), f"collectives of {dtype} are there")
    check.returns(legal)
    check.status(impl.collectives.run(operation=operation, inputs=inputs, op=op), "TESS_ERR_UNSUPPORTED")


# In programs


@feature("mesh-execution", "graph-ir-text")
@clause("COLL-02.1-04", "COLL-02.1-05")
@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_in_programs_they_have_the_same_bits(impl, check, op, dtype):
    """Through a future, by the canonical tree; parts of a reduce_scatter too."""
    for ranks in (2, 3, 5):
        inputs = rows(dtype, ranks, 3 * ranks)
        type_ = f"tensor<{3 * ranks}x{dtype}>"
        for collective, oracle in (("all_reduce", all_reduce), ("reduce_scatter", reduce_scatter)):
            gives = type_ if collective == "all_reduce" else f"tensor<3x{dtype}>"
            lines = [issue("%f", "%x", f'op="{op}"', collective), awaits("%y", "%f"), returns("%y", gives)]
            text = program(*lines, takes=f"%x: {type_}", gives=gives, mesh=f"dp={ranks}")
            answers = on_ranks(impl, check, text, [{"x": x} for x in inputs])
            for rank, ((actual,), expected) in enumerate(zip(answers, oracle(*inputs, op=op), strict=True)):
                check.bits(actual, expected, f"{collective}: rank {rank} of {ranks}")


@feature("mesh-execution", "graph-ir-text")
@clause("COLL-02.1-05")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", DTYPES)
def test_special_values_in_programs(impl, check, op, dtype):
    """Special values give the results that they give in `collectives.run`."""
    inputs = [tensor_of(dtype, row) for row in special(dtype)]
    type_ = f"tensor<{inputs[0].size}x{dtype}>"
    lines = [issue("%f", "%x", f'op="{op}"'), awaits("%y", "%f"), returns("%y", type_)]
    text = program(*lines, takes=f"%x: {type_}", gives=type_, mesh="dp=3")
    answers = on_ranks(impl, check, text, [{"x": x} for x in inputs])
    for (actual,), expected in zip(answers, all_reduce(*inputs, op=op), strict=True):
        check.bits(actual, expected, f"{op} of {dtype}")


@feature("graph-ir-text")
@clause("COLL-02.1-04")
@pytest.mark.parametrize(("op", "dtype"), LACKING)
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter"])
def test_a_program_with_an_operator_that_a_dtype_lacks_is_refused(impl, check, collective, op, dtype):
    """A program with an operator that the dtype lacks is refused before it runs."""
    type_ = f"tensor<8x{dtype}>"
    gives = type_ if collective == "all_reduce" else f"tensor<2x{dtype}>"
    for said, legal in (("max" if dtype == "bool" else "sum", True), (op, False)):
        lines = [issue("%f", "%x", f'op="{said}"', collective), awaits("%y", "%f"), returns("%y", gives)]
        answer = impl.language.verify_ir(text=program(*lines, takes=f"%x: {type_}", gives=gives))
        if legal:
            check.accepts(answer)
        else:
            check.rejects(answer, category=("types", "distributed"), at_line=FIRST_LINE)
