"""The bits of a reduction over ranks in the order that an implementation declares for it, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tessera_conformance.check import Check
from tessera_conformance.oracle.collectives import all_reduce
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.judging import Declaration, Question, declaration, replayed


def declared_bits(
    impl: Implementation, check: Check, inputs: Sequence[Tensor], algorithm: str | None = None, op: str = "sum"
) -> Tensor:
    """Return the result of an all-reduce by an algorithm, or by none: each element over its own declared tree.

    A sum is replayed with the declared arithmetic; a product or mean has that of the oracle.
    """
    question = Question("all_reduce", inputs, {"op": op} | ({} if algorithm is None else {"algorithm": algorithm}))
    known: dict[Declaration, Tensor] = {}
    words = inputs[0].words().copy()
    for place in range(words.size):
        own = declaration(impl, check, question, place)
        if own not in known:
            tree: Any = own.tree.over(len(inputs)).to_json()
            known[own] = replayed(check, question, own) if op == "sum" else all_reduce(*inputs, op=op, tree=tree)[0]
        words[place] = known[own].words()[place]
    return Tensor(inputs[0].dtype, inputs[0].shape, words.tobytes())


def stretch(whole: Tensor, places: Sequence[int] | slice, shape: Sequence[int] | None = None) -> Tensor:
    """Return some elements of a tensor, in order."""
    words = np.ascontiguousarray(whole.words()[places])
    return Tensor(whole.dtype, tuple(shape) if shape is not None else words.shape, words.tobytes())
