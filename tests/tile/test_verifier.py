"""What a kernel of Tile IR must state, and what its target must have, before anything runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tessera_reference.graph.constant import ConstTensor
from tessera_reference.graph.reductions import Sum
from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.ir.types import Tensor
from tessera_reference.numerics.formats import dtype
from tessera_reference.tile.fragments import FragmentStore, FragmentZero, LoadMatrix, MmaSync
from tessera_reference.tile.operations import CopyAsync
from tessera_reference.tile.verifier import shared_bound, verify_kernel


def clauses(findings):
    return [finding.clause for finding in findings]


@pytest.mark.parametrize(
    ("attribute", "value", "clause"),
    [
        ("grid", None, "LANG-08.1-04"),
        ("block", None, "LANG-08.1-11"),
        ("smem_bytes", None, "LANG-08.1-05"),
        ("grid", (1, 1), "LANG-08.1-07"),
        ("grid", (1, 0, 1), "LANG-08.1-07"),
        ("grid", (1, 65536, 1), "LANG-08.1-04"),
        ("block", (32, 1, 1, 1), "LANG-08.1-08"),
        ("block", (-1, 1, 1), "LANG-08.1-08"),
        ("block", (1025, 1, 1), "LANG-11-15"),
        ("block", (32, 32, 2), "LANG-11-15"),
        ("smem_bytes", -1, "LANG-08.1-09"),
        ("smem_bytes", 232449, "LANG-07.3-03"),
        ("target", "sm_80", "LANG-11-10"),
    ],
)
def test_the_entry_states_its_launch_and_keeps_to_the_target(kernel, attribute, value, clause):
    k = kernel(kernel.buffer("fp32", 4), smem_bytes=0)
    verify_kernel(k.function, k.target)
    k.attributes = {name: each for name, each in {**k.attributes, attribute: value}.items() if each is not None}
    (found,) = [each for each in refused_without_default(k) if each.clause == clause]
    assert (found.category, found.phase) == ("tile", "verify")


def refused_without_default(k):
    """As `refused`, without the shared memory that the builder declares by itself."""
    function = k.function
    function.attributes.update(k.attributes)
    for name in function.attributes.keys() - k.attributes.keys():
        del function.attributes[name]
    with pytest.raises(Rejection) as caught:
        verify_kernel(function, k.target)
    return caught.value.diagnostics


def test_the_largest_entry_is_accepted(kernel):
    k = kernel(kernel.buffer("fp32", 4), grid=((1 << 31) - 1, 65535, 65535), block=(32, 32, 1), smem_bytes=232448)
    verify_kernel(k.function, k.target)


def test_the_bound_of_shared_memory_is_the_end_of_the_last_allocation(kernel):
    """3 bytes, then 2 * 5 * 4 from byte 16."""
    k = kernel(kernel.buffer("fp32", 4))
    assert shared_bound(k.function) == 0
    k.allocate("int8", 3)
    assert shared_bound(k.function) == 3
    k.allocate("fp32", 2, 5)
    assert shared_bound(k.function) == 56


def test_allocations_fit_what_is_declared(kernel):
    for declared, sound in ((4096, True), (4095, False)):
        k = kernel(kernel.buffer("fp32", 4), smem_bytes=declared)
        k.allocate("fp32", 32, 16)
        k.allocate("bf16", 32, 32)
        if sound:
            verify_kernel(k.function, k.target)
        else:
            assert clauses(k.refused()) == ["LANG-07.3-04"]


def test_allocations_fit_the_block_of_the_target(kernel):
    """80 KiB are fine on sm_90, too much on gfx942."""
    for target, sound in (("sm_90", True), ("gfx942", False)):
        k = kernel(kernel.buffer("fp32", 4), target=target)
        k.allocate("fp32", 160, 128)
        if sound:
            verify_kernel(k.function, k.target)
        else:
            assert clauses(k.refused()) == ["LANG-07.3-03"]


def test_an_allocation_in_a_region_has_no_static_bound(kernel):
    k = kernel(kernel.buffer("fp32", 4))
    k.loop(0, 4, 1, lambda i: k.allocate("fp32", 4) and ())
    assert clauses(k.refused()) == ["LANG-07.3-04"]


@pytest.mark.parametrize(
    ("target", "held", "shape", "sound"),
    [
        ("sm_90", "bf16", (16, 16, 16), True),
        ("sm_90", "bf16", (16, 16, 8), False),
        ("sm_90", "fp8_e4m3", (16, 8, 32), True),
        ("sm_80", "fp8_e4m3", (16, 8, 32), False),
        ("gfx90a", "bf16", (32, 32, 8), True),
        ("gfx90a", "bf16", (16, 8, 16), False),
        ("sm_90", "fp32", (16, 16, 4), False),
        ("gfx90a", "fp32", (16, 16, 4), True),
    ],
)
def test_the_target_has_the_matrix_instruction(kernel, target, held, shape, sound):
    m, n, k_ = shape
    k = kernel(kernel.buffer("fp32", m, n), block=(64, 1, 1), target=target)
    zero = k(FragmentZero, returns=kernel.fragment(held, m, n, k_))
    a = k(LoadMatrix, k.allocate(held, 64, 64), returns=kernel.fragment(held, m, n, k_))
    b = k(LoadMatrix, k.allocate(held, 64, 64), returns=kernel.fragment(held, m, n, k_))
    k(MmaSync, a, b, zero, m=m, n=n, k=k_)
    line = k.line
    if sound:
        verify_kernel(k.function, k.target)
    else:
        (found,) = k.refused()
        assert (found.category, found.clause, found.span.line) == ("tile", "LANG-07.3-02", line)
        assert f"{target} has no mma.sync of {m}x{n}x{k_} on {held}" in found.message


@pytest.mark.parametrize(("row", "column", "sound"), [(0, 0, True), (3, 8, True), (3, 4, False), (None, 12, False)])
def test_a_constant_corner_of_ldmatrix_is_aligned(kernel, row, column, sound):
    """Rows of 32 bf16 are whole 16 bytes, so that the column alone tells, whatever the row."""
    k = kernel(kernel.buffer("bf16", 1))
    corner = (k.block_id() if row is None else k.constant(row), k.constant(column))
    k(LoadMatrix, k.allocate("bf16", 64, 32), *corner, returns=kernel.fragment("bf16", 16, 16, 16))
    if sound:
        verify_kernel(k.function, k.target)
    else:
        assert clauses(k.refused()) == ["LANG-07.3-01"]


def test_a_constant_place_of_a_copy_is_aligned(kernel):
    for column, sound in ((8, True), (4, False)):
        k = kernel(kernel.buffer("bf16", 64))
        k.all(CopyAsync, k[0], k.allocate("bf16", 64), k.constant(0), k.constant(column), bytes=16)
        if sound:
            verify_kernel(k.function, k.target)
        else:
            assert clauses(k.refused()) == ["LANG-11-14"]


def test_a_fragment_is_one_operand_only(kernel):
    """What a loop carries is one fragment: B inside, A outside."""
    k = kernel(kernel.buffer("fp32", 16, 16))
    type_ = kernel.fragment("bf16", 16, 16, 16)
    tile, c = k.allocate("bf16", 16, 16), k(FragmentZero, returns=type_)
    a, b = (k(LoadMatrix, tile, returns=type_) for _ in range(2))
    (kept,) = k.loop(0, 2, 1, lambda i, each: k(MmaSync, a, each, c, m=16, n=16, k=16) and each, b)
    verify_kernel(k.function, k.target)
    k(MmaSync, kept, a, c, m=16, n=16, k=16)
    found = k.refused()
    assert {finding.clause for finding in found} == {"LANG-07.1-01"}
    assert found[0].message == "one fragment is B and A"


def test_an_accumulator_is_stored_in_its_own_dtype(kernel):
    k = kernel(kernel.buffer("bf16", 16, 16))
    k.all(FragmentStore, k(FragmentZero, returns=kernel.fragment("bf16", 16, 16, 16)), k[0])
    assert "an accumulator of fp32 and an accumulator of bf16" in k.refused()[0].message


@pytest.mark.parametrize(
    ("parameters", "clause"),
    [
        (["scalar int32", "buffer"], "LANG-16-02"),
        (["buffer", "scalar bf16"], "LANG-08.1-03"),
        (["buffer", "scalar bool"], "LANG-08.1-03"),
        (["shared"], "LANG-08.1-02"),
        (["buffer", "tensor"], "LANG-08.1-03"),
    ],
)
def test_parameters_are_global_buffers_then_scalars_of_32_or_64_bits(kernel, parameters, clause):
    types = {
        "buffer": kernel.buffer("bf16", 4),
        "shared": kernel.shared("bf16", 4),
        "tensor": Tensor((4,), dtype("fp32")),
    }
    wanted = [types[each] if each in types else kernel.scalar(each.split()[1]) for each in parameters]
    assert clauses(kernel(*wanted).refused()) == [clause]


@pytest.mark.parametrize("held", ["int32", "int64", "fp32", "fp64"])
def test_scalars_of_32_and_64_bits_stand_behind_the_buffers(kernel, held):
    k = kernel(kernel.buffer("bf16", 4), kernel.buffer("fp8_e4m3", 2, 2), kernel.scalar(held), kernel.scalar("int32"))
    verify_kernel(k.function, k.target)


@pytest.mark.parametrize("name", ["k", "kernel_k", "tss_kernel_", "tss_kernel_a.b"])
def test_the_symbol_of_a_kernel_is_mangled(kernel, name):
    assert clauses(kernel(kernel.buffer("fp32", 4), name=name).refused()) == ["LANG-16-01"]


@pytest.mark.parametrize("extent", ["N", "?", "?a"])
def test_extents_are_known_at_tile_ir(kernel, extent):
    k = kernel(kernel.buffer("fp32", extent, 4), grid=(1, 1, 1), block=(1, 1, 1), smem_bytes=0)
    k.load(k[0], 0, 0)
    assert {finding.clause for finding in k.refused()} == {"LANG-11-02"}


def test_a_kernel_holds_no_operations_on_tensors(kernel):
    k = kernel(kernel.buffer("fp32", 4))
    value = k(ConstTensor, shape=(4,), dtype=dtype("fp32"))
    k(Sum, value, axis=0)
    assert [(finding.clause, finding.span.line) for finding in k.refused()] == [
        ("LANG-08.2-03", 1),
        ("LANG-08.2-03", 2),
    ]


@pytest.mark.parametrize("exit", ["return", "unreachable"])
def test_a_kernel_ends_at_its_end_only(kernel, exit):
    k = kernel(kernel.buffer("fp32", 4))
    k.branch(k.less(k.thread(), 4), lambda: ())
    verify_kernel(k.function, k.target)
    branch = k.build.instructions.pop()
    regions = (replace(branch.regions[0], exit=exit), branch.regions[1])
    k.build.instructions.append(replace(branch, regions=regions))
    assert [(each.clause, each.span.line) for each in k.refused()] == [("LANG-08.3-02", k.line)]


def test_the_body_of_a_kernel_returns(kernel):
    k = kernel(kernel.buffer("fp32", 4))
    function = replace(k.function, body=replace(k.function.body, exit="unreachable"))
    with pytest.raises(Rejection) as caught:
        verify_kernel(function, k.target)
    assert [each.clause for each in caught.value.diagnostics] == ["LANG-08.3-02"]
