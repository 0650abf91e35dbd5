"""The explanation of a module: fusion groups, tile shapes, collective plans (runtime specification, 17; AMB-RT-36)."""

from __future__ import annotations

import json

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import opened
from tessera_conformance.marks import clause

ONE = """module one {
  kernel product(a: tensor<64x64xfp32>, b: tensor<64x64xfp32>, c: tensor<64x64xfp32>) { c = a @ b; }
}
"""
TWO = """module two {
  kernel product(a: tensor<64x64xfp32>, b: tensor<64x64xfp32>, c: tensor<64x64xfp32>) { c = a @ b; }
  kernel twice(x: tensor<96xfp32>, y: tensor<96xfp32>) { y = x + x; }
}
"""
PLANS = {
    "none": [],
    "one": [{"collective": "all_reduce", "axis": "dp", "algorithm": "tree"}],
    "two": [
        {"collective": "all_gather", "axis": "tp", "algorithm": "ring"},
        {"collective": "broadcast", "axis": None, "algorithm": "hierarchical"},
    ],
}


def explained(impl, check, source, **options):
    """The text of a module's explanation, and its parts by name."""
    session = opened(impl, check)
    answer = session.ask("tessxExplain", module=session.load(source, **options))
    check.true(bool(answer["text"].strip()), "there is a text", answer["text"])
    return answer["text"], answer["explanation"]


def mentioned(part, *names):
    """The entries of a part in which all these names stand."""
    return [each for each in part if all(name in json.dumps(each) for name in names)]


@clause("RT-17-03")
@pytest.mark.parametrize(("source", "kernels"), [(ONE, ["product"]), (TWO, ["product", "twice"])], ids=["one", "two"])
def test_every_kernel_has_its_fusion_groups(impl, check, source, kernels):
    """Each kernel whose extents are known is named by a group, that of a matrix product with the product in it."""
    text, parts = explained(impl, check, source)
    for kernel in kernels:
        check.true(bool(mentioned(parts["fusion_groups"], kernel)), f"a group is of {kernel}", parts["fusion_groups"])
        check.true(kernel in text, f"the text names {kernel}", text)
    check.true(
        bool(mentioned(parts["fusion_groups"], "product", "matmul")), "one has the matmul", parts["fusion_groups"]
    )
    check.equal(mentioned(parts["fusion_groups"], "product", "twice"), [], "groups of two kernels")


@clause("RT-17-03")
def test_kernels_of_another_module_are_not_explained(impl, check):
    """Two modules are loaded; each has its own groups."""
    session = opened(impl, check)
    modules = [session.load(source) for source in (ONE, TWO)]
    groups = [session.ask("tessxExplain", module=each)["explanation"]["fusion_groups"] for each in modules]
    check.equal([bool(mentioned(each, "twice")) for each in groups], [False, True], "which module explains the kernel")


@clause("RT-17-08")
def test_a_product_has_a_tile_shape(impl, check):
    """Extents that are whole numbers from 1, by name: m, n, and k for a contraction (AMB-RT-165)."""
    text, parts = explained(impl, check, TWO)
    found = mentioned(parts["tile_shapes"], "product")
    check.true(bool(found), "the product has a tile shape", parts["tile_shapes"])
    for each in found:
        extents = each.get("extents")
        check.true(isinstance(extents, dict) and {"m", "n", "k"} <= set(extents), "it has m, n and k", each)
        whole = all(isinstance(value, int) and value >= 1 for value in extents.values())
        check.true(whole, "its extents are whole numbers from 1", extents)
        for name in ("m", "n", "k"):
            check.true(extents[name] <= 256, f"a tile of 64s is at most 256 in {name}", extents)
            check.true(str(extents[name]) in text, f"the text names {name}", text)


@clause("RT-17-08")
def test_every_kernel_has_its_tile_shape(impl, check):
    """An elementwise kernel too."""
    _, parts = explained(impl, check, TWO)
    check.true(bool(mentioned(parts["tile_shapes"], "twice")), "the sum has a tile shape", parts["tile_shapes"])


@clause("RT-17-09")
@pytest.mark.parametrize("plans", PLANS.values(), ids=PLANS)
def test_the_collective_plans_of_a_module_are_listed(impl, check, plans):
    """Those that it was compiled with, and no others; the text names their collectives and algorithms."""
    text, parts = explained(impl, check, ONE, plans=plans)
    check.equal(sorted(parts["collective_plans"], key=str), sorted(plans, key=str), "the collective plans")
    for plan in plans:
        check.true(plan["collective"] in text and plan["algorithm"] in text, "the text names the plan", text)
