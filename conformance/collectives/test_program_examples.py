"""The examples of the document on ranks (2.1, 2.3 and 9)."""

import pytest

from tessera_conformance.chapters.collectives.kit.programs import (
    SUM,
    T,
    given,
    on_ranks,
    program,
    returns,
)
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

pytestmark = feature("mesh-execution", "graph-ir-text")


EXAMPLE = [
    '%dw      = "tessera.graph.multiply"(%x, %x)',
    '%f       = tessera.collective.all_reduce %dw {op="sum", chunk=1MiB, dtype="bf16", algo="auto", scope="node"}',
    "; ... compute next tile ...",
    '%next    = "tessera.graph.add"(%x, %x)',
    "%dw_red  = tessera.await %f",
    '%out     = "tessera.graph.subtract"(%dw_red, %next)',
]


@pytest.mark.parametrize(
    ("value", "compute"),
    [
        pytest.param("%out", lambda i, r: 14 * i * i - 2 * (r + 1) * i, marks=clause("COLL-09.1-02"), id="epilogue"),
        pytest.param("%next", lambda i, r: 2 * (r + 1) * i, marks=clause("COLL-09.1-03"), id="next-tile"),
    ],
)
def test_the_example_overlaps_its_all_reduce(impl, check, value, compute):
    """9.1: the epilogue, a subtraction here, has the awaited sum; the next tile is computed meanwhile (AMB-COLL-16)."""
    type_ = "tensor<4xbf16>"
    text = program(*EXAMPLE, returns(value, type_), takes=f"%x: {type_}", gives=type_, mesh="dp=3")
    rows = [tensor_of("bf16", [(rank + 1) * i for i in range(4)]) for rank in range(3)]
    for rank, (actual,) in enumerate(on_ranks(impl, check, text, given(rows))):
        expected = tensor_of("bf16", [compute(i, rank) for i in range(4)])
        check.bits(actual, expected, f"rank {rank}: {value}")


@clause("COLL-09.2-01", "COLL-09.2-02")
def test_the_pair_reduces_uses_its_shard_and_gathers(impl, check):
    """9.2: every rank works on its shard of the sum and gathers what all have made of theirs."""
    text = program(
        '%f_rs  = tessera.collective.reduce_scatter %x {op="sum", chunk=2MiB}',
        "%shard = tessera.await %f_rs",
        "; use shard locally ...",
        '%weights_sharded = "tessera.graph.multiply"(%shard, %shard)',
        "%f_ag  = tessera.collective.all_gather %weights_sharded {chunk=2MiB}",
        "%W     = tessera.await %f_ag",
        returns("%W"),
    )
    rows = [tensor_of("fp32", [rank + i for i in range(8)]) for rank in range(4)]
    for (actual,) in on_ranks(impl, check, text, given(rows)):
        check.bits(actual, tensor_of("fp32", [(6 + 4 * i) ** 2 for i in range(8)]), "the squares of the sums")


@clause("COLL-02.3-06")
def test_an_all_reduce_without_an_op_is_a_sum(impl, check):
    """The collective of 2.3 as it is printed (AMB-COLL-101)."""
    text = program("%fut = tessera.collective.all_reduce %x {chunk=512KiB}", "%y = tessera.await %fut", returns("%y"))
    check.reading("AMB-COLL-101", "op is required", isinstance(impl.language.verify_ir(text=text), Rejected))
    rows = [tensor_of("fp32", [(rank + 1) * i for i in range(8)]) for rank in range(4)]
    for rank, (actual,) in enumerate(on_ranks(impl, check, text, given(rows))):
        check.bits(actual, tensor_of("fp32", [10 * i for i in range(8)]), f"rank {rank}: the sum")


@clause("COLL-02.3-06")
def test_the_backward_example_keeps_a_gradient_under_way(impl, check):
    """2.3: while the current gradient is stashed, the previous one is reduced, over three layers (AMB-COLL-16)."""
    future = f"!tessera.future<{T}>"
    lines = [
        '%one = "tessera.graph.constant"() {value = 1, dtype = "int32"} : () -> int32',
        '%four = "tessera.graph.constant"() {value = 4, dtype = "int32"} : () -> int32',
        f"%first = tessera.collective.all_reduce %x {{{SUM}, chunk=512KiB}}",
        '%zero = "tessera.graph.subtract"(%x, %x)',
        '%dw, %fut, %total = "tessera.graph.for"(%one, %four, %one, %x, %first, %zero) ({',
        f"^bb0(%i: int32, %prev: {T}, %ar_fut: {future}, %sum: {T}):",
        '  %dw_k = "tessera.graph.add"(%prev, %x)',
        f"  %next = tessera.collective.all_reduce %dw_k {{{SUM}, chunk=512KiB}}",
        "  %dw_km1 = tessera.await %ar_fut",
        '  %more = "tessera.graph.add"(%sum, %dw_km1)',
        f'  "tessera.graph.yield"(%dw_k, %next, %more) : ({T}, {future}, {T}) -> ()',
        f"}}) : (int32, int32, int32, {T}, {future}, {T}) -> ({T}, {future}, {T})",
        "%last = tessera.await %fut",
        returns("%dw, %total, %last", f"{T}, {T}, {T}"),
    ]
    text = program(*lines, gives=f"{T}, {T}, {T}", mesh="dp=3")
    rows = [tensor_of("fp32", [(rank + 1) * i for i in range(8)]) for rank in range(3)]
    for rank, outputs in enumerate(on_ranks(impl, check, text, given(rows))):
        expected = ([4 * (rank + 1) * i for i in range(8)], [36 * i for i in range(8)], [24 * i for i in range(8)])
        for actual, values, what in zip(outputs, expected, ("the stash", "the reduced", "the last"), strict=True):
            check.bits(actual, tensor_of("fp32", values), f"rank {rank}: {what}")
