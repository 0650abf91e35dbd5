"""flash_attention: the oracle's bits, the plain composition, masks and blocks, gradients, what is refused."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from tessera_conformance import oracle
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted

FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
GENERATOR = np.random.Generator(np.random.PCG64(8))
Q, K = GENERATOR.standard_normal((2, 2, 3, 4))
V, W = GENERATOR.standard_normal((2, 2, 3, 2))


def operands(dtype: str, queries: tuple[int, ...], keys: tuple[int, ...], width: int) -> dict[str, Tensor]:
    return {"q": counted(dtype, queries, 1), "k": counted(dtype, keys, 2), "v": counted(dtype, (*keys[:-1], width), 3)}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("queries", "keys", "width"), [((3, 4), (5, 4), 2), ((2, 3, 4), (2, 5, 4), 4), ((2, 2, 1, 3), (2, 2, 7, 3), 1)]
)
def test_the_oracles_bits(
    programs: Any, dtype: str, queries: tuple[int, ...], keys: tuple[int, ...], width: int
) -> None:
    given = operands(dtype, queries, keys, width)
    assert programs.run("op.flash_attention(q, k, v)", **given) == (oracle.flash_attention(*given.values()),)
    scaled = programs.run("op.flash_attention(q, k, v, scale=0.3)", **given)
    assert scaled == (oracle.flash_attention(*given.values(), scale=0.3),)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_oracles_bits_behind_a_mask(programs: Any, dtype: str) -> None:
    given = operands(dtype, (2, 6, 4), (2, 6, 4), 3)
    found = programs.run("op.flash_attention(q, k, v, causal=true)", **given)
    assert found == (oracle.flash_attention(*given.values(), causal=True),)
    assert found != (oracle.flash_attention(*given.values()),)


@pytest.mark.parametrize("block", [1, 2, 64])
def test_a_block_changes_no_bit(programs: Any, block: int) -> None:
    given = operands("bf16", (7, 4), (7, 4), 4)
    for rest in ("", ", causal=true", ", scale=0.7"):
        plain = programs.run(f"op.flash_attention(q, k, v{rest})", **given)
        assert programs.run(f"op.flash_attention(q, k, v{rest}, block={block})", **given) == plain


@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp8_e4m3"])
def test_the_plain_composition_in_the_accumulator_type(programs: Any, dtype: str) -> None:
    given = operands(dtype, (5, 4), (6, 4), 3)
    body = f"""
        let Q: tensor<5x4xfp32> = op.cast(q, dtype=fp32);
        let K: tensor<6x4xfp32> = op.cast(k, dtype=fp32);
        let V: tensor<6x3xfp32> = op.cast(v, dtype=fp32);
        let S: tensor<5x6xfp32> = op.matmul(Q, op.transpose(K)) * 0.5;
        let O: tensor<5x3xfp32> = op.matmul(op.softmax(S), V);
        return op.cast(O, dtype={dtype});
    """
    assert programs.run(body, **given) == programs.run("op.flash_attention(q, k, v)", **given)


def test_what_is_masked_reaches_no_query_before_it(programs: Any) -> None:
    """Not even as NaN: the scores behind the mask are never looked at, the weights are zero; values are multiplied."""
    q, k = (programs.tensor(each[0]) for each in (Q, K))
    spoiled = programs.tensor(np.where(np.arange(3)[:, None] == 2, np.nan, K[0]))
    v = programs.tensor(V[0])
    clean = programs.array(programs.run("op.flash_attention(q, k, v, causal=true)", q=q, k=k, v=v)[0])
    found = programs.array(programs.run("op.flash_attention(q, k, v, causal=true)", q=q, k=spoiled, v=v)[0])
    assert found[:2].tolist() == clean[:2].tolist()
    assert np.isnan(found[2]).all()
    assert clean[0].tolist() == programs.array(v)[0].tolist()


@pytest.mark.parametrize("wrt", "qkv")
@pytest.mark.parametrize("causal", [False, True])
def test_the_gradient(programs: Any, differences: Any, wrt: str, causal: bool) -> None:
    def model(q: Any, k: Any, v: Any) -> Any:
        rows = []
        for head in range(2):
            for query in range(3):
                taken = query + 1 if causal else 3
                scores = (k[head, :taken] * q[head, query]).sum(1) / 2
                weights = np.vectorize(mpmath.exp, otypes=[object])(scores)
                rows.append((weights[:, None] * v[head, :taken]).sum(0) / weights.sum())
        return np.array(rows).reshape(2, 3, 2)

    call = f"op.flash_attention(q, k, v, causal={str(causal).lower()})"
    assert differences.agree(programs, call, model, W, wrt, q=Q, k=K, v=V)


def test_named_and_unknown_dimensions(programs: Any) -> None:
    signature = "q: tensor<LxDxbf16>, k: tensor<SxDxbf16>, v: tensor<SxExbf16>"
    body = "op.flash_attention(q, k, v)"
    (result,) = programs.compile(body, signature).functions["f"].results
    assert str(result) == "tensor<LxExbf16>"
    given = operands("bf16", (3, 4), (5, 4), 2)
    assert programs.run(body, signature, **given) == (oracle.flash_attention(*given.values()),)
    causal = "op.flash_attention(q, k, v, causal=true)"
    assert programs.refused(causal, signature).category == "shapes"
    programs.compile(causal, signature.replace("S", "L"))


def test_keys_that_turn_out_to_be_none_are_an_error(programs: Any) -> None:
    signature = "q: tensor<2x4xfp32>, k: tensor<Sx4xfp32>, v: tensor<Sx1xfp32>"
    given = {"q": counted("fp32", (2, 4), 1), "k": Tensor("fp32", (0, 4), b""), "v": Tensor("fp32", (0, 1), b"")}
    assert programs.failed("op.flash_attention(q, k, v)", signature, **given).category == "shapes"


@pytest.mark.parametrize(
    ("arguments", "category", "text"),
    [
        ("Q, K, V, causal=true", "shapes", "causal: 3 queries and 5 keys"),
        ("Q, V, V", "shapes", "widths of queries and keys differ"),
        ("Q, K, Q", "shapes", "numbers of keys and values differ"),
        ("Q, B, V", "shapes", "operands have ranks 2, 3 and 2"),
        ("B, C, B", "shapes", "batch dimensions differ"),
        ("B, B, C", "shapes", "batch dimensions differ"),
        ("Q, E, F", "shapes", "there are no keys"),
        ("Q, H, V", "types", "k is bf16, beside fp32"),
        ("Q, K, H", "types", "v is bf16, beside fp32"),
        ("I, I, I", "types", "is not defined on int32"),
        ("Q, K", "types", "takes 3 operands, 2 given"),
        ("Q, K, V, block=0", "schedule", "block is 0"),
        ("s, s, s", "types", "q is fp32, not a tensor"),
    ],
)
def test_what_is_refused(programs: Any, arguments: str, category: str, text: str) -> None:
    signature = (
        "Q: tensor<3x4xfp32>, K: tensor<5x4xfp32>, V: tensor<5x2xfp32>, B: tensor<2x3x4xfp32>, C: tensor<1x3x4xfp32>, "
        "E: tensor<0x4xfp32>, F: tensor<0x2xfp32>, H: tensor<5x4xbf16>, I: tensor<3x4xint32>, s: fp32"
    )
    diagnostic = programs.refused(f"op.flash_attention({arguments})", signature)
    assert (diagnostic.category, diagnostic.phase) == (category, "verify")
    assert text in diagnostic.message
