"""Level fast, of many terms: every order and precision lies within, named violations do not."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.bounds import intervals
from tessera_conformance.oracle.bounds.compositions import error_units
from tessera_conformance.oracle.formats import float_format, values_of
from tessera_conformance.tensors import Tensor

SINGLE = float_format("fp32")


def sequential(terms: Any, start: Any = None) -> Any:
    """Down the first axis, in the terms' own type."""
    total = terms[0] if start is None else start + terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def halved(terms: Any) -> Any:
    while len(terms) > 1:
        middle = len(terms) // 2
        terms = np.concatenate([terms[:middle] + terms[middle : 2 * middle], terms[2 * middle :]])
    return terms[0]


def wide(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return (rng.normal(0, 1, shape) * np.exp2(rng.integers(-12, 13, shape))).astype(np.float32)


@pytest.mark.parametrize("length", [1, 2, 7, 64, 600])
def test_sums_in_any_order_lie_within(rng: np.random.Generator, fast: Any, length: int) -> None:
    x = wide(rng, (length, 4))
    operand, axis = [fast.tensor(x)], {"axis": 0}
    for _ in range(5):
        assert fast.within("sum", operand, sequential(x[rng.permutation(length)]), axis)
    for result in (halved(x), x.sum(0), x.astype(np.float64).sum(0).astype(np.float32)):
        assert fast.within("sum", operand, result, axis)
    for result in (x.mean(0), x.sum(0) * np.float32(1 / length), sequential(x / np.float32(length))):
        assert fast.within("mean", operand, result, axis)


def test_a_sum_without_its_last_term_or_in_bf16_is_refused(rng: np.random.Generator, fast: Any) -> None:
    x = rng.uniform(1, 2, (33, 4)).astype(np.float32)
    operand, axis = [fast.tensor(x)], {"axis": 0}
    assert not fast.within("sum", operand, x[:-1].sum(0), axis)
    assert not fast.within("sum", operand, fast.bf16(x).sum(0), axis)
    assert not fast.within("sum", operand, fast.tf32(x).sum(0), axis)
    narrow = np.zeros(4, np.float32)
    for term in fast.bf16(x):
        narrow = fast.bf16(narrow + term)
    assert not fast.within("sum", [fast.tensor(x, "bf16")], fast.tensor(narrow, "bf16"), axis)
    assert fast.within("sum", [fast.tensor(x, "bf16")], fast.tensor(fast.bf16(x).sum(0), "bf16"), axis)


def test_the_bound_of_a_known_order_is_narrower_and_refuses_another_order(fast: Any) -> None:
    """A large number first: the fold loses all the units that follow, the tree none of their sums."""
    x = np.ones((1, 64), np.float32)
    x[0, 0] = 2.0**24
    folded = sequential(x.T)
    assert folded[0] == 2.0**24
    operand, tree = [fast.tensor(x)], {"tree": "pairwise"}
    assert fast.within("sum", operand, folded, tree)
    assert not fast.within("sum", operand, folded, tree, known_order=True)
    assert not fast.within("sum", operand, folded, {"order": "kahan"}, known_order=True)
    assert fast.within("sum", operand, folded, {"tree": "fold"}, known_order=True)


def test_the_running_bound_holds_and_is_the_narrowest(rng: np.random.Generator) -> None:
    x = wide(rng, (100,))
    total, nodes = x[0], []
    for term in x[1:]:
        total = total + term
        nodes.append(Fraction(float(total)))
    values = [Fraction(float(term)) for term in x]
    error = abs(Fraction(float(total)) - sum(values))
    running = intervals.running(nodes, SINGLE)
    weighted = intervals.along_tree("fold", values, SINGLE)
    anything = intervals.any_order(intervals.terms_of(values, SINGLE), SINGLE)
    assert error <= running < weighted < anything


def test_depths_are_the_nodes_above_a_leaf() -> None:
    """Over [1, 2, 4, 8] in ((0 1) 2 3): two roundings for the first two, one for the others."""
    values = [Fraction(1), Fraction(2), Fraction(4), Fraction(8)]
    unit = Fraction(1, 1 << 24)
    expected = ((1 + unit) ** 2 - 1) * 3 + unit * 12
    assert 0 <= intervals.along_tree("((0 1) 2 3)", values, SINGLE) / expected - 1 < Fraction(1, 1 << 100)
    assert intervals.along_tree([[0, 1], 2, 3], values, SINGLE) == intervals.along_tree("((0 1) 2 3)", values, SINGLE)


def test_products_have_one_rounding_more() -> None:
    values = [Fraction(1), Fraction(2), Fraction(4)]
    plain, products = (intervals.along_tree("fold", values, SINGLE, products=more) for more in (False, True))
    assert Fraction(7, 1 << 24) < products - plain < Fraction(8, 1 << 24)
    few = intervals.terms_of(values, SINGLE)
    assert intervals.any_order(few, SINGLE) < intervals.any_order(few, SINGLE, products=True)


def test_a_subnormal_factor_may_be_flushed_before_it_is_multiplied(fast: Any) -> None:
    a, b = np.float32([[1e-39, 1]]), np.float32([[1e30], [1e-9]])
    for result in (a @ b, np.float32([[1e-9]])):
        assert fast.within("matmul", [fast.tensor(a), fast.tensor(b)], result)
    assert not fast.within("matmul", [fast.tensor(a), fast.tensor(b)], np.float32([[4e-9]]))


def test_products_in_any_order_lie_within(rng: np.random.Generator, fast: Any) -> None:
    x = rng.uniform(0.5, 2, (20, 5)).astype(np.float32)
    for _ in range(5):
        shuffled = x[rng.permutation(20)]
        result = shuffled[0]
        for factor in shuffled[1:]:
            result = result * factor
        assert fast.within("prod", [fast.tensor(x)], result, {"axis": 0})
    assert not fast.within("prod", [fast.tensor(x)], np.prod(fast.tf32(x), axis=0), {"axis": 0})
    assert bounds.enclose("prod", [fast.tensor(np.float32([1e30, 1e30, 1e-30]))], {}) == [None]


def test_matrix_products_in_any_order_lie_within(rng: np.random.Generator, fast: Any) -> None:
    a, b, c = wide(rng, (3, 50)), wide(rng, (50, 4)), wide(rng, (3, 4))
    terms = (a[:, :, None] * b[None]).transpose(1, 0, 2)
    fused = np.zeros((3, 4), np.float32)
    for k in range(50):
        fused = (fused.astype(np.float64) + a[:, k : k + 1].astype(np.float64) * b[k : k + 1]).astype(np.float32)
    results = [sequential(terms[rng.permutation(50)]) for _ in range(4)]
    results += [halved(terms), fused, a @ b, (a.astype(np.float64) @ b).astype(np.float32)]
    for result in results:
        assert fast.within("matmul", [fast.tensor(a), fast.tensor(b)], result)
    operands = [fast.tensor(part) for part in (a, b, c)]
    assert fast.within("matmul", operands, sequential(terms, c))
    for result in (sequential(terms, c), a @ b + c, c + halved(terms)):
        assert fast.within("add_to_product", operands, result)
    assert not fast.within("matmul", operands, a @ b)


def test_tf32_in_place_of_fp32_is_refused_on_wide_data(fast: Any) -> None:
    """One product outweighs the others, and its factors have bits that tf32 drops."""
    a = np.full((1, 64), 2.0**-12, np.float32)
    a[0, 0] = 1 + 2.0**-12
    b = np.full((64, 1), 2.0**-12, np.float32)
    b[0, 0] = 1 + 2.0**-12
    operands = [fast.tensor(a), fast.tensor(b)]
    assert fast.within("matmul", operands, a @ b)
    assert not fast.within("matmul", operands, fast.tf32(a) @ fast.tf32(b))


def test_a_product_without_its_tail_is_refused(rng: np.random.Generator, fast: Any) -> None:
    a, b = (rng.uniform(1, 2, shape).astype(np.float32) for shape in ((3, 33), (33, 3)))
    assert not fast.within("matmul", [fast.tensor(a), fast.tensor(b)], a[:, :32] @ b[:32])


def test_half_products_may_be_kept_wider_but_not_narrower(rng: np.random.Generator, fast: Any) -> None:
    a, b = (rng.uniform(1, 2, shape).astype(np.float16) for shape in ((3, 200), (200, 3)))
    operands = [fast.tensor(a), fast.tensor(b)]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert fast.within("matmul", operands, exact.astype(np.float16))
    narrow = sequential((a[:, :, None] * b[None]).transpose(1, 0, 2))
    assert narrow.dtype == np.float16
    assert not fast.within("matmul", operands, narrow)


def online(x: Any, exp: Any = np.exp) -> Any:
    """One pass, rescaling the sum so far at every new maximum."""
    top, total = x[:, 0], np.ones(len(x), np.float32)
    for column in x.T[1:]:
        higher = np.maximum(top, column)
        total = total * exp(top - higher) + exp(column - higher)
        top = higher
    return exp(x - top[:, None]) / total[:, None]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("spread", [1, 30])
def test_every_stable_softmax_lies_within(rng: np.random.Generator, fast: Any, dtype: str, spread: int) -> None:
    x = rng.normal(0, spread, (6, 40)).astype(np.float32)
    x = fast.bf16(x) if dtype == "bf16" else x
    shifted = x - x.max(1, keepdims=True)
    powers = np.exp(shifted)
    by_two = np.exp2(shifted * np.float32(math.log2(math.e)))
    double = np.exp(shifted.astype(np.float64))
    results = [powers / powers.sum(1, keepdims=True), by_two * (1 / sequential(by_two.T))[:, None], online(x)]
    results += [np.exp(shifted - np.log(powers.sum(1, keepdims=True)))] if spread == 1 else []
    results += [(double / double.sum(1, keepdims=True)).astype(np.float32)]
    for result in results:
        assert fast.within("softmax", [fast.tensor(x, dtype)], fast.tensor(result, dtype))
    ascending = np.sort(x)
    assert fast.within("softmax", [fast.tensor(ascending, dtype)], fast.tensor(online(ascending), dtype))


def test_a_softmax_in_one_pass_may_rescale_at_every_element(fast: Any) -> None:
    """Each element is a new maximum, and each exponential three units too large."""
    x = np.arange(200, dtype=np.float32)[None] * np.float32(2.0**-10)
    result = online(x, lambda power: np.exp(power) * np.float32(1 + 3 * 2.0**-23))
    assert fast.within("softmax", [fast.tensor(x)], result)
    assert not fast.within("softmax", [fast.tensor(x)], result * np.float32(1 + 2.0**-10))


def test_exponentials_may_be_powers_of_two_of_scaled_differences(rng: np.random.Generator, fast: Any) -> None:
    """The rounding of a difference of -80 times log2(e) alone is worth 40 units of roundoff."""
    x = np.stack([np.zeros(60), rng.uniform(-85, -64, 60)], 1).astype(np.float32)
    powers = np.exp2(x * np.float32(math.log2(math.e)))
    assert fast.within("softmax", [fast.tensor(x)], powers / powers.sum(1, keepdims=True))


def test_softmax_without_the_maximum_is_refused_where_it_overflows(fast: Any) -> None:
    x = np.float32([[100, 99, 98], [-200, -201, -202]])
    with np.errstate(all="ignore"):
        unstable = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    assert np.isnan(unstable).all()
    for row in range(2):
        assert not fast.within("softmax", [fast.tensor(x[row : row + 1])], unstable[row : row + 1])


def test_wrong_softmaxes_are_refused(rng: np.random.Generator, fast: Any) -> None:
    x = rng.normal(0, 2, (4, 17)).astype(np.float32)
    operand = [fast.tensor(x)]

    def softmax(x: Any, axis: int = 1) -> Any:
        powers = np.exp(x - x.max(axis, keepdims=True))
        return powers / powers.sum(axis, keepdims=True)

    powers = np.exp(x - x.max(1, keepdims=True))
    violations = [
        softmax(x, 0),
        softmax(fast.tf32(x)),
        fast.tf32(softmax(x)),
        powers / powers[:, :-1].sum(1, keepdims=True),
        powers / (powers.sum(1, keepdims=True) + np.float32(1e-4)),
    ]
    for violation in violations:
        assert not fast.within("softmax", operand, violation)


def test_the_logarithm_of_a_sum_of_exponentials(rng: np.random.Generator, fast: Any) -> None:
    x = rng.normal(0, 5, (6, 30)).astype(np.float32)
    top = x.max(1)
    total = np.exp(x - top[:, None]).sum(1)
    assert fast.within("logsumexp", [fast.tensor(x)], np.log(total) + top)
    assert fast.within(
        "logsumexp", [fast.tensor(x)], np.logaddexp.reduce(x.astype(np.float64), axis=1).astype(np.float32)
    )
    assert not fast.within("logsumexp", [fast.tensor(x)], top)
    assert not fast.within("logsumexp", [fast.tensor(x)], np.log(total[::-1]) + top)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_attention_fused_or_in_steps(rng: np.random.Generator, fast: Any, dtype: str) -> None:
    q, k, v = (rng.normal(0, 1, (12, 16)).astype(np.float32) for _ in range(3))
    if dtype == "bf16":
        q, k, v = map(fast.bf16, (q, k, v))
    operands, arguments = [fast.tensor(part, dtype) for part in (q, k, v)], {"factor": "0.25"}

    def attend(rounded: Any, factor: float = 0.25, keys: int = 12) -> Any:
        scores = rounded(rounded(q @ k[:keys].T) * np.float32(factor))
        powers = np.exp(scores - scores.max(1, keepdims=True))
        return rounded(powers / powers.sum(1, keepdims=True)) @ v[:keys]

    for rounded in (lambda part: part, fast.bf16 if dtype == "bf16" else np.float32):
        assert fast.within("attention", operands, fast.tensor(attend(rounded), dtype), arguments)
    for violation in (attend(np.float32, 1.0), attend(np.float32, 0.25, 11)):
        assert not fast.within("attention", operands, fast.tensor(violation, dtype), arguments)
    if dtype == "fp32":
        assert not fast.within("attention", operands, attend(fast.bf16), arguments)


def cooley_tukey(x: Any) -> Any:
    if len(x) == 1:
        return x
    even, odd = cooley_tukey(x[::2]), cooley_tukey(x[1::2])
    twisted = np.exp(-2j * np.pi * np.arange(len(odd)) / len(x)).astype(np.complex64) * odd
    return np.concatenate([even + twisted, even - twisted])


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, 17, 32])
def test_transforms_by_any_algorithm_lie_within(rng: np.random.Generator, fast: Any, n: int) -> None:
    x = (rng.normal(0, 1, n) + 1j * rng.normal(0, 1, n)).astype(np.complex64)
    operand = [fast.tensor(x)]
    roots = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n).astype(np.complex64)
    results = [np.fft.fft(x.astype(np.complex128)).astype(np.complex64), sequential((roots * x).T)]
    results += [np.fft.fft(x).astype(np.complex64)] + ([cooley_tukey(x)] if n & (n - 1) == 0 else [])
    for result in results:
        assert fast.within("fft", operand, result, {"norm": "backward"})
        assert fast.within("fft", operand, result * np.float32(1 / math.sqrt(n)), {})
    if n > 2:
        assert not fast.within("fft", operand, np.fft.ifft(x, norm="ortho").astype(np.complex64), {})
        assert not fast.within("ifft", operand, np.fft.fft(x, norm="ortho").astype(np.complex64), {})
        assert not fast.within("fft", operand, np.fft.fft(x).astype(np.complex64), {})


def test_an_impulse_errs_by_every_product_on_its_way(rng: np.random.Generator, fast: Any) -> None:
    """The sum of the moduli is one modulus here, and six butterflies show."""
    x = np.zeros(64, np.complex64)
    x[63] = complex(*rng.uniform(1, 2, 2))
    assert fast.within("fft", [fast.tensor(x)], cooley_tukey(x), {"norm": "backward"})


@pytest.mark.parametrize(("n", "units"), [(1, 5), (5, 9), (8, 18), (12, 19), (13, 17), (17, 3 * 5 * 7 * 6)])
def test_the_units_of_a_transform(n: int, units: int) -> None:
    """The definition in any order, mixed radices, and Bluestein's three transforms for a large prime."""
    assert error_units(n) == units


def test_roots_of_unity_in_tf32_are_refused(rng: np.random.Generator, fast: Any) -> None:
    x = (rng.normal(0, 1, 16) + 1j * rng.normal(0, 1, 16)).astype(np.complex64)
    roots = np.exp(-2j * np.pi * np.outer(np.arange(16), np.arange(16)) / 16)
    narrow = fast.tf32(roots.real.astype(np.float32)) + 1j * fast.tf32(roots.imag.astype(np.float32))
    result = (narrow @ x.astype(np.complex128)).astype(np.complex64)
    assert not fast.within("fft", [fast.tensor(x)], result, {"norm": "backward"})


def test_extremes_are_exact(rng: np.random.Generator, fast: Any) -> None:
    x = rng.normal(0, 1, (4, 9)).astype(np.float32)
    assert fast.within("max", [fast.tensor(x)], x.max(1))
    assert not fast.within("max", [fast.tensor(x)], fast.tf32(x).max(1))
    assert not fast.within("min", [fast.tensor(x)], x[:, 1:].min(1) + np.float32(1e-3))


def test_a_narrow_all_reduce_may_be_rounded_at_every_rank(rng: np.random.Generator, fast: Any) -> None:
    ranks = [fast.bf16(rng.uniform(1, 2, 20).astype(np.float32)) for _ in range(6)]
    operands = [fast.tensor(rank, "bf16") for rank in ranks]
    travelling = ranks[3]
    for rank in (4, 5, 0, 1, 2):
        travelling = fast.bf16(travelling + ranks[rank])
    for result in (travelling, sequential(np.array(ranks))):
        assert fast.within("all_reduce", operands, fast.tensor(result, "bf16"), {"op": "sum"})
    assert not fast.within("all_reduce", operands, fast.tensor(travelling - ranks[5], "bf16"), {"op": "sum"})
    assert not fast.within("all_reduce", operands, fast.tensor(travelling / 6, "bf16"), {"op": "sum"})


def test_a_verdict_names_its_rule(rng: np.random.Generator, fast: Any) -> None:
    x = fast.tensor(rng.normal(0, 1, (1, 9)).astype(np.float32))
    rules = {name: bounds.enclose(name, [x], {})[0].rule for name in ("sum", "softmax", "mean", "max")}  # type: ignore[union-attr]
    assert rules["sum"] == "any order of 9 terms, gamma(8)"
    assert rules["mean"] == "any order of 9 terms, gamma(8), and a quotient"
    assert "softmax of 9" in rules["softmax"]
    assert rules["max"].startswith("exact")


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "softmax", "logsumexp", "max"])
def test_nothing_is_promised_of_a_row_with_an_infinity(fast: Any, name: str) -> None:
    x = fast.tensor(np.float32([[1, np.inf, 2], [1, 1, 2]]))
    limits = bounds.enclose(name, [x], {})
    rows = len(limits) // 2
    assert limits[:rows] == [None] * rows
    assert None not in limits[rows:]


def test_values_of_flushed_rows_are_allowed(fast: Any) -> None:
    x = np.float32([[1e-39, 1e-39, 1e-39]])
    assert fast.within("sum", [fast.tensor(x)], np.float32([0]))
    assert values_of(fast.tensor(x))[0] != 0
    assert isinstance(fast.tensor(x), Tensor)
