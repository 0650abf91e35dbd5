"""The explanation of a module: fusion groups, tile shapes, collective plans (runtime specification, 17; AMB-RT-36)."""

from __future__ import annotations

import json

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import opened
from tessera_conformance.chapters.runtime.kit.planned_modules import module_text
from tessera_conformance.marks import clause, feature

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
        {"collective": "broadcast", "axis": "dp", "algorithm": "hierarchical"},
    ],
    "two-axes": [
        {"collective": "all_reduce", "axis": "tp", "algorithm": "ring"},
        {"collective": "all_reduce", "axis": "dp", "algorithm": "tree"},
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
    return [entry for entry in part if all(name in json.dumps(entry) for name in names)]


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
    groups = [session.ask("tessxExplain", module=module)["explanation"]["fusion_groups"] for module in modules]
    check.equal(
        [bool(mentioned(group, "twice")) for group in groups], [False, True], "which module explains the kernel"
    )


@clause("RT-17-08")
def test_a_product_has_a_tile_shape(impl, check):
    """Extents that are whole numbers from 1, by name: m, n, and k for a contraction (AMB-RT-165)."""
    text, parts = explained(impl, check, TWO)
    actual = mentioned(parts["tile_shapes"], "product")
    check.true(bool(actual), "the product has a tile shape", parts["tile_shapes"])
    for entry in actual:
        extents = entry.get("extents")
        check.true(isinstance(extents, dict) and {"m", "n", "k"} <= set(extents), "it has m, n and k", entry)
        whole = all(isinstance(value, int) and value >= 1 for value in extents.values())
        check.true(whole, "its extents are whole numbers from 1", extents)
        for name in ("m", "n", "k"):
            check.true(extents[name] <= 256, f"a tile of 64s is at most 256 in {name}", extents)
            check.true(str(extents[name]) in text, f"the text names {name}", text)


@clause("RT-17-08")
def test_every_kernel_has_its_tile_shape(impl, check):
    """Every kernel has a tile shape, an elementwise kernel too."""
    _, parts = explained(impl, check, TWO)
    check.true(bool(mentioned(parts["tile_shapes"], "twice")), "the sum has a tile shape", parts["tile_shapes"])


@clause("RT-17-09")
@feature("graph-ir-text")
@pytest.mark.parametrize("plans", PLANS.values(), ids=PLANS)
def test_the_collective_plans_of_a_module_are_listed(impl, check, plans):
    """Those of its collectives, and no others; the text names their collectives and algorithms (AMB-COLL-85)."""
    operator = {"all_reduce": 'op="sum", '}
    issues = [
        (name, f'{operator.get(name, "")}axis="{axis}", algo="{algorithm}"')
        for name, axis, algorithm in (listed.values() for listed in plans)
    ]
    text, parts = explained(impl, check, module_text(*issues), at="graph")
    actual = [
        {name: collective_plan[name] for name in ("collective", "axis", "algorithm")}
        for collective_plan in parts["collective_plans"]
    ]
    check.equal(sorted(actual, key=str), sorted(plans, key=str), "the collective plans")
    for plan in plans:
        check.true(plan["collective"] in text and plan["algorithm"] in text, "the text names the plan", text)


@clause("RT-17-09")
def test_a_program_tells_the_plans_of_its_collectives(impl, check):
    """Two collectives along two axes have two plans, a program without collectives none."""
    source = """module m {
  mesh g = mesh<axes=[dp, tp], shape=[2, 2]>;
  kernel k(x: tensor<6xfp32>) {
    let a: tensor<6xfp32> = dist.all_reduce(x) @{axis=tp, op="sum"};
    let b: tensor<12xfp32> = dist.all_gather(x) @{axis=dp};
  }
}
"""
    text, parts = explained(impl, check, source)
    actual = [(collective_plan["collective"], collective_plan["axis"]) for collective_plan in parts["collective_plans"]]
    check.equal(sorted(actual), [("all_gather", "dp"), ("all_reduce", "tp")], "the plans and their axes")
    check.true("all_gather" in text and "all_reduce" in text, "the text names both", text)
    _, parts = explained(impl, check, ONE)
    check.equal(parts["collective_plans"], [], "the plans of a program without collectives")
