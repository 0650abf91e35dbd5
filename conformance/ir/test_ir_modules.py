"""Modules of Graph IR as text: types of functions, what stands in a module, calls, gradients (sections 2 and 5)."""

import pytest

from tessera_conformance.chapters.ir.kit.graph_texts import MATRIX as T
from tessera_conformance.chapters.ir.kit.graph_texts import func, module, returns, softmax
from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature

pytestmark = feature("graph-ir-text")

REFUSED = ("types", "shapes", "syntax")


TYPES = {
    "rank": ("tensor<4xfp32>", "tensor<fp32>", ("LANG-03.1-02", "LANG-11-02")),
    "digits-of-an-extent": ("tensor<4xfp32>", f"tensor<{'9' * 5000}xfp32>", ("LANG-02.3-37",)),
    "rank-of-a-memref": ("memref<4xfp32>[addrspace=global]", "memref<fp32>[addrspace=global]", ("LANG-03.1-02",)),
    "space-of-a-memref": ("memref<4xfp32>[addrspace=shared]", "memref<4xfp32>[addrspace=private]", ("LANG-02.2-19",)),
}


@pytest.mark.parametrize(
    ("legal", "illegal"), [pytest.param(*types, id=name, marks=clause(*tags)) for name, (*types, tags) in TYPES.items()]
)
def test_a_type_is_judged_in_a_text_as_in_a_program(impl, check, legal, illegal):
    """No rank 0 (AMB-LANG-27), memory that is global or shared (AMB-LANG-35), extents that some memory can have."""
    for type_ in (legal, illegal):
        text = module(func(returns("%a"), takes=f"%a: {T}, %x: {type_}"))
        accepts_if(check, type_ == legal, impl.language.verify_ir(text=text), category=REFUSED)


OUTSIDE = {
    "misspelled-function": ('"tessera.graph.func"', '"tessera.graph.function"'),
    "second-region": ('}) {sym_name = "m"}', '}, {}) {sym_name = "m"}'),
    "operation-for-a-module": ('"builtin.module"', '"tessera.graph.softmax"'),
}


@clause("LANG-05-03", "LANG-01-06")
@pytest.mark.parametrize(("written", "broken"), OUTSIDE.values(), ids=OUTSIDE)
def test_a_module_has_one_region_of_definitions(impl, check, written, broken):
    """It has functions and meshes; any other operation is refused."""
    text = module(func(softmax("%a", "%p"), returns("%p")))
    check.true(written in text, "the text is broken")
    for source in (text, text.replace(written, broken)):
        accepts_if(check, source == text, impl.language.verify_ir(text=source), category=REFUSED)


@clause("LANG-05-03")
@pytest.mark.parametrize("around", ["{}{}", '"builtin.module"() ({{\n{}{}}}) : () -> ()\n'], ids=["beside", "inside"])
def test_two_modules_of_a_text_have_two_names(impl, check, around):
    """Their names differ as in a program, also where a tool has put a module around both (AMB-LANG-86)."""
    first = module(func(softmax("%a", "%p"), returns("%p")))
    second = first.replace('sym_name = "m"', 'sym_name = "n"')
    check.true(second != first, "the second name")
    for name in (second, first):
        answer = impl.language.verify_ir(text=around.format(first, name))
        accepts_if(check, name == second, answer, category=REFUSED)


@clause("LANG-05-03")
@pytest.mark.parametrize("name", ["m", "n"])
def test_a_function_of_a_text_is_found_by_the_name_of_its_module(impl, check, name):
    """`m.f` and `n.f` are two functions, of which one returns its first argument (AMB-LANG-131)."""
    bodies = {"m": "%a", "n": "%b"}
    text = "".join(module(func(returns(value)), name=owner) for owner, value in bodies.items())
    inputs = {"a": tensor_of("fp32", [[1, 2], [3, 4]]), "b": tensor_of("fp32", [[5, 6], [7, 8]])}
    inputs["c"] = tensor_of("bool", True)
    answer = impl.language.execute_ir(text=text, function=f"{name}.f", inputs=inputs, at="graph")
    (actual,) = check.returns(answer)["outputs"]
    check.bits(actual, inputs[bodies[name].strip("%")])


@clause("LANG-05.2-06")
def test_a_gradient_is_accepted_as_section_5_2_prints_it(impl, check):
    """`%g = tessera.graph.grad %y, %wrt(%x)`: what wrt is written around is differentiated by (AMB-LANG-58)."""
    for label in ("wrt", "of"):
        gradient = f"%g = tessera.graph.grad %y, %{label}(%a) : {T}"
        text = module(func(softmax("%a", "%y"), gradient, returns("%g")))
        accepts_if(check, label == "wrt", impl.language.verify_ir(text=text), category=REFUSED)


@clause("LANG-05-03", "LANG-03.1-03", "LANG-01-03")
def test_a_call_gives_what_the_signature_says(impl, check):
    """Two values, of which one has an extent that only the callee knows."""
    open_, joined = "tensor<?xint32>", '%y = "tessera.graph.concat"(%x, %x) {axis = 0}'
    callee = func(
        f"{joined} : ({open_}, {open_}) -> {open_}",
        f'"tessera.graph.return"(%n, %y) : (int32, {open_}) -> ()',
        takes=f"%x: {open_}, %n: int32",
        gives=f"int32, {open_}",
        name="g",
    )
    caller = func(
        f'%m, %z = "tessera.graph.call"(%x, %n) {{callee = "g"}} : ({open_}, int32) -> (int32, {open_})',
        f'"tessera.graph.return"(%z, %m) : ({open_}, int32) -> ()',
        takes=f"%x: {open_}, %n: int32",
        gives=f"{open_}, int32",
    )
    inputs = {"x": tensor_of("int32", [1, -2, 3]), "n": tensor_of("int32", 7)}
    text = module(caller, callee)
    actual = check.returns(impl.language.execute_ir(text=text, function="f", inputs=inputs, at="graph"))["outputs"]
    check.equal(len(actual), 2, "the number of results")
    check.bits(actual[0], tensor_of("int32", [1, -2, 3, 1, -2, 3]))
    check.bits(actual[1], inputs["n"])
