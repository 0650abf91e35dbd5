"""Collectives of the dialect yield futures, and tessera.await their values: text, types, attributes (2, 3.2, 8, 9)."""

import pytest

from tessera_conformance.chapters.collectives.kit.programs import (
    FIRST_LINE,
    SUM,
    T,
    awaits,
    issue,
    operations,
    plain,
    program,
    returns,
    told,
)
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected, Returned

pytestmark = feature("graph-ir-text")

PART = "tensor<2xfp32>"
WHOLE = "tensor<32xfp32>"
REFUSED = ("distributed", "types", "numerics", "syntax")
"""Bad attributes are of no single category: what refuses them is the dialect, its types or its syntax."""


def awaited(attributes=SUM, collective="all_reduce", gives=T, mesh="dp=4", type_=None):
    """One collective, awaited and returned."""
    lines = [issue("%f", "%x", attributes, collective, type_), awaits("%y", "%f"), returns("%y", gives)]
    return program(*lines, gives=gives, mesh=mesh)


# Futures

COLLECTIVES = {
    "all_reduce": pytest.param("all_reduce", SUM, T, marks=clause("COLL-02.1-01", "COLL-08-15")),
    "reduce_scatter": pytest.param(
        "reduce_scatter", SUM, PART, marks=clause("COLL-02.1-01", "COLL-02.1-04", "COLL-08-15")
    ),
    "all_gather": pytest.param("all_gather", "chunk=2MiB", WHOLE, marks=clause("COLL-02.1-01", "COLL-09.2-02")),
    "broadcast": pytest.param("broadcast", "root=2", T, marks=clause("COLL-02.1-01", "COLL-08-15")),
    "all_to_all": pytest.param("all_to_all", "", T, marks=clause("COLL-02.1-01", "COLL-08-15")),
}


@pytest.mark.parametrize(("collective", "attributes", "gives"), COLLECTIVES.values(), ids=COLLECTIVES)
def test_a_collective_yields_a_future_of_what_each_rank_will_have(impl, check, collective, attributes, gives):
    """!tessera.future<T>, from which tessera.await makes a T; the type after a colon is the operand's (AMB-COLL-15)."""

    def observed(type_):
        return impl.collectives.read(text=awaited(attributes, collective, gives, type_=type_))

    for type_ in (None, T):
        if type_ and isinstance(observed(type_), Rejected):
            of_results = [observed(result) for result in (gives, f"!tessera.future<{gives}>")]
            takes_result = any(isinstance(observation, Returned) for observation in of_results)
            check.reading("AMB-COLL-15", "the result type", takes_result)
        answer = told(impl, check, awaited(attributes, collective, gives, type_=type_))
        (issued,) = operations(answer, f"tessera.collective.{collective}")
        check.equal([plain(type_) for type_ in issued["operand_types"]], [T], "the type of the operand")
        check.equal([plain(type_) for type_ in issued["result_types"]], [f"future<{gives}>"], "the type of the result")


@clause("COLL-02.1-05")
@pytest.mark.parametrize("type_text", [T, "fp32", "tensor<?x3xbf16>", "tensor<4x2xfp32; layout=col_major>"])
def test_await_takes_a_future_and_yields_its_value(impl, check, type_text):
    """The value is a tensor in any layout, or a scalar; the types may be left out or stated."""
    for signature in ("", f" : (!tessera.future<{type_text}>) -> {type_text}", f" : {type_text}"):
        lines = [issue("%f", "%x", SUM), awaits("%y", "%f") + signature, returns("%y", type_text)]
        answer = told(impl, check, program(*lines, takes=f"%x: {type_text}", gives=type_text))
        (actual,) = operations(answer, "tessera.await")
        check.equal(
            [plain(type_) for type_ in actual["operand_types"]], [f"future<{plain(type_text)}>"], "what it takes"
        )
        check.equal([plain(type_) for type_ in actual["result_types"]], [plain(type_text)], "what it yields")


@clause("COLL-02.1-05")
def test_only_a_future_is_awaited(impl, check):
    """An await of a tensor, which is there already, is refused."""
    check.accepts(impl.language.verify_ir(text=awaited()))
    text = program(issue("%f", "%x", SUM), awaits("%y", "%x"), returns("%y"))
    check.rejects(impl.language.verify_ir(text=text), category="types", at_line=FIRST_LINE + 1)


@clause("COLL-02.1-01", "COLL-08-15")
@pytest.mark.parametrize("use", ['"tessera.graph.exp"', '"tessera.graph.relu"', "tessera.collective.broadcast"])
def test_a_future_is_no_tensor(impl, check, use):
    """An operation that uses the value of a future without awaiting it is refused; the twin awaits it."""
    future = "!tessera.future<tensor<8xfp32>>"
    last = awaits("%y", "%g") if "collective" in use else '%y = "tessera.graph.exp"(%g)'
    good = program(issue("%f", "%x", SUM), awaits("%v", "%f"), f"%g = {use}(%v)", last, returns("%y"))
    check.accepts(impl.language.verify_ir(text=good))
    bad = program(issue("%f", "%x", SUM), awaits("%v", "%f"), f"%g = {use}(%f)", last, returns("%y"))
    check.rejects(impl.language.verify_ir(text=bad), category="types", at_line=FIRST_LINE + 2)
    stated = program(issue("%f", "%x", SUM), f'%y = "tessera.graph.exp"(%f) : ({future}) -> {T}', returns("%y"))
    check.rejects(impl.language.verify_ir(text=stated), category="types", at_line=FIRST_LINE + 1)


@clause("COLL-02.1-01")
def test_a_future_is_returned_by_no_tensor_result(impl, check):
    """The signature says T: the future of a T does not fit it."""
    check.accepts(impl.language.verify_ir(text=awaited()))
    text = program(issue("%f", "%x", SUM), '"tessera.graph.return"(%f)')
    check.rejects(impl.language.verify_ir(text=text), category=("types", "shapes"))


@clause("COLL-02.1-04", "COLL-02.1-01")
@pytest.mark.parametrize("stated", [f"!tessera.future<{T}>", PART], ids=["future-of-another", "no-future"])
def test_the_stated_type_is_the_one_that_results(impl, check, stated):
    """A reduce_scatter over four ranks gives a future of a quarter, and neither of the whole nor the quarter itself."""
    form = f'%f = "tessera.collective.reduce_scatter"(%x) {{op = "sum"}} : ({T}) -> '
    legal = program(f"{form}!tessera.future<{PART}>", awaits("%y", "%f"), returns("%y", PART), gives=PART)
    check.accepts(impl.language.verify_ir(text=legal))
    other = program(form + stated, awaits("%y", "%f"), returns("%y", PART), gives=PART)
    check.rejects(impl.language.verify_ir(text=other), category=("types", "shapes"), at_line=FIRST_LINE)


@clause("COLL-03.2-04")
@pytest.mark.parametrize("algorithm", ["tree", "halving_doubling", "hierarchical"])
def test_an_all_to_all_by_an_algorithm_that_it_does_not_have_is_refused(impl, check, algorithm):
    """Blocks go directly or around a ring (AMB-COLL-34); an all_reduce has the others."""
    check.accepts(impl.language.verify_ir(text=awaited(f'{SUM}, algo="{algorithm}"')))
    for known in ("auto", "ring", "direct"):
        check.accepts(impl.language.verify_ir(text=awaited(f'algo="{known}"', "all_to_all")))
    text = awaited(f'algo="{algorithm}"', "all_to_all")
    check.rejects(impl.language.verify_ir(text=text), category="distributed", at_line=FIRST_LINE)


@clause("COLL-02.1-04")
@pytest.mark.parametrize("collective", ["all_reduce", "reduce_scatter"])
def test_a_reduction_says_what_it_computes(impl, check, collective):
    """op is one of those that there are, and sum where it is left out (AMB-COLL-101)."""
    gives = PART if collective == "reduce_scatter" else T
    for op in ("sum", "prod", "max", "min", "mean"):
        check.accepts(impl.language.verify_ir(text=awaited(f'op="{op}"', collective, gives)))
    for attributes in ('op="summ"', "op=1"):
        text = awaited(attributes, collective, gives)
        check.rejects(impl.language.verify_ir(text=text), category=REFUSED, at_line=FIRST_LINE)
    answer = impl.language.verify_ir(text=awaited("chunk=1MiB", collective, gives))
    check.reading("AMB-COLL-101", "op is required", isinstance(answer, Rejected))
    check.accepts(answer, "a reduction without op")


# Along which axis

LINES = {"dp=4": True, "dp=1 tp=4": True, "dp=4 tp=1": True, "dp=2 tp=2": False, "dp=1 tp=1": False}


@clause("COLL-02.1-04")
@pytest.mark.parametrize(("mesh", "legal"), LINES.items())
def test_an_axis_is_required_unless_one_alone_has_several_ranks(impl, check, mesh, legal):
    """AMB-COLL-02; with an axis, or a subgroup, every mesh will do."""
    size = next((int(extent[3:]) for extent in mesh.split() if extent[3:] != "1"), 1)
    part = f"tensor<{8 // size}xfp32>"
    for more in (', axis="dp"', ", subgroup=!tessera.shard<axes=[dp]>"):
        first = int(mesh[3])
        text = awaited(SUM + more, "reduce_scatter", f"tensor<{8 // first}xfp32>", mesh)
        check.accepts(impl.language.verify_ir(text=text))
    observed = impl.language.verify_ir(text=awaited(SUM, "reduce_scatter", part, mesh))
    if legal:
        check.accepts(observed)
    else:
        check.reading("AMB-COLL-02", "whole mesh by default", isinstance(observed, Returned))
        check.rejects(observed, category="distributed", at_line=FIRST_LINE)


@clause("COLL-02.1-04")
def test_an_axis_is_one_of_the_mesh(impl, check):
    """A collective over an axis that the mesh lacks is refused; its twin names one that the mesh has."""
    check.accepts(impl.language.verify_ir(text=awaited(SUM + ', axis="dp"')))
    text = awaited(SUM + ', axis="pd"')
    check.rejects(impl.language.verify_ir(text=text), category="distributed", at_line=FIRST_LINE)


@feature("subgroups")
@clause("COLL-02.2-03")
@pytest.mark.parametrize(
    ("shard", "ranks"),
    [("axes=[tp]", 3), ("axes=[dp, tp]", 6), ("axes=[tp, dp]", 6), ("groups=[[0, 5], [2, 1]]", 2), ("groups=[[4]]", 1)],
)
def test_a_subgroup_is_a_type_that_says_who_meets(impl, check, shard, ranks):
    """A shard of axes or of groups (AMB-COLL-11, AMB-COLL-51): a gather gives as many parts as a group has ranks."""
    attributes = f"subgroup=!tessera.shard<{shard}>"
    gives = f"tensor<{8 * ranks}xfp32>"
    answer = told(impl, check, awaited(attributes, "all_gather", gives, "dp=2 tp=3"))
    (issued,) = operations(answer, "tessera.collective.all_gather")
    check.equal(plain(issued["attributes"]["subgroup"]), plain(f"shard<{shard}>"), "the subgroup")


@feature("subgroups")
@clause("COLL-02.2-03")
@pytest.mark.parametrize(
    "attributes",
    [
        "subgroup=!tessera.shard<axes=[pp]>",
        "subgroup=!tessera.shard<axes=[tp, tp]>",
        "subgroup=!tessera.shard<axes=[]>",
        "subgroup=!tessera.shard<groups=[[0, 6]]>",
        "subgroup=!tessera.shard<groups=[[0, 1], [1, 2]]>",
        "subgroup=!tessera.shard<groups=[[0, 1], [2]]>",
        "subgroup=!tessera.shard<dp>",
        'subgroup="tp"',
        'subgroup=!tessera.shard<axes=[tp]>, axis="tp"',
    ],
    ids=["no-axis", "twice", "empty", "no-rank", "two-groups", "uneven", "no-form", "no-type", "axis-too"],
)
def test_a_subgroup_that_says_nothing_is_refused(impl, check, attributes):
    """Axes and ranks of the mesh, each once, groups of one size, and no axis beside it."""
    legal = awaited(f"{SUM}, subgroup=!tessera.shard<axes=[tp]>", mesh="dp=2 tp=3")
    check.accepts(impl.language.verify_ir(text=legal))
    text = awaited(f"{SUM}, {attributes}", mesh="dp=2 tp=3")
    check.rejects(impl.language.verify_ir(text=text), category=REFUSED, at_line=FIRST_LINE)


# Attributes


def keeps(clauses, name, *values, features=()):
    """An attribute with values that are accepted and kept; those of a chunk as bytes."""
    marks = [clause(*clauses), *([feature(*features)] if features else [])]
    return [pytest.param(name, text, value, marks=marks, id=f"{name}-{text}") for text, value in values]


def words(*arguments):
    """Texts in quotes and what they say."""
    return [(f'"{word}"', word) for word in arguments]


KIB = 1024
KEPT = [
    *keeps(("COLL-08-01", "COLL-02.3-07"), "chunk", ("512KiB", 512 * KIB), ("1KiB", KIB)),
    *keeps(("COLL-08-01",), "chunk", ("1MiB", KIB**2), ("2MiB", 2 * KIB**2), ("1000", 1000), ("1048577", 1048577)),
    *keeps(("COLL-08-01",), "chunk", ("1.5MiB", 3 * KIB**2 // 2), ("1GiB", KIB**3), ("512B", 512)),
    *keeps(("COLL-08-01",), "chunk_bytes", ("512KiB", 512 * KIB), ("4096", 4096)),
    *keeps(("COLL-08-02",), "algo", *words("auto", "ring", "tree")),
    *keeps(("COLL-03.2-04",), "algo", *words("auto", "ring"), features=["auto-algorithm"]),
    *keeps(("COLL-08-03",), "path", *words("auto")),
    *keeps(("COLL-03.2-05",), "path", *words("auto", "nvlink", "pcie"), features=["auto-transport"]),
    *keeps(("COLL-08-04",), "scope", *words("node")),
    *keeps(("COLL-02.2-05",), "scope", *words("intra_sm"), features=["scopes"]),
    *keeps(("COLL-02.2-06",), "scope", *words("intra_gpu"), features=["scopes"]),
    *keeps(("COLL-02.2-07",), "scope", *words("node"), features=["scopes"]),
    *keeps(("COLL-02.2-08",), "scope", *words("rack"), features=["scopes"]),
    *keeps(("COLL-08-05",), "dtype", *words("bf16")),
    *keeps(("COLL-02.5-06",), "dtype", *words("bf16"), features=["compression"]),
    *keeps(("COLL-02.5-07",), "dtype", *words("fp16"), features=["compression"]),
    *keeps(("COLL-02.5-08",), "dtype", *words("fp8"), features=["compression"]),
    *keeps(("COLL-08-06",), "priority", ("3", 3), ("-1", -1), ('"high"', "high")),
    *keeps(("COLL-08-07",), "overlap", ("true", True), ("false", False), ('"next"', "next")),
    *keeps(("COLL-08-08",), "qos", ('"gold"', "gold"), ("2", 2), ("0.5", 0.5)),
]


@pytest.mark.parametrize(("name", "text", "value"), KEPT)
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather"])
def test_an_attribute_is_accepted_and_kept(impl, check, collective, name, text, value):
    """Read, printed and read again it has its value (AMB-COLL-01, AMB-COLL-19)."""
    reduces = collective == "all_reduce"
    attributes = ", ".join([*([SUM] if reduces else []), f"{name}={text}"])
    answer = told(impl, check, awaited(attributes, collective, T if reduces else WHOLE))
    (issued,) = operations(answer, f"tessera.collective.{collective}")
    check.equal(issued["attributes"].get(name), value, f"the attribute {name}")


HINTS = {"chunk": ("1KiB", KIB), "algo": ('"auto"', "auto"), "path": ('"auto"', "auto"), "scope": ('"node"', "node")}
HINTS |= {"dtype": ('"bf16"', "bf16"), "priority": ("3", 3), "overlap": ("true", True), "qos": ('"gold"', "gold")}
"""Each attribute of section 8 with a value, as it is written and as it is kept."""


@clause(*(f"COLL-08-0{number}" for number in range(1, 9)))
@pytest.mark.parametrize(
    ("collective", "own", "gives"), [collective.values for collective in COLLECTIVES.values()], ids=list(COLLECTIVES)
)
def test_every_collective_takes_the_attributes_of_the_list(impl, check, collective, own, gives):
    """Each collective takes all of them together, with the attributes of its own (AMB-COLL-19)."""
    hints = [f"{name}={text}" for name, (text, _) in HINTS.items() if f"{name}=" not in own]
    answer = told(impl, check, awaited(", ".join(filter(None, [own, *hints])), collective, gives))
    (issued,) = operations(answer, f"tessera.collective.{collective}")
    kept = {name: issued["attributes"].get(name) for name in HINTS if f"{name}=" not in own}
    check.equal(kept, {name: HINTS[name][1] for name in kept}, "the attributes")


def refused(clauses, *attributes, features=()):
    """Attributes that are refused."""
    marks = [clause(*clauses), *([feature(*features)] if features else [])]
    ids = [f"{clauses[0]}-{place}-{text.partition('=')[0]}" for place, text in enumerate(attributes)]
    return [pytest.param(text, marks=marks, id=name) for text, name in zip(attributes, ids, strict=True)]


WORD = [
    "chunk=0",
    "chunk=-4096",
    "chunk=0KiB",
    "chunk=1MB",
    "chunk=1kib",
    "chunk=1.5",
    "chunk=0.3KiB",
    'chunk="big"',
    "chunk=true",
]
WRONG_UNITS = ["chunk=4096, chunk_bytes=4KB", "chunk=1MiB, chunk_bytes=1MB"]
BOTH = ["chunk=1MiB, chunk_bytes=1000000", "chunk=512KiB, chunk_bytes=512000"]
"""Two numbers of bytes."""
WIRES = ["int8", "fp32", "fp64", "fp4", "BF16", "fp8_e3m4"]
THOUSANDS = {"chunk=1MB": 10**6, "chunk=512KB": 512_000}
"""Sizes in units that are none, as numbers of bytes in decimal units."""
SET_OF_SCOPES = 'scope=["node"]'
SCOPES = ["nodes", "NODE", "", "intra_sm, node"]
REFUSALS = [
    *refused(
        ("COLL-02.2-01",), *(f'scope="{scope}"' for scope in SCOPES), "scope=1", SET_OF_SCOPES, features=["scopes"]
    ),
    *refused(("COLL-02.5-01",), *(f'dtype="{wire}"' for wire in WIRES), "dtype=16", features=["compression"]),
    *refused(("COLL-03.2-04",), 'algo="rings"', 'algo=""', "algo=true", features=["auto-algorithm"]),
    *refused(("COLL-03.2-05",), 'path="wire"', "path=0", features=["auto-transport"]),
    *refused(("COLL-08-01",), *WORD, *WRONG_UNITS, BOTH[0]),
    *refused(("COLL-02.3-07",), "chunk=512KB", "chunk=512KiBs", BOTH[1]),
    *refused(("COLL-08-02",), 'algo="quickest"'),
    *refused(("COLL-08-03",), 'path="quickest"'),
    *refused(("COLL-08-04",), 'scope="galaxy"'),
]


@pytest.mark.parametrize("attributes", REFUSALS)
def test_a_value_that_an_attribute_does_not_have_is_refused(impl, check, attributes):
    """At the line of the collective; the same collective without it is legal (AMB-COLL-01)."""
    check.accepts(impl.language.verify_ir(text=awaited(SUM)))
    answer = impl.language.verify_ir(text=awaited(f"{SUM}, {attributes}"))
    if isinstance(answer, Returned):
        check.reading("AMB-COLL-01", "different attributes", attributes in BOTH)
        check.reading("AMB-COLL-11", "a set of scopes", attributes == SET_OF_SCOPES)
        if attributes in THOUSANDS:
            (issued,) = operations(told(impl, check, awaited(f"{SUM}, {attributes}")), "tessera.collective.all_reduce")
            follows = issued["attributes"].get("chunk") == THOUSANDS[attributes]
            check.reading("AMB-COLL-35", "KB is 1000", follows)
    check.rejects(answer, category=REFUSED, at_line=FIRST_LINE)


@clause("COLL-08-01")
def test_two_names_of_a_chunk_may_say_the_same(impl, check):
    """`chunk` and `chunk_bytes` may both be given if they are equal: 1MiB is 1048576 bytes (AMB-COLL-01)."""
    answer = told(impl, check, awaited(f"{SUM}, chunk=1MiB, chunk_bytes=1048576"))
    (issued,) = operations(answer, "tessera.collective.all_reduce")
    given = {issued["attributes"].get(name, 1048576) for name in ("chunk", "chunk_bytes")}
    check.equal(sorted(given), [1048576], "the bytes of a chunk")


EVERYTHING = 'op="sum", chunk=1MiB, dtype="bf16", algo="auto", path="auto", scope="node"'


@clause("COLL-09.1-01")
def test_the_example_carries_six_attributes(impl, check):
    """Section 9.1 as printed, attributes on their own line, comments by ; and // (AMB-COLL-12, AMB-COLL-16)."""
    text = program(
        '%dw = "tessera.graph.matmul"(%x, %y) : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xbf16>',
        "%f       = tessera.collective.all_reduce %dw ",
        f"        {{{EVERYTHING}}}",
        "; ... compute next tile ...",
        "%dw_red  = tessera.await %f  // the sum",
        returns("%dw_red", "tensor<4x4xbf16>"),
        takes="%x: tensor<4x8xbf16>, %y: tensor<8x4xbf16>",
        gives="tensor<4x4xbf16>",
    )
    answer = told(impl, check, text)
    (issued,) = operations(answer, "tessera.collective.all_reduce")
    expected = {"op": "sum", "chunk": 1048576, "dtype": "bf16", "algo": "auto", "path": "auto", "scope": "node"}
    check.equal({name: issued["attributes"].get(name) for name in expected}, expected, "the attributes of the example")


@clause("COLL-09.2-02")
def test_the_gather_of_the_pair_has_a_chunk_and_no_op(impl, check):
    """Section 9.2: an op, which a gather does not have, is refused."""
    text = awaited("chunk=2MiB", "all_gather", WHOLE)
    (issued,) = operations(told(impl, check, text), "tessera.collective.all_gather")
    check.equal(issued["attributes"].get("chunk"), 2 << 20, "the chunk")
    check.true("op" not in issued["attributes"], "no op", issued["attributes"])
    check.rejects(
        impl.language.verify_ir(text=awaited('chunk=2MiB, op="sum"', "all_gather", WHOLE)),
        category=REFUSED,
        at_line=FIRST_LINE,
    )
