"""uniform, normal and dropout: the oracle's bits, which stream a draw takes, gradients, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
DRAWS = {"uniform": oracle.uniform, "normal": oracle.normal}


def drawn(name: str, stream: int, shape: tuple[int, ...] = (3,)) -> Tensor:
    found: Tensor = DRAWS[name](seed=0, stream=stream, shape=shape)
    return found


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_oracles_bits(programs: Any, name: str, dtype: str) -> None:
    call = f"op.{name}(shape=[3, 5], dtype={dtype}, seed=9223372036854775807, stream=11, offset=7)"
    expected = DRAWS[name](seed=2**63 - 1, stream=11, shape=(3, 5), dtype=dtype, offset=7)
    assert programs.run(call) == (expected,)


def test_the_defaults_are_fp32_and_seed_0(programs: Any) -> None:
    assert programs.run("return op.uniform(shape=[3]), op.normal(shape=[2, 2]);") == (
        drawn("uniform", 0),
        drawn("normal", 1, (2, 2)),
    )


def test_a_draw_of_no_dimensions_is_a_scalar(programs: Any) -> None:
    assert programs.run("let s: fp32 = op.uniform(shape=[]); return s;") == (drawn("uniform", 0, ()),)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rate", ["0.0", "0.3", "0.9375"])
def test_dropout_has_the_oracles_bits(programs: Any, dtype: str, rate: str) -> None:
    x = counted(dtype, (6, 11), 4, exponents=(-3, 5))
    found = programs.run(f"op.dropout(x, rate={rate}, seed=3, stream=5, offset=2)", x=x)
    assert found == (oracle.dropout(x, rate=float(rate), seed=3, stream=5, offset=2),)


def test_the_kept_share_is_rounded_once(programs: Any) -> None:
    """1 - rate lies so little beyond the tie between 1 - 2**-24 and 1 that fp64 cannot tell."""
    x, rate = programs.tensor([1.0] * 8), 2**-25 + 2**-60
    (found,) = programs.run(f"op.dropout(x, rate={rate!r})", x=x)
    assert programs.array(found).tolist() == [float(np.float32(1) / np.float32(1 - 2**-24))] * 8


def test_what_is_dropped_is_plus_zero_whatever_it_was(programs: Any) -> None:
    x = programs.tensor([np.nan, np.inf, -np.inf, -1.0] * 16)
    (found,) = programs.run("op.dropout(x, rate=0.5)", x=x)
    assert found == oracle.dropout(x, rate=0.5, seed=0)
    assert {each for each in found.words().tolist() if each & 0x7FFFFFFF == 0} == {0}


# Which stream


def test_draws_are_numbered_in_program_order(programs: Any) -> None:
    body = """
        let a: tensor<3xfp32> = op.uniform(shape=[3]);
        op.normal(shape=[1000]);
        let b: tensor<3xfp32> = op.uniform(shape=[3]);
        let c: tensor<3xfp32> = op.dropout(a - a + 1.0, rate=0.5);
        let d: tensor<3xfp32> = op.uniform(shape=[3]);
        return a, b, c, d;
    """
    a, b, c, d = programs.run(body)
    assert (a, b, d) == (drawn("uniform", 0), drawn("uniform", 2), drawn("uniform", 4))
    assert c == oracle.dropout(programs.tensor([1, 1, 1]), rate=0.5, seed=0, stream=3)


def test_a_stream_that_is_told_takes_no_number(programs: Any) -> None:
    body = "return op.uniform(shape=[3], stream=9), op.uniform(shape=[3]), op.uniform(shape=[3], stream=0);"
    assert programs.run(body) == (drawn("uniform", 9), drawn("uniform", 0), drawn("uniform", 0))


def test_every_turn_of_a_loop_and_every_call_draws_anew(programs: Any) -> None:
    body = """
        let a: tensor<3xfp32> = op.uniform(shape=[3]);
        for (i in 0:3) { a = op.uniform(shape=[3]); }
        return a, op.uniform(shape=[3]);
    """
    assert programs.run(body) == (drawn("uniform", 3), drawn("uniform", 4))
    branch = """
        let a: tensor<3xfp32> = op.uniform(shape=[3]);
        if (n > 0) { a = op.uniform(shape=[3]); }
        return a, op.uniform(shape=[3]);
    """
    taken, skipped = (programs.run(branch, n=programs.tensor(n, "<i4")) for n in (1, 0))
    assert taken == (drawn("uniform", 1), drawn("uniform", 2))
    assert skipped == (drawn("uniform", 0), drawn("uniform", 1))


def test_every_run_begins_with_stream_0(programs: Any) -> None:
    assert programs.run("op.normal(shape=[3])") == programs.run("op.normal(shape=[3])") == (drawn("normal", 0),)


# Gradients


def test_the_gradient_of_dropout_has_its_mask(programs: Any) -> None:
    """dy / (1 - rate) where the element was kept, +0 elsewhere; 1 - 0.75 is exact, so are the quotients."""
    x, w = programs.tensor(np.arange(1, 33)), programs.tensor(-np.arange(1, 33) / 8)
    body = """
        op.normal(shape=[1]);
        let y: tensor<32xfp32> = op.dropout(x, rate=0.75);
        op.normal(shape=[1]);
        return y, op.grad(y * w, x);
    """
    y, gradient = programs.run(body, x=x, w=w)
    assert y == oracle.dropout(x, rate=0.75, seed=0, stream=1)
    kept = programs.array(y) != 0
    assert 0 < kept.sum() < 32
    assert gradient == programs.tensor(np.where(kept, programs.array(w) * 4, 0))


def test_a_narrow_gradient_is_rounded_once(programs: Any) -> None:
    """1 / 0.9 in fp32, then to bf16."""
    x = Tensor.from_words("bf16", (16,), [0x3F80] * 16)
    y, gradient = programs.run("let y: tensor<16xbf16> = op.dropout(x, rate=0.1); return y, op.grad(y, x);", x=x)
    assert gradient == y == oracle.dropout(x, rate=0.1, seed=0)


def test_a_draw_depends_on_nothing(programs: Any) -> None:
    body = "let y: tensor<3xfp32> = x * op.uniform(shape=[3]); return op.grad(y, x);"
    assert programs.run(body, x=programs.tensor([4, 5, 6])) == (drawn("uniform", 0),)


@pytest.mark.parametrize(
    ("expression", "category", "text"),
    [
        ("op.uniform(shape=[2], dtype=int32)", "types", "is not defined on int32"),
        ("op.normal(shape=[2], dtype=complex64)", "types", "is not defined on complex64"),
        ("op.uniform(shape=[2, -1])", "shapes", "shape [2, -1] has an extent below 0"),
        ("op.normal(dtype=fp32)", "types", "op.normal needs the attribute shape"),
        ("op.uniform(shape=[2], seed=-1)", "types", "seed is -1"),
        ("op.uniform(shape=[2], stream=-1)", "types", "stream is -1"),
        ("op.normal(shape=[2], offset=-1)", "types", "offset is -1"),
        ("op.uniform(X, shape=[2])", "types", "op.uniform takes 0 operands, 1 given"),
        ("op.dropout(X)", "types", "op.dropout needs the attribute rate"),
        ("op.dropout(X, rate=1.0)", "numerics", "rate is 1.0"),
        ("op.dropout(X, rate=-0.5)", "numerics", "rate is -0.5"),
        ("op.dropout(X, rate=0.5, seed=-3)", "types", "seed is -3"),
        ("op.dropout(I, rate=0.5)", "types", "is not defined on int8"),
    ],
)
def test_what_is_refused(programs: Any, expression: str, category: str, text: str) -> None:
    diagnostic = programs.refused(expression, "X: tensor<4xfp32>, I: tensor<4xint8>")
    assert (diagnostic.category, diagnostic.phase) == (category, "verify")
    assert text in diagnostic.message


def test_the_last_element_index_is_the_largest(programs: Any) -> None:
    last = "op.uniform(shape=[2], stream=1, offset=9223372036854775805)"
    assert programs.run(last) == (oracle.uniform(seed=0, stream=1, shape=(2,), offset=2**63 - 3),)
    assert programs.failed("op.uniform(shape=[9], offset=9223372036854775805)").category == "numerics"
