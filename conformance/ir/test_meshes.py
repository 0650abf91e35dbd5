"""Meshes: how they are declared, and what belongs to them (language spec, sections 2.3, 5, 9 and 13.2)."""

import pytest

from tessera_conformance.chapters.ir.kit.programs import (
    SYNTAX,
    graph_of,
    syntax_twins,
    takes_in_funcs,
    verified_twins,
)
from tessera_conformance.dsl import func, module, parameters_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.protocol import Rejected

DECLARATION = "  mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;"
MESH_RULES = ("distributed", "types", "shapes", "syntax")
"""Categories in which a wrong mesh may be reported: none of the seven groups names it alone."""
SQUARE = "tensor<8x8xfp32>"
"""Both extents can be divided by those of either axis."""
WRONG_AXIS = ("distributed", "types")
"""Categories in which an unknown axis or mesh may be reported."""


def reducing(axis, mesh=DECLARATION, more=""):
    """A module with a mesh, whose function reduces along an axis."""
    body = f'return dist.all_reduce(X) @{{axis={axis}, op="sum"{more}}};'
    return module(mesh, func(body, parameters="X: tensor<4xfp32>", result="tensor<4xfp32>"))


def annotated(attributes):
    """A product that carries attributes."""
    body = f"return op.matmul(A, B) @{{{attributes}}};"
    return module(DECLARATION, func(body, parameters=parameters_of("AB", SQUARE), result=SQUARE))


@clause("LANG-02.3-06", "LANG-02.3-50")
@pytest.mark.parametrize(
    "mesh",
    [
        "mesh<axes=[dp], shape=[8]>",
        "mesh<axes=[dp, tp], shape=[4, 2]>",
        "mesh<axes=[a, b, c, d], shape=[1, 2, 3, 4]>",
        "mesh< axes = [ dp ,tp ] ,\n    shape = [4,2] >",
    ],
    ids=["one-axis", "two-axes", "four-axes", "blanks"],
)
def test_a_mesh_is_declared_in_its_module(impl, check, mesh):
    """The parser lists it under its name, as a mesh, between the declarations around it."""
    source = module(func(name="before"), f"  mesh grid = {mesh};", func(name="after"))
    modules = check.accepts(impl.language.parse(source=source))["modules"]
    kinds = [(entry["kind"], entry["name"]) for module in modules for entry in module["declarations"]]
    check.equal(kinds, [("func", "before"), ("mesh", "grid"), ("func", "after")], "the declarations")


@clause("LANG-02.3-06")
@pytest.mark.parametrize(
    "declaration",
    [
        "  mesh g = mesh<axes=[dp], shape=[2]>",
        "  mesh g mesh<axes=[dp], shape=[2]>;",
        "  mesh = mesh<axes=[dp], shape=[2]>;",
        "  g = mesh<axes=[dp], shape=[2]>;",
        "  mesh g = <axes=[dp], shape=[2]>;",
        "  mesh g = mesh(axes=[dp], shape=[2]);",
        "  mesh g = tensor<2xfp32>;",
        "  mesh g: mesh<axes=[dp], shape=[2]>;",
    ],
    ids=["no-semicolon", "no-equals", "no-name", "no-keyword", "no-word-mesh", "round", "another-type", "colon"],
)
def test_a_mesh_declaration_of_another_form_is_refused(impl, check, declaration):
    """mesh, a name, an equals sign, mesh and its parameters, a semicolon."""
    syntax_twins(impl, check, module("  mesh g = mesh<axes=[dp], shape=[2]>;"), module(declaration))


@clause("LANG-02.3-50")
@pytest.mark.parametrize(
    "parameters",
    [
        "shape=[2], axes=[dp]",
        "axes=[dp]",
        "shape=[2]",
        "axes=[], shape=[]",
        "axes=dp, shape=2",
        "axes=[dp] shape=[2]",
        "axes=[dp], shape=[2],",
        "axis=[dp], shape=[2]",
        "axes=[2], shape=[dp]",
        "axes=[dp], shape=[2.0]",
        "axes=[dp], shape=[?]",
    ],
    ids=[
        "shape-first",
        "no-shape",
        "no-axes",
        "empty",
        "no-brackets",
        "no-comma",
        "comma-behind",
        "axis",
        "exchanged",
        "float-extent",
        "unknown-extent",
    ],
)
def test_parameters_of_a_mesh_in_another_form_are_refused(impl, check, parameters):
    """axes, then shape, each a list in brackets that is not empty; the twin has one of each."""
    check.accepts(impl.language.verify(source=module("  mesh g = mesh<axes=[dp], shape=[2]>;")))
    check.rejects(impl.language.verify(source=module(f"  mesh g = mesh<{parameters}>;")), category=MESH_RULES)


@clause("LANG-02.3-50")
@pytest.mark.parametrize("name", ["axes", "shape"])
def test_the_words_of_a_mesh_are_names_elsewhere(impl, check, name):
    """axes and shape are keywords only where the grammar asks for them (AMB-LANG-02, AMB-RT-52)."""
    for declaration in (
        f"  mesh {name} = mesh<axes=[{name}], shape=[2]>;",
        func(f"return {name};", parameters=f"{name}: int32", result="int32"),
    ):
        check.accepts(impl.language.verify(source=module(declaration)))


@clause("LANG-05.1-02")
@pytest.mark.parametrize(
    ("axes", "shape"), [("dp", "8"), ("dp,tp", "4,2"), ("x,y,z", "2,3,1")], ids=["one", "two", "three"]
)
def test_a_mesh_type_has_axes_and_a_shape_in_graph_ir(impl, check, axes, shape):
    """The type of a parameter is lowered whole: the names of its axes and their extents, in order (AMB-RT-52)."""
    takes_in_funcs(impl, check, f"mesh<axes=[{axes}], shape=[{shape}]>")
    parameter = f"M: mesh<axes=[{axes}], shape=[{shape}]>"
    graph = graph_of(impl, check, module(func("return x;", parameters=f"{parameter}, x: int32", result="int32")))
    actual = ["".join(text.split()).replace('"', "").removeprefix("!tessera.") for text in graph.arguments]
    check.equal(actual, [f"mesh<axes=[{axes}],shape=[{shape}]>", "int32"], "the types of the parameters")


@clause("LANG-09-01")
@pytest.mark.parametrize(
    ("axes", "shape"),
    [("dp, tp", "4"), ("dp", "4, 2"), ("dp, tp, pp", "4, 2")],
    ids=["extent-missing", "axis-missing", "two-of-three"],
)
def test_a_mesh_without_one_extent_for_each_axis_is_refused(impl, check, axes, shape):
    """A mesh has one extent for each of its axes (AMB-LANG-82)."""
    check.accepts(impl.language.verify(source=module("  mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;")))
    source = module(f"  mesh g = mesh<axes=[{axes}], shape=[{shape}]>;")
    check.rejects(impl.language.verify(source=source), category=MESH_RULES)


@clause("LANG-09-01")
@pytest.mark.parametrize(
    ("axes", "shape"), [("dp, dp", "4, 2"), ("dp, tp, dp", "1, 2, 3")], ids=["side-by-side", "apart"]
)
def test_a_mesh_with_an_axis_twice_is_refused(impl, check, axes, shape):
    """Each axis has a name of its own (AMB-LANG-82)."""
    check.accepts(impl.language.verify(source=module("  mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;")))
    source = module(f"  mesh g = mesh<axes=[{axes}], shape=[{shape}]>;")
    check.rejects(impl.language.verify(source=source), category=WRONG_AXIS)


@clause("LANG-09-01")
@pytest.mark.parametrize("axes", [["dp", "tp"], ["rows", "columns"], ["x0", "x1"]], ids=lambda axes: axes[0])
def test_an_axis_may_have_any_name(impl, check, axes):
    """Names are the program's (AMB-RT-52); each of them is an axis to work along."""
    check.accepts(impl.language.verify(source=reducing("dp", "  mesh g = mesh<axes=[dp, tp], shape=[4, 2]>;")))
    mesh = f"  mesh g = mesh<axes=[{', '.join(axes)}], shape=[4, 2]>;"
    for axis in axes:
        answer = impl.language.verify(source=reducing(axis, mesh))
        other = not {*axes} <= {"tp", "pp", "dp", "ep"} and isinstance(answer, Rejected)
        check.reading("AMB-RT-52", "the verifier refuses other names", other)
        check.accepts(answer, f"{axis} is an axis")


@clause("LANG-05.4-04", "LANG-09-01")
@pytest.mark.parametrize(
    ("legal", "axis"),
    [
        *(("dp", axis) for axis in ("pp", "d", "dpp", "DP", "g", "meshes")),
        *(('"dp"', f'"{axis}"') for axis in ("pp", "d", "dpp", "DP", "g", "mesh")),
    ],
    ids=lambda text: text.replace('"', "'"),
)
def test_an_axis_that_the_mesh_lacks_is_refused(impl, check, legal, axis):
    """A word or a string names an axis of the mesh in force (AMB-LANG-60, AMB-LANG-108)."""
    verified_twins(impl, check, reducing(legal), reducing(axis), WRONG_AXIS)


@clause("LANG-05.4-04", "LANG-09-02")
def test_an_axis_without_any_mesh_is_refused(impl, check):
    """The twin declares the mesh."""
    verified_twins(impl, check, reducing("dp"), reducing("dp", mesh=""), WRONG_AXIS)


@feature("mesh-selection")
@clause("LANG-05.4-04", "LANG-05.2-05")
def test_among_several_meshes_one_is_named(impl, check):
    """Two meshes and no name: which one is meant is open (AMB-LANG-108)."""
    meshes = f"{DECLARATION} mesh h = mesh<axes=[dp, pp], shape=[2, 2]>;"
    for name, axis in (("g", "dp"), ("h", "dp"), ("g", "tp"), ("h", "pp")):
        source = reducing(axis, meshes, f", mesh={name}")
        check.accepts(impl.language.verify(source=source), f"mesh {name} has {axis}")
    for source in (
        reducing("dp", meshes),
        reducing("pp", meshes),
        reducing("pp", meshes, ", mesh=g"),
        reducing("tp", meshes, ", mesh=h"),
        reducing("dp", meshes, ", mesh=k"),
    ):
        check.rejects(impl.language.verify(source=source), category=WRONG_AXIS)


@clause("LANG-05.3-04")
@pytest.mark.parametrize("axes", ["[dp]", "[tp]", "[dp, tp]"], ids=["dp", "tp", "both"])
def test_mesh_axes_is_an_attribute(impl, check, axes):
    """An operation says over which axes its value is distributed: one or several."""
    check.accepts(impl.language.verify(source=annotated(f"mesh_axes={axes}")))


@clause("LANG-05.3-04", "LANG-05.4-04")
@pytest.mark.parametrize("axes", ["[pp]", "[dp, pp]", "[pp, tp]"])
def test_mesh_axes_names_axes_of_the_mesh(impl, check, axes):
    """An axis that the mesh lacks is refused (AMB-LANG-60)."""
    check.accepts(impl.language.verify(source=annotated("mesh_axes=[dp]")))
    source = annotated(f"mesh_axes={axes}")
    check.rejects(impl.language.verify(source=source), category=WRONG_AXIS)


MESH_LINE = "mesh g = mesh<axes=[dp,tp], shape=[4,2]>;"


def example(attributes):
    """Section 13.2 with one named dimension, as its product asks for."""
    return "\n".join(
        [
            MESH_LINE,
            "func step(X: tensor<DxDxbf16; layout=row_major>) {",
            f"  let Y: tensor<DxDxbf16> = dist.all_reduce(op.matmul(X, X), {attributes});",
            "  return Y;",
            "}",
        ]
    )


@clause("LANG-13.2-01")
def test_a_mesh_outside_a_module_is_refused(impl, check):
    """The example declares it so; a program is a list of modules, in which it stands (AMB-LANG-11)."""
    declarations = example('axis=dp, op="sum"')
    check.rejects(impl.language.verify(source=declarations), **SYNTAX)
    check.rejects(impl.language.verify(source=MESH_LINE), **SYNTAX)
    check.accepts(impl.language.verify(source=module(declarations)))
    check.accepts(impl.language.verify(source=module(MESH_LINE)))


@clause("LANG-13.2-03", "LANG-09-03")
def test_the_all_reduce_of_the_example_is_a_value_once_it_says_what_it_computes(impl, check):
    """The printed example has an axis and no op (AMB-LANG-57); with op it is bound to a name and returned."""
    check.rejects(impl.language.verify(source=module(example("axis=dp"))), category=WRONG_AXIS)
    graph = graph_of(impl, check, module(example('axis=dp, op="sum"')), "step")
    actual = graph.named("tessera.graph.all_reduce")
    check.equal(len(actual), 1, "the number of tessera.graph.all_reduce")
    check.equal([actual[0]["attributes"].get(name) for name in ("axis", "op")], ["dp", "sum"], "axis and op")
    check.equal(actual[0]["operands"], graph.named("tessera.graph.matmul")[0]["results"], "what is reduced")
