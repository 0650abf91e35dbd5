"""The listing of section 5 of the runtime specification, as printed."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest

LISTING = """
    import tessera_reference as ts

    ctx = ts.init()
    mesh = ts.mesh(devices=range(8), axes=dict(tp=2, dp=4))

    mod  = ts.module.load(open("model.fatbin","rb").read())
    kern = mod.kernel["flash_attention_fused"]

    argbuf = ts.pack_args(Q, K, V, O, B, H, L, D, scale=1.0)
    ts.launch(kern, mesh, grid=(256,1,1), block=(128,1,1), args=argbuf, stream=ts.default_stream())

    ts.collectives.all_reduce(mesh, grads, op="sum", axis="dp")
"""


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(q k^T) v, in fp64."""
    scores = np.einsum("bhld,bhmd->bhlm", q.astype(float), k.astype(float))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhlm,bhmd->bhld", weights / weights.sum(-1, keepdims=True), v.astype(float))


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_the_listing_runs_as_printed(image: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file and the arrays are ours. Afterwards the arrays themselves hold the results, without a copy back."""
    monkeypatch.chdir(tmp_path)
    Path("model.fatbin").write_bytes(image)
    shape = B, H, L, D = 2, 2, 4, 8  # noqa: N806
    draw = np.random.default_rng(5)
    q, k, v = (draw.standard_normal(shape).astype(np.float32) for _ in range(3))
    out, grads = np.zeros(shape, np.float32), np.arange(6, dtype=np.float32)
    names = {"Q": q, "K": k, "V": v, "O": out, "B": B, "H": H, "L": L, "D": D, "grads": grads}
    exec(textwrap.dedent(LISTING), names)
    names["ts"].synchronize()
    names["ctx"].close()
    assert np.allclose(out, attention(q, k, v), rtol=1e-5, atol=1e-6)
    assert grads.tolist() == [0, 4, 8, 12, 16, 20]
