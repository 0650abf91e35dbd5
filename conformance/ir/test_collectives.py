"""Collectives in the language and in Graph IR, without running them (language spec, sections 2, 4, 5, 9 and 15)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import graph_of, syntax_twins, tensor_type, verified_twins
from tessera_conformance.dsl import func, module
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected, Returned

MESH = "  mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;"
UNDECLARED = ("distributed", "types")
"""Categories in which a missing or unknown axis or op may be reported."""
VECTOR = "tensor<4xfp32>"
ALL_REDUCE = "tessera.graph.all_reduce"


def meshed(*statements, parameters=f"X: {VECTOR}", result=VECTOR):
    """A module with a mesh and one function."""
    return module(MESH, func(*statements, parameters=parameters, result=result))


def reducing(arguments="X", attributes='axis=dp, op="sum"'):
    """A function that returns an all-reduce."""
    return meshed(f"return dist.all_reduce({arguments}) @{{{attributes}}};")


# Spelling


@clause("LANG-02-05")
def test_a_collective_is_called_behind_dist_and_a_point(impl, check):
    """It becomes the operation of Graph IR."""
    graph = graph_of(impl, check, reducing())
    check.equal(len(graph.named(ALL_REDUCE)), 1, f"the number of {ALL_REDUCE}")


@clause("LANG-02-05")
@pytest.mark.parametrize("callee", ["all_reduce", "op.all_reduce", "g.all_reduce", "dp.all_reduce", "dist.all.reduce"])
def test_a_collective_under_another_prefix_is_unknown(impl, check, callee):
    """The prefix is dist; nothing else, and not none, will do."""
    source = meshed('return dist.all_reduce(X) @{axis=dp, op="sum"};')
    verified_twins(impl, check, source, source.replace("dist.all_reduce", callee), ("types", "distributed", "syntax"))


@clause("LANG-02-05", "LANG-02.3-44")
@pytest.mark.parametrize(
    "call",
    ["dist all_reduce(X)", "dist..all_reduce(X)", "dist.(X)", "dist(X)", ".all_reduce(X)", "dist.all_reduce X"],
    ids=["no-point", "two-points", "no-name", "no-member", "no-prefix", "no-parentheses"],
)
@pytest.mark.parametrize("place", ["{};", "return {};"], ids=["statement", "value"])
def test_a_dist_call_of_another_form_is_refused(impl, check, call, place):
    """dist, a point, a name, arguments in parentheses."""
    syntax_twins(impl, check, meshed(place.format("dist.all_reduce(X)")), meshed(place.format(call)))


@clause("LANG-02.3-44")
@pytest.mark.parametrize(
    "call",
    [
        'dist.all_reduce(X, axis=dp, op="sum")',
        'dist.all_reduce(X, axis="dp", op=sum)',
        'dist.all_reduce(X) @{axis="dp", op="sum"}',
        'dist.all_reduce(X, op="sum") @{axis="dp"}',
        'dist.all_reduce(X, axis=dp, op="sum") @{axis=dp}',
    ],
    ids=["arguments", "words-exchanged", "attributes", "both", "twice"],
)
def test_a_dist_statement_has_arguments_and_attributes(impl, check, call):
    """Axis and op as keyword arguments or in the attribute block (AMB-LANG-14, AMB-LANG-100), also as a value."""
    answer = impl.language.verify(source=meshed(f"{call};", "return X;"))
    keyword = isinstance(answer, Rejected) and answer.phase == "parse" and "=" in call.partition("@")[0]
    check.reading("AMB-LANG-14", "attribute block only", keyword)
    check.accepts(answer, "as a statement")
    check.accepts(impl.language.verify(source=meshed(f"return {call};")), "as a value")


@clause("LANG-02.3-44")
@pytest.mark.parametrize(
    "statement",
    [
        "dist.all_reduce(X)",
        "dist.all_reduce(X,);",
        "dist.all_reduce(X;",
        "dist.all_reduce(X) {axis=dp};",
        "dist.all_reduce(X) @axis=dp;",
        "dist.all_reduce(axis=dp, X);",
    ],
    ids=["no-semicolon", "comma-behind", "open", "no-at", "no-braces", "keyword-first"],
)
def test_a_dist_statement_of_another_form_is_refused(impl, check, statement):
    """Arguments, optional attributes, a semicolon."""
    syntax_twins(impl, check, meshed("dist.all_reduce(X);", "return X;"), meshed(statement, "return X;"))


# Statements


@clause("LANG-02.3-54")
def test_a_dist_statement_yields_no_tensor(impl, check):
    """Graph IR has no operation for it whose result is a tensor (AMB-LANG-13)."""
    source = meshed('dist.all_reduce(X) @{axis=dp, op="sum"};', "return X;")
    graph = graph_of(impl, check, source)
    produced = [operation["name"] for operation in graph.operations if any(map(tensor_type, operation["result_types"]))]
    check.equal(produced, [], "operations that yield tensors")


@clause("LANG-02.3-54")
def test_a_dist_statement_communicates_nothing(impl, check):
    """Graph IR has no collective for it; its twin, a value, has one (AMB-LANG-119)."""
    call = 'dist.all_reduce(X) @{axis=dp, op="sum"};'
    statement, value = (graph_of(impl, check, meshed(*body)) for body in ([call, "return X;"], [f"return {call}"]))
    check.equal(len(value.named(ALL_REDUCE)), 1, "collectives of the value")
    check.equal(len(statement.named(ALL_REDUCE)), 0, "collectives of the statement")


@clause("LANG-02.3-80")
@pytest.mark.parametrize(
    "statement",
    ['dist.all_reduce(X) @{axis=dp, op="sum"};', 'dist.all_reduce(X) @{axis=tp, op="max"};'],
    ids=["sum", "max"],
)
def test_a_dist_statement_changes_the_ir(impl, check, statement):
    """The lowered program states the distribution, and differs from one with an empty line instead."""
    stated, plain = (graph_of(impl, check, meshed(line, "return X;")) for line in (statement, ""))
    check.true(stated.operations != plain.operations, "the IR with the statement differs from the IR without")


@clause("LANG-02.3-80")
def test_different_dist_statements_change_the_ir_differently(impl, check):
    """Axis and op are part of what is said."""
    one, other_axis, other_op = (
        graph_of(impl, check, meshed(f'dist.all_reduce(X) @{{axis={axis}, op="{op}"}};', "return X;")).operations
        for axis, op in (("dp", "sum"), ("tp", "sum"), ("dp", "max"))
    )
    check.true(one != other_axis, "another axis is another IR")
    check.true(one != other_op, "another op is another IR")


# Declarations


@clause("LANG-05.2-05")
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("axis", ["dp", "tp"])
def test_an_all_reduce_states_axis_and_op(impl, check, axis, op):
    """One operation with these two attributes, however they were spelled."""
    for source in (
        reducing(attributes=f'axis={axis}, op="{op}"'),
        meshed(f'return dist.all_reduce(X) @{{axis="{axis}", op="{op}"}};'),
    ):
        actual = graph_of(impl, check, source).named(ALL_REDUCE)
        check.equal(len(actual), 1, f"the number of {ALL_REDUCE}")
        check.equal([actual[0]["attributes"].get(name) for name in ("axis", "op")], [axis, op], "axis and op")


@clause("LANG-05.2-05")
@pytest.mark.parametrize("type_", ["tensor<4xfp32>", "tensor<2x3xbf16>", "tensor<?x8xint32>", "tensor<2x1x5xfp16>"])
def test_an_all_reduce_maps_a_tensor_to_one_of_its_type(impl, check, type_):
    """Shape and dtype of the result are the operand's."""
    source = meshed('return dist.all_reduce(X) @{axis=dp, op="sum"};', parameters=f"X: {type_}", result=type_)
    graph = graph_of(impl, check, source)
    actual = graph.named(ALL_REDUCE)
    check.equal(len(actual), 1, f"the number of {ALL_REDUCE}")
    kinds = [tensor_type(text) for text in (*actual[0]["operand_types"], *actual[0]["result_types"])]
    check.true(kinds == [tensor_type(type_)] * 2, f"operand and result are {type_}", kinds)


@clause("LANG-05.2-05", "LANG-09-03")
@pytest.mark.parametrize("op", ['"prod"', '"mean"', '"add"', '"Sum"', '"sums"', '""', "1"])
def test_an_all_reduce_of_another_op_is_refused(impl, check, op):
    """sum, max and min are all there is (AMB-LANG-76)."""
    check.accepts(impl.language.verify(source=reducing(attributes='axis=dp, op="max"')))
    answer = impl.language.verify(source=reducing(attributes=f"axis=dp, op={op}"))
    check.reading("AMB-LANG-76", "open set", len(op) > 2 and isinstance(answer, Returned))
    check.rejects(answer, category=UNDECLARED)


@clause("LANG-09-02")
@pytest.mark.parametrize(
    "call",
    [
        'dist.all_reduce(X) @{op="sum"}',
        "dist.all_reduce(X)",
    ],
    ids=["attribute", "nothing"],
)
@pytest.mark.parametrize("place", ["return {};", "{}; return X;"], ids=["value", "statement"])
def test_a_collective_without_an_axis_is_refused(impl, check, call, place):
    """On a mesh of two axes nothing else says which ranks form a group."""
    twin = 'dist.all_reduce(X) @{axis=dp, op="sum"}'
    verified_twins(impl, check, meshed(place.format(twin)), meshed(place.format(call)), UNDECLARED)


@clause("LANG-09-03")
@pytest.mark.parametrize(
    "call",
    ["dist.all_reduce(X) @{axis=dp}", 'dist.all_reduce(X) @{axis="dp"}', 'dist.all_reduce(X) @{axis="tp"}'],
    ids=["argument", "attribute", "other-axis"],
)
@pytest.mark.parametrize("place", ["return {};", "{}; return X;"], ids=["value", "statement"])
def test_an_all_reduce_that_does_not_say_what_it_computes_is_refused(impl, check, call, place):
    """There is no default (AMB-LANG-57)."""
    twin = 'dist.all_reduce(X) @{axis=dp, op="sum"}'
    verified_twins(impl, check, meshed(place.format(twin)), meshed(place.format(call)), UNDECLARED)


@feature("mesh-collectives")
@pytest.mark.parametrize(
    ("call", "extent"),
    [
        pytest.param(
            'dist.reduce_scatter(X) @{axis=dp, op="sum"}', 1, marks=clause("LANG-09-02", "LANG-09-03"), id="scatter"
        ),
        pytest.param("dist.all_gather(X) @{axis=dp}", 16, marks=clause("LANG-09-02"), id="gather"),
        pytest.param("dist.broadcast(X) @{axis=dp}", 4, marks=clause("LANG-09-02"), id="broadcast"),
        pytest.param("dist.all_to_all(X) @{axis=dp}", 4, marks=clause("LANG-09-02"), id="all-to-all"),
    ],
)
def test_every_collective_declares_its_axis_and_what_it_computes(impl, check, call, extent):
    """The same with each of its declarations left out is refused (AMB-LANG-141)."""
    source = meshed(f"let Y: tensor<{extent}xfp32> = {call};", "return X;")
    check.accepts(impl.language.verify(source=source))
    for declaration, rest in (("{axis=dp, ", "{"), ("{axis=dp}", "{}"), (', op="sum"', "")):
        if declaration in call:
            check.rejects(impl.language.verify(source=source.replace(declaration, rest)), category=UNDECLARED)


@feature("mesh-collectives")
@clause("LANG-09-02")
@pytest.mark.parametrize(
    ("legal", "illegal", "shape"),
    [
        ('reduce_scatter(X) @{axis=dp, op="sum"}', 'reduce_scatter(X) @{axis=dp, op="sum", dim=1}', "1x6"),
        ("all_to_all(X) @{axis=dp}", "all_to_all(X) @{axis=dp, split=1}", "4x6"),
        ("broadcast(X) @{axis=dp, root=3}", "broadcast(X) @{axis=dp, root=4}", "4x6"),
        ("broadcast(X) @{axis=tp, root=1}", "broadcast(X) @{axis=tp, root=-1}", "4x6"),
        ('reduce_scatter(X) @{axis=dp, op="sum", dim=0}', 'reduce_scatter(X) @{axis=dp, op="sum", dim=2}', "1x6"),
        ("all_to_all(X) @{axis=dp, concat=0}", "all_to_all(X) @{axis=dp, concat=2}", "4x6"),
    ],
    ids=["scatter", "all-to-all", "root-behind", "root-before", "scatter-along", "all-to-all-along"],
)
def test_parts_are_equal_and_the_root_lies_on_the_axis(impl, check, legal, illegal, shape):
    """Four ranks along dp do not divide 6; they count from 0 to 3 (AMB-LANG-141). A matrix has no dimension 2."""
    twin = meshed(
        f"let Y: tensor<{shape}xfp32> = dist.{legal};", "return;", parameters="X: tensor<4x6xfp32>", result=""
    )
    check.accepts(impl.language.verify(source=twin))
    source = twin.replace(legal, illegal)
    check.rejects(impl.language.verify(source=source), category=("distributed", "shapes", "types"))


@feature("mesh-collectives")
@clause("LANG-09-02")
@pytest.mark.parametrize(
    "call",
    ['reduce_scatter(X) @{axis=dp, op="sum", dim=1}', "all_to_all(X) @{axis=dp, split=1, concat=0}"],
    ids=["scatter", "all-to-all"],
)
def test_an_extent_that_the_ranks_do_not_divide_is_refused(impl, check, call):
    """Four ranks divide 8 columns and not 6, with no type declared that could say otherwise (AMB-LANG-141)."""
    twin = meshed(f"return dist.{call};", parameters="X: tensor<4x8xfp32>", result="")
    check.accepts(impl.language.verify(source=twin))
    source = twin.replace("4x8", "4x6")
    check.rejects(impl.language.verify(source=source), category=("distributed", "shapes", "types"))


# Effects


@clause("LANG-04-05", "LANG-15-13")
def test_a_collective_says_that_it_communicates(impl, check):
    """If operations state their effects, an all-reduce has one and a softmax has none."""
    source = meshed('return op.softmax(dist.all_reduce(X) @{axis=dp, op="sum"});')
    graph = graph_of(impl, check, source)
    for name, pure in ((ALL_REDUCE, False), ("tessera.graph.softmax", True)):
        actual = graph.named(name)
        check.equal(len(actual), 1, f"the number of {name}")
        effects = actual[0].get("effects")
        check.true(effects is None or (effects == []) == pure, f"{name} is {'pure' if pure else 'effectful'}", effects)


@clause("LANG-04-05", "LANG-15-13")
def test_a_collective_whose_result_is_not_used_remains(impl, check):
    """Other ranks wait for the collective."""
    body = [f'let Y: {VECTOR} = dist.all_reduce(X) @{{axis=dp, op="sum"}};', "return X;"]
    check.equal(len(graph_of(impl, check, meshed(*body)).named(ALL_REDUCE)), 1, "the number of all-reduces")


@clause("LANG-04-05", "LANG-15-13")
def test_two_equal_collectives_are_two(impl, check):
    """Each of them has an effect, so neither replaces the other."""
    call = 'dist.all_reduce(X) @{axis=dp, op="sum"}'
    body = [f"let Y: {VECTOR} = {call};", f"let Z: {VECTOR} = {call};", "return Y + Z;"]
    check.equal(len(graph_of(impl, check, meshed(*body)).named(ALL_REDUCE)), 2, "the number of all-reduces")


OTHERS = {
    "reduce_scatter": ('dist.reduce_scatter(X) @{axis=dp, op="sum"}', "tensor<1xfp32>"),
    "all_gather": ("dist.all_gather(X) @{axis=dp}", "tensor<16xfp32>"),
    "broadcast": ("dist.broadcast(X) @{axis=dp}", VECTOR),
    "all_to_all": ("dist.all_to_all(X) @{axis=dp}", VECTOR),
}
"""A call of each other collective, and its type (AMB-LANG-141)."""


def along_dp(graph):
    """Return the operations of the function with the axis dp, whatever their names."""
    return [operation for operation in graph.operations if operation["attributes"].get("axis") == "dp"]


@feature("mesh-collectives")
@clause("LANG-04-05")
@pytest.mark.parametrize(("name", "call", "type_"), [(name, *call) for name, call in OTHERS.items()], ids=OTHERS)
def test_every_collective_whose_result_is_not_used_remains(impl, check, name, call, type_):
    """A collective that only moves data has an effect too: other ranks wait for it."""
    graph = graph_of(impl, check, meshed(f"let Y: {type_} = {call};", "return X;"))
    check.equal(len(along_dp(graph)), 1, f"the number of operations for {name}")


@feature("mesh-collectives")
@clause("LANG-04-05")
@pytest.mark.parametrize(("name", "call", "type_"), [(name, *call) for name, call in OTHERS.items()], ids=OTHERS)
def test_two_equal_collectives_of_any_kind_are_two(impl, check, name, call, type_):
    """Each of them has an effect, so neither replaces the other."""
    body = [f"let Y: {type_} = {call};", f"let Z: {type_} = {call};", "return Y + Z;"]
    graph = graph_of(impl, check, meshed(*body, result=type_))
    check.equal(len(along_dp(graph)), 2, f"the number of operations for {name}")


@clause("LANG-04-05", "LANG-15-13")
@pytest.mark.parametrize("order", [("sum", "max", "min"), ("min", "sum", "max")], ids=["sum-first", "min-first"])
def test_collectives_stay_in_program_order(impl, check, order):
    """Independent of each other and used backwards; all ranks execute them in the order of the text (AMB-LANG-185)."""
    names = "PQR"
    body = [
        f'let {name}: {VECTOR} = dist.all_reduce(X) @{{axis=dp, op="{op}"}};'
        for name, op in zip(names, order, strict=True)
    ]
    graph = graph_of(impl, check, meshed(*body, "return R + Q + P;"))
    actual = [operation["attributes"].get("op") for operation in graph.named(ALL_REDUCE)]
    check.equal(actual, list(order), "the order of the collectives")
