"""Collectives over a wire: where they round, what a wire holds, and in which order they add."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tessera_reference.abi import Failure, Status
from tessera_reference.collectives.compression import WIRES
from tessera_reference.collectives.operations import order_of, run
from tessera_reference.collectives.schedules import ALGORITHMS
from tessera_reference.graph.futures import holds
from tessera_reference.numerics.array import Array, code_dtype, decode, encode
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.numerics.rounding import cast


def many_binades(ranks: int, count: int) -> list[Array]:
    random = np.random.default_rng(23)
    rows = random.normal(size=(ranks, count)) * np.exp2(random.integers(-12, 12, size=(ranks, count)))
    return [Array(DTYPES["fp32"], row.astype(np.float32)) for row in rows]


def added(tree: Any, values: list[np.float32]) -> np.float32:
    """The sum over a nested list, each node a single addition of numpy."""
    return added(tree[0], values) + added(tree[1], values) if isinstance(tree, list) else values[tree]


@pytest.mark.parametrize("wire", ["bf16", "fp16"])
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_fast_adds_what_was_sent_in_the_order_of_its_algorithm(name: str, wire: str) -> None:
    rows = many_binades(6, 17)
    found = run("all_reduce", rows, op="sum", name=name, wire=wire, level="fast").outputs
    sent = [cast(cast(row, WIRES[wire]), row.dtype).values for row in rows]
    totals = [added(order_of(name, 6, 17, at).to_json(), [row[at] for row in sent]) for at in range(17)]
    wanted = cast(cast(Array(DTYPES["fp32"], np.array(totals, np.float32)), WIRES[wire]), DTYPES["fp32"])
    for each in found:
        np.testing.assert_array_equal(each.values.view(np.uint32), wanted.values.view(np.uint32))


def test_fp32_and_the_wire_differ_on_these_inputs() -> None:
    """What the cases of the chapter rely on: another accumulator gives other bits."""
    rows = many_binades(6, 17)
    whole = run("all_reduce", rows, op="sum").outputs[0].values
    found = run("all_reduce", rows, op="sum", wire="bf16", level="fast").outputs[0].values
    assert (whole != found).any()


@pytest.mark.parametrize("wire", ["bf16", "fp16", "fp8_e4m3", "fp8_e5m2"])
@pytest.mark.parametrize("data", ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_a_wire_holds_a_dtype_when_every_number_comes_back(wire: str, data: str) -> None:
    dtype = DTYPES[data]
    values = decode(np.arange(1 << dtype.bits).astype(code_dtype(dtype)), dtype)
    every = Array(dtype, values[~np.isinf(values)])
    back = cast(cast(every, DTYPES[wire]), dtype)
    assert holds(DTYPES[wire], dtype) == np.array_equal(encode(back.values, dtype), encode(every.values, dtype))


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"wire": "bf16"}, Status.TESS_ERR_DETERMINISM_VIOLATION, "wire bf16 under strict"),
        ({"wire": "bf16", "level": "deterministic"}, Status.TESS_ERR_DETERMINISM_VIOLATION, "level fast"),
        ({"wire": "fp32"}, Status.TESS_ERR_INVALID_VALUE, "bf16, fp16, fp8"),
        ({"qscheme": "blockwise"}, Status.TESS_ERR_INVALID_VALUE, "a wire"),
        ({"wire": "fp8", "qscheme": "blockwise", "block": 4}, Status.TESS_ERR_DETERMINISM_VIOLATION, "fast"),
    ],
)
def test_refusals_say_what_is_allowed(asked: dict[str, Any], status: Status, words: str) -> None:
    with pytest.raises(Failure, match=words) as refused:
        run("all_reduce", many_binades(2, 3), **{"op": "sum", **asked})
    assert refused.value.status == status


@pytest.mark.parametrize("kind", ["int32", "bool", "complex64"])
def test_data_without_a_wire(kind: str) -> None:
    rows = [Array(DTYPES[kind], np.zeros(3, DTYPES[kind].carrier)) for _ in range(2)]
    with pytest.raises(Failure) as refused:
        run("all_gather", [rows[0], rows[1]], wire="bf16", level="fast")
    assert refused.value.status == Status.TESS_ERR_UNSUPPORTED


def test_scales_are_for_fp32_data() -> None:
    rows = [Array(DTYPES["bf16"], np.zeros(3, DTYPES["bf16"].carrier)) for _ in range(2)]
    with pytest.raises(Failure, match="fp32") as refused:
        run("all_reduce", rows, op="sum", wire="fp8", qscheme="blockwise", level="fast")
    assert refused.value.status == Status.TESS_ERR_UNSUPPORTED


def test_a_group_of_one_is_rounded_like_any_other() -> None:
    rows = many_binades(1, 9)
    found = run("all_reduce", rows, op="sum", wire="fp16", level="fast").outputs[0]
    np.testing.assert_array_equal(found.values, cast(cast(rows[0], DTYPES["fp16"]), DTYPES["fp32"]).values)
