"""The plans of a module: one of every collective of its program (runtime spec 8.1, collectives spec 3.1 and 8)."""

from __future__ import annotations

import pytest

from tessera_conformance.chapters.runtime.kit.mesh_session import compiled
from tessera_conformance.chapters.runtime.kit.planned_modules import module_text
from tessera_conformance.marks import clause, feature

pytestmark = feature("image-inspection")

ALGORITHMS = ("auto", "ring", "tree", "halving_doubling", "hierarchical", "direct")
SUM = 'op="sum", '

DSL = """module m {{
  mesh g = mesh<axes=[dp, tp], shape=[2, 3]>;
  func helper(x: tensor<6xfp32>) -> tensor<6xfp32> {{ {helper} return x; }}
  kernel k(x: tensor<6xfp32>) {{ {kernel} }}
}}
"""
REDUCED = 'let {0}: tensor<6xfp32> = dist.all_reduce(x) @{{axis={1}, op="sum"}};'
GATHERED = "let {0}: tensor<{2}xfp32> = dist.all_gather(x) @{{axis={1}}};"
PLAIN = {
    "none": ("", "", []),
    "one": ("", REDUCED.format("a", "dp"), [("all_reduce", "dp")]),
    "two-axes": (
        "",
        REDUCED.format("a", "tp") + REDUCED.format("b", "dp"),
        [("all_reduce", "tp"), ("all_reduce", "dp")],
    ),
    "two-collectives": (
        "",
        GATHERED.format("a", "tp", 18) + REDUCED.format("b", "tp"),
        [("all_gather", "tp"), ("all_reduce", "tp")],
    ),
    "in-a-function": (
        GATHERED.format("a", "dp", 12),
        REDUCED.format("b", "tp"),
        [("all_gather", "dp"), ("all_reduce", "tp")],
    ),
    "every-collective": (
        "",
        REDUCED.format("a", "dp")
        + 'let b: tensor<3xfp32> = dist.reduce_scatter(x) @{axis=dp, op="max"};'
        + GATHERED.format("c", "dp", 12)
        + "let d: tensor<6xfp32> = dist.broadcast(x) @{axis=tp, root=1};"
        + "let e: tensor<6xfp32> = dist.all_to_all(x) @{axis=tp};",
        [
            ("all_reduce", "dp"),
            ("reduce_scatter", "dp"),
            ("all_gather", "dp"),
            ("broadcast", "tp"),
            ("all_to_all", "tp"),
        ],
    ),
}


def plans(impl, check, source, **options):
    """The plans that the image of a program carries."""
    image = compiled(impl, check, source, **options)
    return check.returns(impl.abi.inspect(image=image))["collective_plans"]


def text_plans(impl, check, *collectives, **named):
    """Those of a module of Graph IR with these collectives."""
    return plans(impl, check, module_text(*collectives, **named), at="graph")


@clause("RT-08.1-10")
@pytest.mark.parametrize(("helper", "kernel", "expected"), PLAIN.values(), ids=PLAIN)
def test_every_collective_of_a_program_has_its_plan(impl, check, helper, kernel, expected):
    """Along its axis, in the order of the text; a program without collectives has none (AMB-COLL-85)."""
    actual = plans(impl, check, DSL.format(helper=helper, kernel=kernel))
    check.equal([(plan["collective"], plan["axis"]) for plan in actual], expected, "the collectives and their axes")
    check.true(all(plan["algorithm"] in ALGORITHMS for plan in actual), "each has an algorithm", actual)


@clause("RT-08.1-10")
@feature("graph-ir-text")
@pytest.mark.parametrize("algorithm", ALGORITHMS[1:])
def test_a_plan_has_the_algorithm_that_the_program_says(impl, check, algorithm):
    """The algorithm that a program states for a collective is in the plan of that collective alone."""
    other = "tree" if algorithm == "ring" else "ring"
    actual = text_plans(
        impl,
        check,
        ("all_reduce", f'{SUM}axis="dp", algo="{algorithm}"'),
        ("all_gather", f'axis="dp", algo="{other}"'),
    )
    expected = [("all_reduce", "dp", algorithm), ("all_gather", "dp", other)]
    check.equal([(plan["collective"], plan["axis"], plan["algorithm"]) for plan in actual], expected, "the plans")


@clause("RT-08.1-10")
@feature("graph-ir-text")
@pytest.mark.parametrize(
    ("attribute", "member", "value"),
    [
        ("chunk=512KiB", "chunk_bytes", 524288),
        ("chunk_bytes=1000", "chunk_bytes", 1000),
        ('path="rdma"', "path", "rdma"),
        ('scope="node"', "scope", "node"),
        ("priority=3", "priority", 3),
        ("priority=-1", "priority", -1),
        ('qos="bulk"', "qos", "bulk"),
        ("overlap=2", "overlap", 2),
        ('dtype="bf16"', "wire", "bf16"),
        ('dtype="fp8"', "wire", "fp8_e4m3"),
    ],
)
def test_a_plan_carries_what_the_program_says(impl, check, attribute, member, value):
    """An attribute of the collective is in its plan, and in no other (AMB-COLL-85)."""
    actual = text_plans(impl, check, ("all_reduce", f'{SUM}axis="dp", {attribute}'), ("all_reduce", f'{SUM}axis="tp"'))
    check.equal([plan["axis"] for plan in actual], ["dp", "tp"], "the axes of the plans")
    check.equal([plan.get(member) for plan in actual], [value, None], f"what the plans say of {member}")


@clause("RT-08.1-10")
@feature("graph-ir-text")
def test_a_plan_says_who_meets(impl, check):
    """All axes are the whole mesh; a part of them, or groups, are a subgroup, which is no axis (AMB-COLL-85)."""
    subgroups = ["axes=[dp, tp, pp]", "axes=[dp, pp]", "groups=[[0, 3], [1, 2]]", "axes=[tp]"]
    issues = [("all_reduce", f"{SUM}subgroup=!tessera.shard<{subgroup}>") for subgroup in subgroups]
    actual = text_plans(impl, check, *issues, mesh="dp=2 tp=2 pp=2")
    check.equal([plan["axis"] for plan in actual], [None, None, None, "tp"], "the axes of the plans")
    told = [plan.get("subgroup") is not None for plan in actual]
    check.equal(told, [False, True, True, False], "which plans name a subgroup")


@clause("RT-08.1-10", "COLL-03.1-01", "COLL-03.1-04")
@feature("graph-ir-text", "auto-algorithm")
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter", "broadcast"])
@pytest.mark.parametrize("algo", ["", ', algo="auto"'], ids=["left-out", "auto"])
def test_where_the_program_leaves_it_open_the_table_by_size_decides(impl, check, collective, algo):
    """The one of `collectives.select`, by the bytes of the full buffer (AMB-COLL-86)."""
    attributes = f'axis="dp"{algo}' if collective in ("all_gather", "broadcast") else f'{SUM}axis="dp"{algo}'
    parts = 8 if collective == "all_gather" else 1
    for elements in (8, 512, 520, 4096, 4104, 32768, 262144, 262152, 4194304):
        (actual,) = text_plans(impl, check, (collective, attributes), type_=f"tensor<{elements}xfp32>")
        size = 4 * elements * parts
        selected = check.returns(impl.collectives.select(collective=collective, bytes=size, ranks=8))["algorithm"]
        check.equal(actual["algorithm"], selected, f"the algorithm for {size} bytes")


@clause("RT-08.1-10")
@feature("graph-ir-text")
def test_where_the_size_is_not_known_the_runtime_decides(impl, check):
    """A dimension with a name: the plan leaves the algorithm open, unless the program says it (AMB-COLL-86)."""
    source = """module m {
  mesh g = mesh<axes=[dp], shape=[8]>;
  kernel k(x: tensor<Nxfp32>, N: int32) { let a: tensor<Nxfp32> = dist.all_reduce(x) @{axis=dp, op="sum"}; }
}
"""
    (actual,) = plans(impl, check, source)
    check.equal((actual["axis"], actual["algorithm"]), ("dp", "auto"), "the plan of an open size")
