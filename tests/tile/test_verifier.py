"""Refusals of a kernel of Tile IR before anything runs, with the clause that each names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tessera_reference.ir.diagnostics import Rejection
from tessera_reference.tile.fragments import LoadMatrix
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


def test_the_bound_of_shared_memory_is_the_end_of_the_last_allocation(kernel):
    """3 bytes, then 2 * 5 * 4 from byte 16."""
    k = kernel(kernel.buffer("fp32", 4))
    assert shared_bound(k.function) == 0
    k.allocate("int8", 3)
    assert shared_bound(k.function) == 3
    k.allocate("fp32", 2, 5)
    assert shared_bound(k.function) == 56


def test_an_allocation_in_a_region_has_no_static_bound(kernel):
    k = kernel(kernel.buffer("fp32", 4))
    k.loop(0, 4, 1, lambda i: k.allocate("fp32", 4) and ())
    assert clauses(k.refused()) == ["LANG-07.3-04"]


@pytest.mark.parametrize("name", ["k", "kernel_k", "tss_kernel_", "tss_kernel_a.b"])
def test_the_symbol_of_a_kernel_is_mangled(kernel, name):
    assert clauses(kernel(kernel.buffer("fp32", 4), name=name).refused()) == ["LANG-16-01"]


def test_the_body_of_a_kernel_returns(kernel):
    k = kernel(kernel.buffer("fp32", 4))
    function = replace(k.function, body=replace(k.function.body, exit="unreachable"))
    with pytest.raises(Rejection) as caught:
        verify_kernel(function, k.target)
    assert [diagnostic.clause for diagnostic in caught.value.diagnostics] == ["LANG-08.3-02"]


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
