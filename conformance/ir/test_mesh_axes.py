"""The attribute mesh_axes in the IR: kept with its axes by the front end, read and checked in texts (section 5.3)."""

from __future__ import annotations

import re

import pytest

from tessera_conformance.chapters.ir.kit import graph_texts
from tessera_conformance.chapters.ir.kit.graph_texts import MATRIX, returns
from tessera_conformance.chapters.ir.kit.programs import graph_of
from tessera_conformance.dsl import func, module, parameters_of
from tessera_conformance.marks import clause, feature

DECLARATION = "  mesh g = mesh<axes=[dp, tp, pp], shape=[4, 2, 2]>;"
SQUARE = "tensor<8x8xfp32>"

AXES = ["dp", "tp", "pp", "dp, tp", "tp, dp", "dp, pp", "pp, tp, dp"]

OPERATIONS = {
    "matmul": ("op.matmul(A, B)", "tessera.graph.matmul"),
    "softmax": ("op.softmax(A)", "tessera.graph.softmax"),
    "all-reduce": ('dist.all_reduce(A) @{axis=dp, op="sum"}', "tessera.graph.all_reduce"),
}
"""Expressions, and the operation that section 5.2 calls them by."""


def program_of(expression, axes, form):
    """A function that returns the expression with the attribute, as a keyword or in a block."""
    stated = f"mesh_axes=[{axes}]"
    bare, _, own = expression.partition(" @")
    if form == "keyword":
        text = f"{bare.removesuffix(')')}, {stated}){f' @{own}' if own else ''}"
    else:
        text = f"{bare} @{{{', '.join(filter(None, [own.strip('{}'), stated]))}}}"
    body = f"return {text};"
    return module(DECLARATION, func(body, parameters=parameters_of("AB", SQUARE), result=SQUARE))


@clause("LANG-05.3-04", "LANG-01-07")
@pytest.mark.parametrize("form", ["block", "keyword"])
@pytest.mark.parametrize("axes", AXES, ids=lambda axes: axes.replace(", ", "-"))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_mesh_axes_are_kept_in_graph_ir(impl, check, operation, axes, form):
    """The operation has the attribute, with all its axes in their order; no other operation has it."""
    expression, name = OPERATIONS[operation]
    function = graph_of(impl, check, program_of(expression, axes, form))
    actual = function.named(name)
    check.equal(len(actual), 1, f"the number of {name}")
    check.equal(actual[0]["attributes"].get("mesh_axes"), axes.split(", "), "the attribute mesh_axes")
    others = [
        other["name"] for other in function.operations if "mesh_axes" in other["attributes"] and other != actual[0]
    ]
    check.equal(others, [], "other operations with mesh_axes")


@feature("graph-ir-text")
@clause("LANG-05.3-04")
@pytest.mark.parametrize("axes", AXES, ids=lambda axes: axes.replace(", ", "-"))
def test_mesh_axes_stand_in_the_text_of_graph_ir(impl, check, axes):
    """The text says what the list of operations says, once, and a reader of the text accepts it."""
    answer = check.accepts(impl.language.lower(source=program_of("op.matmul(A, B)", axes, "block"), to="graph"))
    written = re.findall(r"mesh_axes\s*=\s*\[([^\]]*)\]", answer["text"])
    names = [[name.strip(' "') for name in text.split(",")] for text in written]
    check.equal(names, [axes.split(", ")], "the attributes mesh_axes in the text")
    check.accepts(impl.language.verify_ir(text=answer["text"]))


@clause("LANG-05.3-04")
def test_each_operation_has_its_own_mesh_axes(impl, check):
    """Two operations over different axes, and one that says nothing."""
    body = [
        f"let Y: {SQUARE} = op.matmul(A, B) @{{mesh_axes=[dp]}};",
        f"let Z: {SQUARE} = op.matmul(Y, B) @{{mesh_axes=[tp, pp]}};",
        "return op.matmul(Z, B);",
    ]
    function = graph_of(impl, check, module(DECLARATION, func(*body, parameters=parameters_of("AB", SQUARE))))
    actual = [operation["attributes"].get("mesh_axes") for operation in function.named("tessera.graph.matmul")]
    check.equal(actual, [["dp"], ["tp", "pp"], None], "the attributes of the products in order")


MESH = '  "tessera.graph.mesh"() {sym_name = "g", axes = ["dp", "tp"], shape = [4, 2]} : () -> ()'
OTHER = '  "tessera.graph.mesh"() {sym_name = "h", axes = ["pp"], shape = [2]} : () -> ()'


def text_of(attribute, *meshes):
    """A module of Graph IR whose softmax has an attribute more."""
    operation = graph_texts.softmax("%a", "%s", f" {{axis = -1, {attribute}}}")
    return graph_texts.module(*meshes, graph_texts.func(operation, returns("%s"), takes=f"%a: {MATRIX}"))


@clause("LANG-05.3-04")
@feature("graph-ir-text")
@pytest.mark.parametrize(
    "wrong",
    [
        'mesh_axes = ["pp"]',
        'mesh_axes = ["dp", "pp"]',
        'mesh_axes = ["pp", "dp"]',
        'mesh_axes = ["DP"]',
        'mesh_axes = ["d"]',
        'mesh_axes = [""]',
        'mesh_axes = "dp"',
        "mesh_axes = 1",
        "mesh_axes = [0]",
    ],
    ids=["other-axis", "second", "first", "capitals", "shorter", "empty-name", "no-list", "number", "numbers"],
)
def test_a_text_lists_axes_of_its_mesh(impl, check, wrong):
    """One axis or several of the mesh are accepted in a text; another axis, or something else than a list, is not."""
    for right in ('mesh_axes = ["dp"]', 'mesh_axes = ["tp"]', 'mesh_axes = ["tp", "dp"]'):
        check.accepts(impl.language.verify_ir(text=text_of(right, MESH)))
    observation = impl.language.verify_ir(text=text_of(wrong, MESH))
    check.rejects(observation, category=("distributed", "types", "syntax"))


@clause("LANG-05.3-04")
@feature("graph-ir-text")
def test_axes_of_any_mesh_of_the_module_can_be_listed(impl, check):
    """With a second mesh its axes are known too; without any mesh there are none."""
    attribute = 'mesh_axes = ["pp"]'
    check.accepts(impl.language.verify_ir(text=text_of(attribute, MESH, OTHER)))
    check.rejects(impl.language.verify_ir(text=text_of(attribute, MESH)), category=("distributed", "types"))
    check.rejects(impl.language.verify_ir(text=text_of(attribute)), category=("distributed", "types"))
