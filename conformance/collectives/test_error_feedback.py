"""Compressed gradients whose loss is added to the next one (collectives specification 2.5 and 6; AMB-COLL-25, -39).

The invariant is judged in exact fractions, on what the implementation itself sent: at every step and over all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from tessera_conformance.chapters.collectives.kit import quantization
from tessera_conformance.chapters.collectives.kit.readings import recognize_infinities, recognize_rows
from tessera_conformance.chapters.collectives.kit.wires import SINGLE, UNIT, WHOLE, WIRES, half_steps, of_values
from tessera_conformance.marks import clause, feature, level
from tessera_conformance.oracle.exact import INFINITY, NAN, finite, float_format, values_of
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted, counter_bits

STEPS = 12
SHAPE = (3, 7)
COUNT = 21

CASTS = ["bf16", "fp16", "fp8", "fp8_e5m2"]
BLOCKWISE = [(wire, block) for wire in CASTS for block in (4, 100)]

LARGEST = {"bf16": 1, "fp16": 65504, "fp8": 448, "fp8_e5m2": 57344}


def on_a_grid(wire: str, block: int | None) -> list[Tensor]:
    """Gradients of which every sum and difference is an fp32 number, where scales take the largest code to themselves.

    Multiples of 2**-8 below 100; with blocks, every block begins with the wire's largest value over a power of two.
    """
    steps = []
    for step in range(STEPS):
        words = counter_bits(421 + step, COUNT)
        values = [Fraction(word % 51199 - 25599, 256) for word in words]
        if block is not None:
            largest = Fraction(LARGEST[wire]) * (
                Fraction(2) ** (8 - LARGEST[wire].bit_length()) if wire != "bf16" else 1
            )
            values = [value / 2 if place % block else largest for place, value in enumerate(values)]
        steps.append(of_values("fp32", values, SHAPE))
    return steps


def anywhere() -> list[Tensor]:
    """Gradients of many binades, whose sums are rounded."""
    return [counted("fp32", SHAPE, seed=441 + step, exponents=(-12, 6)) for step in range(STEPS)]


def attributes(wire: str, block: int | None) -> dict[str, object]:
    """The attributes of a compression."""
    return {"dtype": wire} if block is None else {"dtype": wire, "qscheme": "blockwise", "block": block}


@feature("error-feedback")
@clause("COLL-06-07", "COLL-02.5-04")
@pytest.mark.parametrize(("wire", "block"), [*((wire, None) for wire in CASTS), *BLOCKWISE])
@pytest.mark.parametrize("gradients", [on_a_grid, anywhere], ids=["exact", "rounded"])
def test_what_was_sent_and_the_residual_are_the_sum_of_the_gradients(impl, check, gradients, wire, block):
    """Exactly where no sum rounds; else each step is off by the rounding of its sum and of its residual."""
    given = gradients(wire, block) if gradients is on_a_grid else gradients()
    actual = check.returns(impl.collectives.feedback(gradients=given, **attributes(wire, block)))
    sent, residuals = numbers(check, actual["sent"], given), numbers(check, actual["residuals"], given)
    total, slack = [Fraction(0)] * COUNT, [Fraction(0)] * COUNT
    before = [Fraction(0)] * COUNT
    for step, gradient in enumerate(given):
        data = list(map(finite, values_of(gradient)))
        bounds = [allowed(g, r, s) for g, r, s in zip(data, before, sent[step], strict=True)]
        exact = [g + r - s for g, r, s in zip(data, before, sent[step], strict=True)]
        check.within(actual["residuals"][step], exact, bounds, f"step {step}: what was kept")
        total = [t + g - s for t, g, s in zip(total, data, sent[step], strict=True)]
        slack = [value + bound for value, bound in zip(slack, bounds, strict=True)]
        before = residuals[step]
    check.within(actual["residuals"][-1], total, slack, "gradients less what was sent, over all steps")


@feature("error-feedback")
@clause("COLL-02.5-04", "COLL-06-07")
@pytest.mark.parametrize("wire", CASTS)
def test_each_step_sends_the_gradient_and_the_residual_before_it(impl, check, wire):
    """By a cast, what is sent is the one number of the wire nearest to their sum; the first residual is zero."""
    target = float_format(WIRES[wire])
    given = anywhere()
    actual = check.returns(impl.collectives.feedback(gradients=given, dtype=wire))
    residuals = numbers(check, actual["residuals"], given)
    for step, gradient in enumerate(given):
        data = list(map(finite, values_of(gradient)))
        before = residuals[step - 1] if step else [Fraction(0)] * COUNT
        sums = [SINGLE.round(g + r) for g, r in zip(data, before, strict=True)]
        expected = of_values("fp32", [target.round(sum_) for sum_ in sums], SHAPE)
        check.bits(actual["sent"][step], expected, f"step {step}: what is sent")


@feature("error-feedback", "compression")
@clause("COLL-02.5-04", "COLL-06-07")
@pytest.mark.parametrize(("wire", "block"), BLOCKWISE)
def test_each_step_sends_what_compression_restores(impl, check, wire, block):
    """The sum of gradient and residual is quantized by blocks, and what is kept is at most half a step."""
    given = anywhere()
    actual = check.returns(impl.collectives.feedback(gradients=given, **attributes(wire, block)))
    residuals = numbers(check, actual["residuals"], given)
    for step, gradient in enumerate(given):
        data = list(map(finite, values_of(gradient)))
        before = residuals[step - 1] if step else [Fraction(0)] * COUNT
        sums = [finite(SINGLE.round(g + r)) for g, r in zip(data, before, strict=True)]
        call = impl.collectives.compress(input=of_values("fp32", sums, SHAPE), **attributes(wire, block))
        check.bits(actual["sent"][step], check.returns(call)["restored"], f"step {step}: what is sent")

        def bounds(parts: Sequence[slice], sums: list[Fraction] = sums) -> list[Fraction]:
            return [half_step + UNIT * half_step for half_step in half_steps(sums, WIRES[wire], block, parts)]

        kept, nothing = actual["residuals"][step], [Fraction(0)] * COUNT
        recognize_rows(check, kept, nothing, bounds)
        check.within(kept, nothing, bounds(WHOLE), f"step {step}: half a step is kept")


@level("strict")
@feature("operation-access", "error-feedback")
@clause("COLL-02.5-04")
@pytest.mark.parametrize("block", [4, 100])
@pytest.mark.parametrize("wire", quantization.WIRES)
def test_a_single_step_by_name_is_the_defined_one(impl, check, wire, block):
    """A step sends a part of a gradient and a residual and leaves the rest; the next step takes the rest."""
    gradient, residual = counted("fp32", SHAPE, seed=471, exponents=(-12, 6)), counted("fp32", SHAPE, seed=472)
    for _ in range(2):
        expected = quantization.error_feedback(gradient, residual, wire=wire, block=block)
        actual = check.returns(
            impl.numerics.evaluate(
                operation="error_feedback", inputs=[gradient, residual], attributes={"wire": wire, "block": block}
            )
        )["outputs"]
        check.equal(len(actual), 2, "the number of results")
        check.bits(actual[0], expected[0], "what was sent")
        check.bits(actual[1], expected[1], "the new residual")
        residual = expected[1]


@feature("error-feedback")
@clause("COLL-02.5-04")
@pytest.mark.parametrize("wire", CASTS)
def test_what_one_step_would_lose_arrives_in_time(impl, check, wire):
    """In the block of a 256 a 1000th of a step is 0; after enough steps it was sent all the same."""
    step = Fraction(1, 16)
    gradient = of_values("fp32", [Fraction(256), step, -step])
    given = [gradient] * 1500 if wire == "fp16" else [gradient] * 600
    actual = check.returns(impl.collectives.feedback(gradients=given, **attributes(wire, 3)))
    sent = [sum(column, Fraction(0)) for column in zip(*numbers(check, actual["sent"], given), strict=True)]
    for place, sign in ((1, 1), (2, -1)):
        lost = abs(sign * step * len(given) - sent[place])
        check.true(lost <= 19, "what is still to be sent is about half a step of the block", lost)


@feature("error-feedback")
@clause("COLL-02.5-04")
@pytest.mark.parametrize("wire", CASTS)
@pytest.mark.parametrize("scheme", [{}, {"qscheme": "blockwise", "block": 2}], ids=["cast", "blockwise"])
@pytest.mark.parametrize("bad", [NAN, INFINITY], ids=["nan", "inf"])
def test_a_gradient_that_is_not_finite_is_refused(impl, check, wire, scheme, bad):
    """An infinity or a NaN would stay in the residual forever, so it is refused."""
    good = of_values("fp32", [Fraction(1), Fraction(2), Fraction(3)])
    check.returns(impl.collectives.feedback(gradients=[good, good], dtype=wire, **scheme))
    spoiled = of_values("fp32", [Fraction(1), bad, Fraction(3)])
    for given in ([spoiled, good], [good, good, spoiled]):
        answer = impl.collectives.feedback(gradients=given, dtype=wire, **scheme)
        recognize_infinities(check, answer, given, wire)
        check.status(answer, "TESS_ERR_INVALID_VALUE")


@feature("error-feedback")
@clause("COLL-02.5-04")
def test_a_sum_or_a_wire_that_overflows_is_refused(impl, check):
    """Two large residuals leave fp32; a cast to fp16 is infinite above 65520."""
    top = of_values("fp32", [SINGLE.largest])
    large = of_values("fp32", [Fraction(65520)])
    for given, wire in (([top, top], "fp8"), ([large], "fp16")):
        answer = impl.collectives.feedback(gradients=given, dtype=wire)
        recognize_infinities(check, answer, given, wire)
        check.status(answer, "TESS_ERR_INVALID_VALUE")
    actual = check.returns(impl.collectives.feedback(gradients=[large] * 2, dtype="fp8"))
    check.bits(actual["residuals"][1], of_values("fp32", [Fraction(2 * (65520 - 448))]), "what saturation leaves")


@feature("error-feedback")
@clause("COLL-02.5-04")
@pytest.mark.parametrize(
    ("gradients", "given", "status"),
    [
        ([(3,), (4,)], {"dtype": "bf16"}, "TESS_ERR_INVALID_VALUE"),
        ([(3,), (3, 1)], {"dtype": "bf16"}, "TESS_ERR_INVALID_VALUE"),
        ([], {"dtype": "bf16"}, "TESS_ERR_INVALID_VALUE"),
        ([(3,)], {"dtype": "fp32"}, "TESS_ERR_INVALID_VALUE"),
        ([(3,)], {"dtype": "fp8", "qscheme": "blockwise", "block": 0}, "TESS_ERR_INVALID_VALUE"),
        ([(3,)], {"dtype": "fp8", "block": 2}, "TESS_ERR_INVALID_VALUE"),
    ],
    ids=["extents", "ranks", "none", "wire", "block", "no_scheme"],
)
def test_gradients_that_do_not_fit_are_refused(impl, check, gradients, given, status):
    """All steps have one shape; the attributes are those of compression."""
    tensors = [counted("fp32", shape, seed=461 + i) for i, shape in enumerate(gradients)]
    check.status(impl.collectives.feedback(gradients=tensors, **given), status)


@feature("error-feedback")
@clause("COLL-02.5-04")
@pytest.mark.parametrize("dtype", ["fp64", "bf16", "int32"])
def test_residuals_are_for_fp32_data(impl, check, dtype):
    """Residuals are kept in the accumulator type, and other data are not converted unasked."""
    given = [counted(dtype, (3,), seed=465), counted(dtype, (3,), seed=466)]
    check.status(impl.collectives.feedback(gradients=given, dtype="fp8"), "TESS_ERR_UNSUPPORTED")


def numbers(check, tensors: list[Tensor], given: list[Tensor]) -> list[list[Fraction]]:
    """The values of what was answered, which are finite, one tensor for each gradient."""
    check.equal(
        [(tensor.dtype, tensor.shape) for tensor in tensors],
        [(tensor.dtype, tensor.shape) for tensor in given],
        "the steps",
    )
    read = [values_of(tensor) for tensor in tensors]
    check.true(all(isinstance(v, Fraction) or v.value == "-0" for row in read for v in row), "all values are finite")
    return [list(map(finite, row)) for row in read]


def allowed(g: Fraction, r: Fraction, s: Fraction) -> Fraction:
    """Return how far the residual may be from g + r - s: by the roundings of sum and difference, if they round."""
    exact = [g + r, g + r - s]
    if all(finite(SINGLE.round(value)) == value for value in exact):
        return Fraction(0)
    return UNIT * (abs(exact[0]) + abs(exact[1]) + UNIT * abs(exact[0])) + SINGLE.smallest
