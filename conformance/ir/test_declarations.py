"""The five kinds of declarations, type aliases, and the types that have no values yet (language spec, 2.2 and 2.3).

Malformed declarations and types, unknown and circular aliases are in `rejections/`.
"""

import itertools

import pytest

from tessera_conformance.chapters.ir.kit.programs import (
    SYNTAX,
    evaluate,
    graph_of,
    takes_in_funcs,
    value_of,
    verified_twins,
)
from tessera_conformance.dsl import func, integers, kernel, module, program, tensor_of
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Fault, Rejected, Returned

DECLARATIONS = {
    "func": "  func a() { }",
    "kernel": "  kernel b() { }",
    "type": "  type c = int32;",
    "const": "  let d: int32 = 1;",
    "mesh": "  mesh e = mesh<axes=[dp], shape=[2]>;",
}


def kinds_of(impl, check, source):
    """Kind and name of each declaration of the only module."""
    modules = check.accepts(impl.language.parse(source=source))["modules"]
    check.equal(len(modules), 1, "the number of modules")
    return [(entry["kind"], entry["name"]) for entry in modules[0]["declarations"]]


@clause("LANG-02.3-03")
@pytest.mark.parametrize(
    "order", list(itertools.permutations(DECLARATIONS))[::17], ids=lambda order: "-".join(kind[0] for kind in order)
)
def test_a_module_declares_funcs_kernels_types_constants_and_meshes(impl, check, order):
    """In any order; the parser names kind and name of each."""
    names = dict(zip(DECLARATIONS, "abcde", strict=True))
    source = module(*(DECLARATIONS[kind] for kind in order))
    check.equal(kinds_of(impl, check, source), [(kind, names[kind]) for kind in order], "the declarations")
    check.accepts(impl.language.verify(source=source))


@clause("LANG-02.3-03")
@pytest.mark.parametrize(
    "illegal",
    [
        "d = 1;",
        "a();",
        "op.softmax(a);",
        "if (true) { }",
        "for (k in 0:1) { }",
        "while (false) { }",
        "barrier();",
        "assert(true);",
        "schedule.tile(a);",
        "{ }",
        "@{a=1}",
        "x: int32;",
    ],
    ids=[
        "assignment",
        "call",
        "operation",
        "if",
        "for",
        "while",
        "barrier",
        "assert",
        "schedule",
        "block",
        "at",
        "type",
    ],
)
def test_a_statement_is_no_declaration(impl, check, illegal):
    """A module holds the five kinds of declarations; a statement belongs into a block."""
    check.equal(kinds_of(impl, check, module(*DECLARATIONS.values()))[0], ("func", "a"), "the first declaration")
    check.rejects(impl.language.parse(source=module(*DECLARATIONS.values(), f"  {illegal}")), **SYNTAX)


@clause("LANG-02.3-03", "LANG-02.3-32")
def test_calls_do_not_care_about_the_order_of_declarations(impl, check):
    """Each of four funcs calls the one declared after it; a kernel declared first calls the first (AMB-LANG-97)."""
    chain = [func(f"return f{n + 1}(p) * 2 + {n};", parameters="p: int32", name=f"f{n}") for n in range(3)]
    last = func("return p + 1;", parameters="p: int32", name="f3")
    source = module(kernel("A[0] = f0(A[1]);", parameters="A: tensor<2xint32>"), *chain, last)
    outputs = evaluate(impl, check, source, "k", **integers(A=[0, 4]))
    check.equal(len(outputs), 1, "the number of tensor parameters")
    check.bits(outputs[0], tensor_of("int32", [((5 * 2 + 2) * 2 + 1) * 2, 4]))


@clause("LANG-02.3-03")
@pytest.mark.parametrize("length", [1, 2, 3], ids=["itself", "each-other", "three"])
def test_a_recursive_func_neither_crashes_nor_hangs(impl, check, length):
    """Any answer will do (AMB-LANG-97); without the last call the program is legal."""

    def ring(last):
        following = [f"f{number + 1}" for number in range(length - 1)] + [last]
        callees = [f"return {callee}(p);" if callee else "return p;" for callee in following]
        return module(
            *(func(body, parameters="p: int32", result="int32", name=f"f{n}") for n, body in enumerate(callees))
        )

    check.accepts(impl.language.verify(source=ring("")))
    observation = impl.language.verify(source=ring("f0"))
    check.true(not isinstance(observation, Fault), "the front end answers", observation)


@clause("LANG-02.3-04", "LANG-05-03")
@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(DECLARATIONS, 2)), ids=lambda kind: kind)
def test_declarations_of_two_kinds_do_not_share_a_name(impl, check, first, second):
    """Names are symbols of the module, whatever they name (AMB-LANG-86)."""
    names = dict(zip(DECLARATIONS, "abcde", strict=True))

    def source(name):
        return module(DECLARATIONS[first], DECLARATIONS[second].replace(f" {names[second]}", f" {name}", 1))

    check.accepts(impl.language.verify(source=source("z")))
    categories = ("types", "syntax", *(["distributed"] if "mesh" in (first, second) else []))
    check.rejects(impl.language.verify(source=source(names[first])), category=categories)


# Aliases

VALUES = {
    "scalar": ("int32", 5),
    "vector": ("tensor<2xint32>", [5, 6]),
    "layout": ("tensor<1x2xint32; layout=col_major>", [[5, 6]]),
    "unknown": ("tensor<?x1xint32>", [[5], [6]]),
    "named": ("tensor<NxNxint32>", [[5, 6], [7, 8]]),
}


@clause("LANG-02.3-04")
@pytest.mark.parametrize(("type_", "value"), VALUES.values(), ids=VALUES)
def test_an_alias_stands_for_its_type(impl, check, type_, value):
    """It is the type of a parameter and a variable, in a func and a kernel, mixed with the type (AMB-LANG-50)."""
    source = module(
        f"  type t = {type_};",
        func("let b: t = a;", f"let c: {type_} = b;", "b = c;", "return b;", parameters="a: t"),
        kernel("let b: t = a;", "a = b;", parameters="a: t"),
    )
    check.bits(value_of(impl, check, source, **integers(a=value)), tensor_of("int32", value))
    graph = graph_of(impl, check, source)
    twin = graph_of(impl, check, program("return a;", parameters=f"a: {type_}"))
    check.equal(graph.arguments, twin.arguments, "the lowered parameters")


@clause("LANG-02.3-04")
def test_aliases_take_part_in_results_constants_and_other_aliases(impl, check):
    """An alias of an alias, a result, a constant, and an alias shared by two functions."""
    source = module(
        "  type scalar = int32;",
        "  type number = scalar;",
        "  type row = tensor<3xint32>;",
        "  let n: number = 2;",
        func("return R[i];", parameters="R: row, i: scalar", result="int32", name="helper"),
        func("let S: row = R + R;", "return helper(S, n);", parameters="R: row", result="number"),
    )
    check.bits(value_of(impl, check, source, **integers(R=[1, 2, 3])), tensor_of("int32", 6))


@clause("LANG-02.3-04")
def test_modules_have_aliases_of_their_own(impl, check):
    """The same name in two modules means two types."""
    source = module("  type t = int32;", func("let u: t = a + 1;", "return u;", parameters="a: t"), name="m")
    source += module("  type t = tensor<2xint32>;", func("return A;", parameters="A: t", name="g"), name="n")
    check.bits(value_of(impl, check, source, **integers(a=4)), tensor_of("int32", 5))
    check.bits(value_of(impl, check, source, "g", **integers(A=[1, 2])), tensor_of("int32", [1, 2]))


# Types

FORMS = {
    "scalar": ("int32", "LANG-02.3-47"),
    "tensor": ("tensor<2x3xfp32>", "LANG-02.3-47"),
    "memref": ("memref<4x4xfp32>", "LANG-02.3-48"),
    "memref-shared": ("memref<128x64xbf16>[addrspace=shared]", "LANG-02.3-48"),
    "memref-global": ("memref<4xint8>[addrspace=global]", "LANG-02.3-48"),
    "memref-blanks": ("memref< 4 x ? x fp32 > [ addrspace = shared ]", "LANG-02.3-48"),
    "fragment": ("fragment<16, 16, 16, bf16>", "LANG-02.3-49"),
    "fragment-semicolon": ("fragment<16, 8, 4, bf16; layout=row_major>", "LANG-02.3-49"),
    "fragment-semicolon-blocked": ("fragment<16,8,4,int8; layout=blocked(bm=8, bn=4)>", "LANG-02.3-49"),
    "fragment-comma": ("fragment<16, 8, 4, bf16, layout=col_major>", "LANG-02.2-15"),
    "fragment-comma-blocked": ("fragment<16,8,4,fp16,layout=blocked(bm=8, bn=4)>", "LANG-02.2-15"),
    "mesh": ("mesh<axes=[dp, tp], shape=[4, 2]>", "LANG-02.3-47"),
    "fn": ("fn(int32) -> int32", "LANG-02.3-51"),
    "fn-of-nothing": ("fn() -> bool", "LANG-02.3-51"),
    "fn-of-tensors": ("fn(tensor<2x3xfp32>, tensor<3x2xfp32; layout=col_major>) -> tensor<2x2xfp32>", "LANG-02.3-51"),
    "fn-of-fn": ("fn(fn(int32) -> bool, int32) -> fn() -> int32", "LANG-02.3-51"),
    "fn-of-all": (
        "fn(memref<4xfp32>, fragment<8, 8, 8, fp32>, mesh<axes=[x], shape=[1]>) -> memref<4xfp32>[addrspace=global]",
        "LANG-02.3-51",
    ),
}


@clause("LANG-02.3-47", "LANG-02.3-04")
@pytest.mark.parametrize(
    "type_", [pytest.param(text, id=name, marks=clause(tag)) for name, (text, tag) in FORMS.items()]
)
def test_a_type_of_each_form_is_accepted(impl, check, type_):
    """Each form is the type of a parameter of a func and a kernel, behind an alias, and in a fn type (AMB-RT-52)."""
    for form in (type_, f"fn({type_}) -> {type_}"):
        takes_in_funcs(impl, check, form)
    source = module(
        f"  type t = {type_};",
        func(parameters=f"a: {type_}, b: t, c: fn({type_}) -> t"),
        kernel(parameters=f"a: {type_}, b: t"),
    )
    check.accepts(impl.language.verify(source=source))


@clause("LANG-02.3-47", "LANG-02.3-04")
@pytest.mark.parametrize("type_", ["int32", "tensor<2x3xfp32>"], ids=["scalar", "tensor"])
def test_an_alias_is_lowered_as_its_type(impl, check, type_):
    """Two parameters, of the type and of its alias, have one type in Graph IR."""
    source = module(f"  type t = {type_};", kernel(parameters=f"a: {type_}, b: t"))
    arguments = graph_of(impl, check, source, "k").arguments
    check.equal(len(arguments), 2, "the number of parameters")
    check.equal(arguments[1], arguments[0], "the type of the parameter of the alias")


@clause("LANG-02.3-47")
@pytest.mark.parametrize(
    "illegal",
    ["4", '"int32"', "(int32)", "int32[4]", "[int32]", "tensor", "op.int32", "?"],
    ids=["number", "string", "group", "array", "list", "tensor", "dotted", "question-mark"],
)
def test_what_has_none_of_the_forms_is_no_type(impl, check, illegal):
    """A number, a string, a group, an array and a bare keyword are refused where a scalar type is accepted."""
    for form in ("func f(a: {}) {{ }}", "type t = {};", "func f() {{ let a: {}; }}"):
        verified_twins(impl, check, module(form.format("int32")), module(form.format(illegal)), ("syntax", "types"))


def handing(given, expected):
    """A func that hands back its parameter: legal where the two are one type."""
    return program("return a;", parameters=f"a: {given}", result=expected)


def one_type(impl, check, one, other):
    """Either may stand for the other."""
    takes_in_funcs(impl, check, one)
    for given, expected in ((one, other), (other, one)):
        check.accepts(impl.language.verify(source=handing(given, expected)), f"{given} is {expected}")


def two_types(impl, check, one, other):
    """Neither may stand for the other."""
    takes_in_funcs(impl, check, one)
    for given, expected in ((one, other), (other, one)):
        check.accepts(impl.language.verify(source=handing(given, given)))
        observation = impl.language.verify(source=handing(given, expected))
        check.rejects(observation, category=("types", "shapes", "layouts", "tile"))


@clause("LANG-02.2-19", "LANG-02.3-48")
@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize("other", ["private", "local", "constant", "generic", "host", "Shared", "shared1"])
def test_a_memref_is_shared_or_global(impl, check, space, other):
    """The two are accepted; every other address space is refused (AMB-LANG-35)."""
    takes_in_funcs(impl, check, f"memref<4xfp32>[addrspace={space}]")
    for form in ("func f(a: memref<4xfp32>[addrspace={}]) {{ }}", "type t = fn(memref<4xfp32>[addrspace={}]) -> bool;"):
        verified_twins(impl, check, module(form.format(space)), module(form.format(other)), ("types", "syntax", "tile"))


@clause("LANG-02.3-48")
def test_a_memref_without_address_space_is_global(impl, check):
    """The bracket may be left out (AMB-LANG-61)."""
    bare, shared, global_ = (f"memref<4x8xfp32>{space}" for space in ("", "[addrspace=shared]", "[addrspace=global]"))
    as_shared, as_global = (impl.language.verify(source=handing(bare, space)) for space in (shared, global_))
    is_shared = isinstance(as_shared, Returned) and isinstance(as_global, Rejected)
    check.reading("AMB-LANG-61", "absent means shared", is_shared)
    one_type(impl, check, bare, global_)
    two_types(impl, check, bare, shared)


@clause("LANG-02.3-49", "LANG-02.2-15")
@pytest.mark.parametrize("layout", ["row_major", "col_major", "blocked(bm=8,bn=4)"], ids=["row", "col", "blocked"])
def test_comma_and_semicolon_make_the_same_fragment(impl, check, layout):
    """Both spellings are one type (AMB-LANG-25)."""
    one_type(impl, check, *(f"fragment<16, 8, 4, bf16{mark} layout={layout}>" for mark in ",;"))


@clause("LANG-02.2-15")
@pytest.mark.parametrize(
    "other",
    ["8, 16, 4, bf16", "16, 4, 8, bf16", "16, 8, 8, bf16", "16, 8, 4, fp16", "16, 8, 4, bf16, layout=col_major"],
    ids=["m-n", "n-k", "k", "dtype", "layout"],
)
def test_fragments_of_other_parts_are_other_types(impl, check, other):
    """m, n, k, dtype and layout all count."""
    two_types(impl, check, "fragment<16, 8, 4, bf16>", f"fragment<{other}>")


@clause("LANG-02.3-51")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("fn(int32, bool) -> fp32", "fn(bool, int32) -> fp32"),
        ("fn(int32, bool, fp32) -> fp32", "fn(int32, fp32, bool) -> fp32"),
        ("fn(int32, bool) -> fp32", "fn(int32, bool) -> bool"),
        ("fn(int32, bool) -> fp32", "fn(int32) -> fp32"),
        ("fn() -> fp32", "fn() -> fn() -> fp32"),
        ("fn() -> fn() -> fp32", "fn(fn() -> fp32) -> fp32"),
    ],
    ids=["order", "order-of-the-rest", "result", "number", "fn-of-fn", "result-or-parameter"],
)
def test_a_fn_type_lists_its_parameters_then_its_result(impl, check, one, other):
    """Order, number and result all count; blanks do not."""
    one_type(impl, check, one, one.replace("(", "( ").replace(", ", " ,").replace(" -> ", "->"))
    two_types(impl, check, one, other)


@clause("LANG-02.3-47")
@pytest.mark.parametrize("word", ["fn", "memref", "fragment", "addrspace"])
def test_the_words_of_types_are_names_elsewhere(impl, check, word):
    """They are keywords only where the grammar asks for them (AMB-LANG-02)."""
    source = program(f"let b: int32 = {word} + 1;", f"{word} = b;", f"return {word};", parameters=f"{word}: int32")
    check.bits(value_of(impl, check, source, **integers(**{word: 4})), tensor_of("int32", 5))
