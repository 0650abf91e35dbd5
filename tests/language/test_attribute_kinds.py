"""Attributes are of the kind that the operation declares, in lists too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.ir.diagnostics import Diagnostic

Rejects = Callable[[str], Diagnostic]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("op.transpose(v, perm=[1, W])", "expected an integer"),
        ("op.transpose(v, perm=[1.0, 0])", "expected an integer"),
        ("op.transpose(v, perm=[[1], 0])", "expected an integer"),
        ('op.reshape(v, shape=["4"])', "expected an integer"),
        ("op.transpose(v, perm=1)", "expected a list"),
        ("op.const_tensor(shape=[2], dtype=bool, value=[1, 0])", "an integer literal stands where bool is wanted"),
        ("op.const_tensor(shape=[2], dtype=fp32, value=[true, false])", "expected a list or true or false or a number"),
        ("op.const_tensor(shape=[2], dtype=int8, value=128)", "128 does not fit int8"),
        ("op.const_tensor(shape=[2], dtype=fp32, value=[1, 2, 3])", "value has shape [3]"),
        ("op.const_tensor(shape=[2, 2], dtype=fp32, value=[[1], [2, 3]])", "value has shape of no tensor"),
        ("op.sum(v, axis=0, keepdims=1)", "expected true or false"),
    ],
)
def test_refused(rejects: Rejects, call: str, message: str) -> None:
    found = rejects(f"module m {{ func f(v: tensor<2x2xfp32>) {{ return {call}; }} }}")
    assert message in found.message
