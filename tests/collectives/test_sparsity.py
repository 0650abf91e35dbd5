"""Top-k messages: what is kept and left is the tensor, and malformed messages are told apart."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tessera_reference.abi.status import Failure, Status
from tessera_reference.collectives.compression import densify, sparsify
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.errors import NonFinite, TooLarge
from tessera_reference.numerics.formats import DTYPES

INT64 = DTYPES["int64"]


def of(name: str, values: Any) -> Array:
    return Array(DTYPES[name], np.array(values, DTYPES[name].carrier))


@given(st.lists(st.integers(-3, 3), max_size=20), st.integers(0, 20), st.sampled_from(["fp32", "int8", "fp64"]))
def test_message_and_rest_are_the_tensor(values: list[int], k: int, name: str) -> None:
    x, k = of(name, values), min(k, len(values))
    found = sparsify("f", x, k)
    indices = found.indices.values.tolist()
    assert indices == sorted(sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))[:k])
    dense = densify("f", found.indices, found.values, x.shape)
    assert (dense.values + found.rest.values).tolist() == values
    assert not dense.values[found.rest.values != 0].any()


@pytest.mark.parametrize("k", [-1, 4, True, 1.0, "2", None])
def test_k_has_a_range(k: Any) -> None:
    with pytest.raises(Failure, match="expected a whole number from 0 to 3") as caught:
        sparsify("f", of("fp32", [1, 2, 3]), k)
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_data_without_magnitudes() -> None:
    with pytest.raises(Failure, match="top-k of bool; expected data of a float or integer dtype") as caught:
        sparsify("f", of("bool", [True]), 1)
    assert caught.value.status is Status.TESS_ERR_UNSUPPORTED
    with pytest.raises(NonFinite, match="nan"):
        sparsify("f", of("fp32", [[1, np.nan]]), 0)


@pytest.mark.parametrize(
    ("indices", "values", "message"),
    [
        (of("int32", [0]), of("fp32", [1]), "indices of int32; expected int64"),
        (of("int64", [0, 1]), of("fp32", [1]), "indices of shape [2] and values of shape [1]; expected one flat shape"),
        (of("int64", [[0]]), of("fp32", [[1]]), "one flat shape"),
        (of("int64", 0), of("fp32", 1), "one flat shape"),
        (of("int64", [0, 6]), of("fp32", [1, 2]), "indices[1] is 6; expected from 0 to 5"),
        (of("int64", [-1]), of("fp32", [1]), "indices[0] is -1; expected from 0 to 5"),
        (of("int64", [0, 3, 3]), of("fp32", [1, 2, 3]), "indices[2] is 3; expected more than 3, before it"),
    ],
)
def test_messages_that_are_refused(indices: Array, values: Array, message: str) -> None:
    with pytest.raises(Failure, match=re.escape(message)) as caught:
        densify("f", indices, values, [2, 3])
    assert caught.value.status is Status.TESS_ERR_INVALID_VALUE


def test_a_shape_that_is_too_large() -> None:
    with pytest.raises(TooLarge):
        densify("f", Array(INT64, np.zeros(0, np.int64)), of("fp32", []), [1 << 40])
