"""What ranks hold after collectives, against small cases worked by hand."""

from __future__ import annotations

import pytest

from tessera_conformance.dsl import tensor_of
from tessera_conformance.oracle.collectives import all_gather, all_reduce, all_to_all, reduce_scatter
from tessera_conformance.oracle.exact import BadArgument
from tessera_conformance.tensors import Tensor


def ints(*values: int) -> Tensor:
    """A vector of int32."""
    return tensor_of("int32", list(values)) if values else Tensor("int32", (0,), b"")


def test_products_wrap_and_means_divide_by_the_number_of_ranks() -> None:
    assert all_reduce(ints(3, 1 << 30), ints(5, 4), ints(-7, 1), op="prod") == (ints(-105, 0),) * 3
    rows = [tensor_of("fp32", [value, 1]) for value in (1, 2, 6)]
    assert all_reduce(*rows, op="mean")[0] == tensor_of("fp32", [3, 1])
    with pytest.raises(BadArgument):
        all_reduce(*rows, op="median")


def test_shares_are_of_two_sizes_or_empty() -> None:
    rows = [ints(*(10 * rank + place for place in range(5))) for rank in range(3)]
    assert reduce_scatter(*rows) == (ints(30), ints(33, 36), ints(39, 42))
    assert reduce_scatter(*[ints(rank) for rank in range(3)], op="max") == (ints(), ints(), ints(2))


def test_what_moves_keeps_its_order() -> None:
    assert all_gather(ints(1), ints(), ints(2, 3)) == (ints(1, 2, 3),) * 3
    assert all_to_all(ints(1, 2), ints(3, 4)) == (ints(1, 3), ints(2, 4))
    with pytest.raises(BadArgument):
        all_to_all(ints(1, 2, 3), ints(4, 5, 6))
