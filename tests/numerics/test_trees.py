from __future__ import annotations

import numpy as np
import pytest

from tessera_reference.numerics.trees import fold, pairwise


def nest(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Join names as a tree would, so that a tree shows its own shape."""
    return np.array([f"({a}{b})" for a, b in zip(left.ravel(), right.ravel(), strict=True)], object).reshape(left.shape)


@pytest.mark.parametrize(
    ("letters", "tree"),
    [
        ("a", "a"),
        ("ab", "(ab)"),
        ("abc", "((ab)c)"),
        ("abcde", "(((ab)(cd))e)"),
        ("abcdef", "(((ab)(cd))(ef))"),
        ("abcdefg", "(((ab)(cd))((ef)g))"),
        ("abcdefghi", "((((ab)(cd))((ef)(gh)))i)"),
    ],
)
def test_adjacent_pairs_with_the_odd_tail_carried(letters, tree):
    assert pairwise(np.array(list(letters), object), 0, nest)[()] == tree


def test_the_left_fold():
    assert fold(np.array([["a"], ["b"], ["c"], ["d"]], object), 0, nest)[0] == "(((ab)c)d)"


@pytest.mark.parametrize("reduce", [pairwise, fold])
def test_the_sum_of_nothing_is_plus_zero_and_of_minus_zeros_minus_zero(reduce):
    nothing = reduce(np.zeros((2, 0), np.float32))
    assert nothing.shape == (2,)
    assert not np.signbit(nothing).any()
    for n in (1, 2, 3, 5):
        assert np.signbit(reduce(np.full((n,), -0.0, np.float32)))


def test_a_carried_tail_is_not_padded():
    """In 2**24 + 1 + 1 the pair (2**24, 1) loses its one, then the tail is lost too; in 1 + 1 + 2**24 neither."""
    values = np.array([2.0**24, 1, 1], np.float32)
    assert pairwise(values) == 2.0**24
    assert pairwise(values[::-1].copy()) == 2.0**24 + 2


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_the_axis_is_dropped_and_the_type_kept(axis):
    values = np.arange(30, dtype=np.float32).reshape(2, 3, 5)
    found = pairwise(values, axis)
    assert found.dtype == np.float32
    assert found.tolist() == values.sum(axis).tolist()  # exact: small integers
