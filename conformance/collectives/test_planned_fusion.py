"""The planner: small tensors in one collective, scalings and casts beside one (2.4 and 8)."""

import pytest

from tessera_conformance.chapters.collectives.kit.plans import (
    awaits_of,
    chunks,
    in_order,
    planned,
)
from tessera_conformance.chapters.collectives.kit.programs import SUM, T, awaits, binary, issue, program, returns
from tessera_conformance.marks import clause, feature

pytestmark = feature("graph-ir-text")


# Fusion

SMALL = {"a": "3", "b": "5x2", "c": "7"}


def small(*lines, returned, chunk="1KiB", attributes=("sum", "sum", "sum"), collective="all_reduce"):
    """Collectives of three small tensors, then the lines that are given."""
    types = {name: f"tensor<{shape}xfp32>" for name, shape in SMALL.items()}
    first = [
        issue(f"%f{name}", f"%{name}", f'op="{op}", chunk={chunk}', collective)
        for name, op in zip(types, attributes, strict=True)
    ]
    gives = ", ".join(types[name] for name in returned)
    values = ", ".join(f"%r{name}" for name in returned)
    takes = ", ".join(f"%{name}: {held}" for name, held in types.items())
    waits = [awaits(f"%r{name}", f"%f{name}") for name in SMALL if not any(f"%r{name} =" in line for line in lines)]
    return program(*first, *lines, *waits, returns(values, gives), takes=takes, gives=gives)


@feature("fusion")
@clause("COLL-02.4-01")
def test_small_tensors_travel_together(impl, check):
    """One collective, whose parts are the tensors, each element once; each has its await (AMB-COLL-24, AMB-COLL-56)."""
    units = planned(impl, check, small(returned="abc"))
    (fused,) = chunks(units)
    check.equal(fused["chunk"], {"first": 0, "count": 20}, "the elements of the collective")
    parts = [(part["value"], part["first"], part["count"]) for part in fused["parts"]]
    check.equal(parts, [("%fa", 0, 3), ("%fb", 3, 10), ("%fc", 13, 7)], "the tensors in it")
    check.equal(fused["operands"], ["%a", "%b", "%c"], "what it is given")
    waits = awaits_of(units)
    check.equal([unit["results"] for unit in waits], [["%ra"], ["%rb"], ["%rc"]], "the awaits")
    check.true(all(in_order(units, fused, unit) for unit in waits), "each await waits for it", waits)


@feature("fusion")
@clause("COLL-02.4-01")
@pytest.mark.parametrize(
    ("attributes", "chunk", "counts"),
    [
        pytest.param(("sum", "max", "sum"), "1KiB", [10, 10], id="ops"),
        pytest.param(("sum", "sum", "sum"), "56", [13, 7], id="a-full-chunk"),
        pytest.param(("sum", "sum", "sum"), "72", [13, 7], id="two-of-three"),
        pytest.param(("sum", "sum", "sum"), "40", [10, 10], id="a-large-one-between"),
        pytest.param(("sum", "sum", "sum"), "12", [3, 3, 3, 3, 1, 3, 3, 1], id="none-is-small"),
    ],
)
def test_only_what_fits_travels_together(impl, check, attributes, chunk, counts):
    """Collectives of one op, together no larger than a chunk."""
    units = planned(impl, check, small(returned="abc", attributes=attributes, chunk=chunk))
    check.equal(sorted(unit["chunk"]["count"] for unit in chunks(units)), sorted(counts), "the elements of the units")
    covered = {}
    for unit in chunks(units):
        for name in unit["results"]:
            parts = {part["value"]: part["count"] for part in unit.get("parts", [])}
            covered[name] = covered.get(name, 0) + parts.get(name, unit["chunk"]["count"])
    check.equal(covered, {"%fa": 3, "%fb": 10, "%fc": 7}, "the elements of each tensor")


DIFFERENT = {
    "roots": ("broadcast", ("root=0", "root=1"), ("fp32", "fp32")),
    "dtypes": ("all_reduce", (SUM, SUM), ("fp32", "int32")),
    "wires": ("all_reduce", (SUM, f'{SUM}, dtype="bf16"'), ("fp32", "fp32")),
    "algorithms": ("all_reduce", (f'{SUM}, algo="ring"', f'{SUM}, algo="tree"'), ("fp32", "fp32")),
    "paths": ("all_reduce", (f'{SUM}, path="pcie"', f'{SUM}, path="nvlink"'), ("fp32", "fp32")),
}
"""A collective, and the attributes and the dtypes of two tensors, which one collective cannot have."""
GROUPS = {
    "axes": ('axis="dp"', 'axis="tp"'),
    "an-axis-and-the-mesh": ('axis="dp"', "subgroup=!tessera.shard<axes=[dp, tp]>"),
    "groups": ("subgroup=!tessera.shard<groups=[[0, 1], [2, 3]]>", "subgroup=!tessera.shard<groups=[[0, 3], [1, 2]]>"),
}
"""The attributes by which two collectives of one mesh have other ranks."""


@feature("fusion")
@clause("COLL-02.4-01")
@pytest.mark.parametrize(("collective", "attributes", "dtypes"), DIFFERENT.values(), ids=DIFFERENT)
def test_collectives_that_differ_travel_apart(impl, check, collective, attributes, dtypes):
    """Two small tensors, whose attributes or dtypes differ (AMB-COLL-56)."""
    types = [f"tensor<4x{dtype}>" for dtype in dtypes]
    issues = [
        issue(f"%f{name}", f"%{name}", f"{own}, chunk=1KiB", collective)
        for name, own, type_ in zip("ab", attributes, types, strict=True)
    ]
    takes, gives = f"%a: {types[0]}, %b: {types[1]}", ", ".join(types)
    waits = [awaits("%ra", "%fa"), awaits("%rb", "%fb")]
    units = planned(impl, check, program(*issues, *waits, returns("%ra, %rb", gives), takes=takes, gives=gives))
    check.equal(sorted(unit["results"] for unit in chunks(units)), [["%fa"], ["%fb"]], "the tensors of each collective")


@feature("fusion")
@clause("COLL-02.4-01", "COLL-02.2-03")
@pytest.mark.parametrize("collective", ["all_reduce", "broadcast"])
@pytest.mark.parametrize("attributes", GROUPS.values(), ids=GROUPS)
def test_collectives_of_other_ranks_travel_apart(impl, check, collective, attributes):
    """Two small tensors of one mesh of two by two, whose groups differ (AMB-COLL-56)."""
    operator = SUM if collective == "all_reduce" else "root=1"
    issues = [
        issue(f"%f{name}", f"%{name}", f"{operator}, {own}, chunk=1KiB", collective)
        for name, own in zip("ab", attributes, strict=True)
    ]
    takes, gives = f"%a: {T}, %b: {T}", f"{T}, {T}"
    lines = [*issues, awaits("%ra", "%fa"), awaits("%rb", "%fb"), returns("%ra, %rb", gives)]
    units = planned(impl, check, program(*lines, takes=takes, gives=gives, mesh="dp=2 tp=2"))
    check.equal(sorted(unit["results"] for unit in chunks(units)), [["%fa"], ["%fb"]], "the tensors of each collective")


@feature("fusion")
@clause("COLL-02.4-01")
def test_a_tensor_whose_value_is_used_before_the_next_travels_alone(impl, check):
    """Its consumer cannot wait for the others, the last of which depends on it."""
    type_ = "tensor<3xfp32>"
    lines = [
        issue("%f", "%x", f"{SUM}, chunk=1KiB"),
        issue("%g", "%x", f"{SUM}, chunk=1KiB"),
        awaits("%a", "%f"),
        binary("%b", "add", "%a", "%a", type_),
        issue("%h", "%b", f"{SUM}, chunk=1KiB"),
        awaits("%c", "%g"),
        awaits("%d", "%h"),
        returns("%c, %d", f"{type_}, {type_}"),
    ]
    units = planned(impl, check, program(*lines, takes=f"%x: {type_}", gives=f"{type_}, {type_}"))
    check.equal([unit["results"] for unit in chunks(units)], [["%f", "%g"], ["%h"]], "the collectives")


@feature("fusion")
@clause("COLL-02.4-01")
@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather", "all_to_all"])
def test_collectives_of_parts_are_not_joined(impl, check, collective):
    """A rank's part of two tensors is not a contiguous part of its share of both."""
    reduces = collective == "reduce_scatter"
    gives = {"reduce_scatter": "tensor<2xfp32>", "all_gather": "tensor<32xfp32>"}.get(collective, T)
    attributes = f"{SUM}, chunk=1KiB" if reduces else "chunk=1KiB"
    lines = [issue(f"%{name}", "%x", attributes, collective) for name in "fg"]
    lines += [awaits("%y", "%f"), awaits("%z", "%g"), returns("%y, %z", f"{gives}, {gives}")]
    units = planned(impl, check, program(*lines, gives=f"{gives}, {gives}"))
    check.equal([unit["results"] for unit in chunks(units)], [["%f"], ["%g"]], "the collectives")


# Folding


def cast(result, operand, to):
    """A conversion."""
    return f'{result} = "tessera.graph.cast"({operand}) {{dtype = "{to}"}}'


def folds(unit):
    """Return the operations that a collective's unit folds in."""
    return [(fold["kind"], fold["at"], fold["by"]) for fold in unit.get("folds", [])]


@feature("fusion")
@pytest.mark.parametrize(
    ("before_it", "behind_it", "expected"),
    [
        pytest.param("scale", None, [("scale", "before", "%s")], marks=clause("COLL-02.4-02"), id="scale-before"),
        pytest.param(None, "scale", [("scale", "after", "%s")], marks=clause("COLL-02.4-02"), id="scale-behind"),
        pytest.param(
            "scale",
            "scale",
            [("scale", "before", "%s"), ("scale", "after", "%s")],
            marks=clause("COLL-02.4-02"),
            id="scales",
        ),
        pytest.param("bf16", None, [("cast", "before", "bf16")], marks=clause("COLL-02.4-04"), id="cast-before"),
        pytest.param(
            "fp8_e4m3", None, [("cast", "before", "fp8_e4m3")], marks=clause("COLL-02.4-04"), id="cast-to-fp8"
        ),
        pytest.param(None, "bf16", [("cast", "after", "bf16")], marks=clause("COLL-02.4-04"), id="cast-behind"),
        pytest.param(
            "bf16",
            "fp32",
            [("cast", "before", "bf16"), ("cast", "after", "fp32")],
            marks=clause("COLL-02.4-04"),
            id="casts",
        ),
    ],
)
def test_a_scaling_or_cast_beside_a_collective_is_folded(impl, check, before_it, behind_it, expected):
    """It leaves the compute queue; operand and result of the collective are those beyond it (AMB-COLL-57)."""
    sent = "fp32" if before_it in (None, "scale") else before_it
    type_, source, lines = f"tensor<8x{sent}>", "%x", []
    if before_it is not None:
        scaled = f'%m = "tessera.graph.multiply"(%x, %s) : ({T}, fp32) -> {T}'
        lines.append(scaled if before_it == "scale" else cast("%m", "%x", before_it))
        source = "%m"
    lines += [issue("%f", source, SUM), awaits("%v", "%f")]
    gives, value = type_, "%v"
    if behind_it is not None:
        lines.append('%y = "tessera.graph.multiply"(%s, %v)' if behind_it == "scale" else cast("%y", "%v", behind_it))
        gives, value = type_ if behind_it == "scale" else f"tensor<8x{behind_it}>", "%y"
    text = program(*lines, returns(value, gives), takes=f"%x: {T}, %s: fp32", gives=gives)
    units = planned(impl, check, text)
    (unit,) = chunks(units)
    check.equal(folds(unit), expected, "what is folded")
    check.equal(unit["operands"], ["%x"], "what the collective is given")
    left = [kernel["op"] for kernel in units if kernel["queue"] == "compute"]
    check.equal(left[:1] + left[2:], ["tessera.await"], "what is left to compute, but the return")
    check.equal(awaits_of(units)[0]["results"], [value], "what is awaited")


OTHERS = {"reduce_scatter": (SUM, 4), "all_gather": ("", 16), "broadcast": ("root=0", 8)}
"""Other collectives: their attributes, and the elements that each of two ranks gets of eight."""


@feature("fusion")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("scale", marks=clause("COLL-02.4-02"), id="scale"),
        pytest.param("cast", marks=clause("COLL-02.4-04"), id="cast"),
    ],
)
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize(
    ("collective", "attributes", "count"), [(name, *row) for name, row in OTHERS.items()], ids=OTHERS
)
def test_a_scaling_or_cast_beside_another_collective_is_folded_too(
    impl, check, collective, attributes, count, place, kind
):
    """One that scatters, gathers or broadcasts folds as an all-reduce does (AMB-COLL-57)."""
    dtype = "bf16" if kind == "cast" else "fp32"

    def beside(result, operand):
        """The scaling or the cast."""
        scaled = f'{result} = "tessera.graph.multiply"({operand}, %s)'
        return scaled if kind == "scale" else cast(result, operand, "bf16")

    collected = [issue("%f", "%m" if place == "before" else "%x", attributes, collective)]
    collected.append(awaits("%v", "%f"))
    before = place == "before"
    lines = [beside("%m", "%x"), *collected] if before else [*collected, beside("%y", "%v")]
    value = "%v" if before else "%y"
    gives = f"tensor<{count}x{dtype}>"
    text = program(*lines, returns(value, gives), takes=f"%x: {T}, %s: fp32", gives=gives, mesh="dp=2")
    units = planned(impl, check, text)
    (unit,) = chunks(units)
    check.equal(folds(unit), [(kind, place, "%s" if kind == "scale" else "bf16")], "what is folded")
    left = [kernel["op"] for kernel in units if kernel["queue"] == "compute"]
    check.equal(left[:1] + left[2:], ["tessera.await"], "what is left to compute, but the return")


@feature("compression")
@pytest.mark.parametrize("wire", ["bf16", "fp8_e4m3", "fp16"])
@clause("COLL-02.4-03", "COLL-02.4-05")
def test_a_folded_cast_travels_narrow_and_adds_wide(impl, check, wire):
    """The narrow dtype is on the wire, the sum is in fp32 (AMB-COLL-06, AMB-COLL-57)."""
    lines = [cast("%m", "%x", wire), issue("%f", "%m", SUM), awaits("%v", "%f")]
    text = program(*lines, cast("%y", "%v", "fp32"), returns("%y"), gives=T)
    (unit,) = chunks(planned(impl, check, text))
    check.equal((unit["wire"], unit["reduces_in"]), (wire, "fp32"), "what travels, and in what is added")
    check.equal([kind for kind, _, _ in folds(unit)], ["cast", "cast"], "what is folded")


@feature("fusion")
@clause("COLL-02.4-02", "COLL-02.4-04")
def test_what_something_else_uses_is_not_folded(impl, check):
    """A product that is returned too stays in the compute queue, and so does one by another tensor, or a wider cast."""
    scale = f'%m = "tessera.graph.multiply"(%x, %s) : ({T}, fp32) -> {T}'
    takes = f"%x: {T}, %s: fp32"
    used = program(
        scale,
        issue("%f", "%m", SUM),
        awaits("%v", "%f"),
        returns("%v, %m", f"{T}, {T}"),
        takes=takes,
        gives=f"{T}, {T}",
    )
    wide = "tensor<8xfp64>"
    widened = program(
        cast("%m", "%x", "fp64"),
        issue("%f", "%m", SUM),
        awaits("%v", "%f"),
        returns("%v", wide),
        takes=takes,
        gives=wide,
    )
    product = program(
        binary("%m", "multiply", "%x", "%x"), issue("%f", "%m", SUM), awaits("%v", "%f"), returns("%v"), takes=takes
    )
    twice = program(
        issue("%f", "%x", SUM),
        awaits("%v", "%f"),
        f'%y = "tessera.graph.multiply"(%v, %s) : ({T}, fp32) -> {T}',
        binary("%z", "add", "%y", "%v"),
        returns("%z"),
        takes=takes,
    )
    for text, value in ((used, "%m"), (widened, "%m"), (product, "%m"), (twice, "%y")):
        units = planned(impl, check, text)
        made = [unit["op"] for unit in units if unit["queue"] == "compute" and value in unit["results"]]
        check.equal(len(made), 1, f"the units that compute {value}")
        check.equal([folds(unit) for unit in chunks(units)], [[]], "what is folded")
