"""Top-k messages: indices and values of the elements of largest magnitude (COLL-02.5-05, COLL-02.5-09).

Of equal magnitudes the lower index is kept, and indices ascend (AMB-COLL-27), so that a message is one and the same for
the same tensor; NaN, zeros and the range of k are AMB-COLL-40, what a receiver makes of a message is AMB-COLL-41.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from ..abi.status import Failure, Status, invalid
from ..numerics.array import Array
from ..numerics.errors import shown
from ..numerics.formats import DTYPES
from ..numerics.limits import require_room
from ..numerics.quantization import top_k

__all__ = ["Sparse", "densify", "sparsify"]


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A message, `indices` (k) of int64 into the flat tensor and `values` (k), and `rest`, what was not sent of it."""

    indices: Array
    values: Array
    rest: Array


def sparsify(function: str, x: Array, k: int) -> Sparse:
    """The message of the `k` largest elements of a tensor of any shape; in `rest` their places are +0.

    Raises `Failure` with TESS_ERR_INVALID_VALUE unless 0 <= k <= n, with TESS_ERR_UNSUPPORTED for a dtype without
    magnitudes; `NonFinite` for NaN.
    """
    if x.dtype.kind not in ("float", "int"):
        raise Failure(Status.TESS_ERR_UNSUPPORTED, function, f"top-k of {x.dtype}", "data of a float or integer dtype")
    if type(k) is not int or not 0 <= k <= x.values.size:
        raise invalid(function, f"k is {shown(k)}", f"a whole number from 0 to {x.values.size}, the elements there are")
    flat = x.values.reshape(-1)
    kept = top_k(Array(x.dtype, flat), k)
    indices = kept.indices.values.astype(np.int64)
    rest = flat.copy()
    rest[indices] = 0
    return Sparse(Array(DTYPES["int64"], indices), kept.values, Array(x.dtype, rest.reshape(x.shape)))


def densify(function: str, indices: Array, values: Array, shape: Sequence[int]) -> Array:
    """A tensor with `values` at `indices`, and +0, false for bool, elsewhere.

    Raises `Failure` with TESS_ERR_INVALID_VALUE for a message that does not hold together, `ShapeMismatch`, `TooLarge`.
    """
    require_room(function, shape)
    if indices.dtype.name != "int64":
        raise invalid(function, f"indices of {indices.dtype}", "int64")
    if indices.rank != 1 or indices.shape != values.shape:
        given = f"indices of shape {list(indices.shape)} and values of shape {list(values.shape)}"
        raise invalid(function, given, "one flat shape of both")
    places = indices.values
    outside = (places < 0) | (places >= prod(shape))
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        raise invalid(function, f"indices[{first}] is {places[first]}", f"from 0 to {prod(shape) - 1}")
    behind = places[1:] <= places[:-1]
    if behind.any():
        first = int(np.flatnonzero(behind)[0]) + 1
        raise invalid(function, f"indices[{first}] is {places[first]}", f"more than {places[first - 1]}, before it")
    flat = np.zeros(prod(shape), values.dtype.carrier)
    flat[places] = values.values
    return Array(values.dtype, flat.reshape(tuple(shape)))
