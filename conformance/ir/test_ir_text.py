"""Graph IR that no front end has made, as text: what its verifier takes and refuses (sections 1, 5 and 13.1).

A text is written once and marks where two differ: `⟦a|b⟧` is legal with a and illegal with b.
"""

import re

import pytest

from tessera_conformance.chapters.ir.kit.graph_texts import MATRIX as T
from tessera_conformance.chapters.ir.kit.graph_texts import branch, func, module, returns, softmax, yields
from tessera_conformance.chapters.ir.kit.programs import SYNTAX, accepts_if
from tessera_conformance.dsl import tensor_of
from tessera_conformance.marks import clause, feature
from tessera_conformance.tensors import Tensor

pytestmark = feature("graph-ir-text")

MARK = re.compile(r"⟦([^|⟦⟧]*)\|([^⟦⟧]*)⟧")


def case(identifier, clauses, categories, *operations, line=None, **signature):
    """A function of these operations; the mistake is reported at `line`."""
    text = module(func(*operations, **signature))
    return pytest.param(text, categories, line, id=identifier, marks=clause(*clauses))


DEFINITIONS = ("LANG-05-01", "LANG-01-03")
TYPES = ("types",)
SHAPES = ("shapes", "types")
MATRICES = "%a: tensor<2x3xfp32>, %b: tensor<3x2xfp32>"

VALUES = (("LANG-05.2-01", "LANG-11-01"), (*TYPES, "numerics"))


def constant(value, dtype):
    """A tensor of two elements."""
    return f'%k = "tessera.graph.const_tensor"() {{value = {value}}} : () -> tensor<2x{dtype}>'


CASES = [
    case(
        "use-before-definition",
        DEFINITIONS,
        TYPES,
        softmax("⟦%a|%q⟧", "%p"),
        softmax("%p", "%q"),
        returns("%q"),
        line=4,
    ),
    case("use-of-nothing", DEFINITIONS, TYPES, softmax("%⟦a|x⟧", "%p"), returns("%p"), line=4),
    case("use-of-itself", DEFINITIONS, TYPES, softmax("%⟦a|p⟧", "%p"), returns("%p"), line=4),
    case("second-definition", DEFINITIONS, TYPES, softmax("%a", "%p"), softmax("%a", "%⟦q|p⟧"), returns("%p"), line=5),
    case("second-definition-of-an-argument", DEFINITIONS, TYPES, softmax("%a", "%⟦p|b⟧"), returns("%a"), line=4),
    case(
        "result-shape",
        ("LANG-11-01", "LANG-05.2-02"),
        SHAPES,
        '%y = "tessera.graph.matmul"(%a, %b) : (tensor<2x3xfp32>, tensor<3x2xfp32>) -> tensor<2x⟦2|4⟧xfp32>',
        '"tessera.graph.return"(%a) : (tensor<2x3xfp32>) -> ()',
        takes=MATRICES,
        gives="tensor<2x3xfp32>",
        line=4,
    ),
    case(
        "result-dtype",
        ("LANG-11-01", "LANG-05.2-02"),
        (*TYPES, "numerics"),
        '%y = "tessera.graph.matmul"(%a, %b) : (tensor<2x3xfp32>, tensor<3x2xfp32>) -> tensor<2x2x⟦fp32|bf16⟧>',
        '"tessera.graph.return"(%a) : (tensor<2x3xfp32>) -> ()',
        takes=MATRICES,
        gives="tensor<2x3xfp32>",
        line=4,
    ),
    case(
        "type-of-an-operand",
        ("LANG-11-01", "LANG-01-03"),
        SHAPES,
        f'%p = "tessera.graph.softmax"(%a) : (tensor<2x⟦2|4⟧xfp32>) -> {T}',
        returns("%a"),
        line=4,
    ),
    case(
        "operand-count",
        ("LANG-11-01", "LANG-05.2-03"),
        TYPES,
        f'%p = "tessera.graph.softmax"(%a⟦|, %b⟧) : ({T}⟦|, {T}⟧) -> {T}',
        returns("%a"),
        line=4,
    ),
    case(
        "result-count",
        ("LANG-11-01", "LANG-05.2-03"),
        TYPES,
        f'%p⟦|, %q⟧ = "tessera.graph.softmax"(%a) : ({T}) -> ⟦{T}|({T}, {T})⟧',
        returns("%a"),
        line=4,
    ),
    case(
        "unknown-operation",
        ("LANG-05.2-03", "LANG-11-01"),
        TYPES,
        f'%p = "tessera.graph.soft⟦max|min⟧"(%a) : ({T}) -> {T}',
        returns("%a"),
        line=4,
    ),
    case("unknown-attribute", ("LANG-01-07",), TYPES, softmax("%a", "%p", " {ax⟦i|e⟧s = 0}"), returns("%a"), line=4),
    case(
        "two-values-of-an-attribute",
        ("LANG-01-07",),
        (*TYPES, "shapes", "syntax"),
        softmax("%a", "%p", " {axis = 0⟦|, axis = 1⟧}"),
        returns("%a"),
        line=4,
    ),
    case(
        "kind-of-an-attribute",
        ("LANG-01-07",),
        (*TYPES, "shapes"),
        softmax("%a", "%p", " {axis = ⟦0|true⟧}"),
        returns("%a"),
        line=4,
    ),
    case(
        "inner-dimensions",
        ("LANG-05.4-01",),
        ("shapes",),
        '%y = "tessera.graph.matmul"(%a, ⟦%b|%a⟧) : (tensor<2x3xfp32>, ⟦tensor<3x2xfp32>|tensor<2x3xfp32>⟧) -> '
        "⟦tensor<2x2xfp32>|tensor<2x3xfp32>⟧",
        '"tessera.graph.return"(%a) : (tensor<2x3xfp32>) -> ()',
        takes=MATRICES,
        gives="tensor<2x3xfp32>",
        line=4,
    ),
    case("axis", ("LANG-05.4-02",), SHAPES, softmax("%a", "%p", " {axis = ⟦1|2⟧}"), returns("%p"), line=4),
    case(
        "hexadecimal-axis", ("LANG-05.4-02",), SHAPES, softmax("%a", "%p", " {axis = 0x⟦1|2⟧}"), returns("%p"), line=4
    ),
    case("value-beyond-its-dtype", *VALUES, constant("⟦127|128⟧", "int8"), returns("%a"), line=4),
    case("value-below-its-dtype", *VALUES, constant("-⟦128|129⟧", "int8"), returns("%a"), line=4),
    case("value-in-a-list", *VALUES, constant("[1, ⟦127|128⟧]", "int8"), returns("%a"), line=4),
    case("value-between-integers", *VALUES, constant("⟦1|1.5⟧", "int32"), returns("%a"), line=4),
    case("value-beyond-the-floats", *VALUES, constant("1⟦0|0" + "0" * 400 + "⟧", "fp64"), returns("%a"), line=4),
    case("value-beyond-the-doubles", *VALUES, constant("1e⟦308|309⟧", "fp64"), returns("%a"), line=4),
    case("value-far-beyond-its-floats", *VALUES, constant("-1.5e⟦0|400⟧", "fp32"), returns("%a"), line=4),
    case(
        "bits-of-a-double",
        ("LANG-13.1-04", "LANG-12-01"),
        (*TYPES, "syntax", "numerics"),
        '%k = "tessera.graph.constant"() {value = 0x⟦|1⟧3FF8000000000000\n      : f64} : () -> fp64',
        returns("%a"),
        line=4,
    ),
    *(
        case(
            f"bits-of-{type_}",
            ("LANG-13.1-04", "LANG-12-01"),
            (*TYPES, "syntax", "numerics"),
            f'%k = "tessera.graph.constant"() {{value = 0x⟦|1⟧{one} : {type_}}} : () -> {dtype}',
            returns("%a"),
            line=4,
        )
        for type_, dtype, one in (("f32", "fp32", "3FC00000"), ("f16", "fp16", "3E00"), ("bf16", "bf16", "3FC0"))
    ),
    case(
        "no-value-returned",
        ("LANG-01-03", "LANG-11-01"),
        TYPES,
        softmax("%a", "%p"),
        f'"tessera.graph.return"(⟦%p|⟧) : (⟦{T}|⟧) -> ()',
    ),
    case(
        "type-that-is-returned",
        ("LANG-01-03", "LANG-11-01"),
        TYPES,
        softmax("%a", "%p"),
        f'"tessera.graph.return"(⟦%p|%c⟧) : (⟦{T}|bool⟧) -> ()',
    ),
    case("no-return", ("LANG-01-06",), (*TYPES, "syntax"), softmax("%a", "%p"), "⟦" + returns("%p") + "|⟧"),
    case(
        "behind-the-return",
        ("LANG-01-06",),
        (*TYPES, "syntax"),
        softmax("%a", "%p"),
        returns("%p"),
        "⟦|" + softmax("%a", "%q") + "⟧",
        line=6,
    ),
    case(
        "value-of-a-region",
        ("LANG-05-01", "LANG-01-06"),
        TYPES,
        branch([softmax("%a", "%t"), yields("%t")], [yields("%b")]),
        softmax("%⟦r|t⟧", "%p"),
        returns("%p"),
        line=10,
    ),
    case(
        "value-of-the-other-region",
        ("LANG-05-01", "LANG-01-06"),
        TYPES,
        branch([softmax("%a", "%t"), yields("%t")], [yields("%⟦b|t⟧")]),
        returns("%r"),
        line=8,
    ),
    case(
        "result-within-its-own-region",
        ("LANG-05-01", "LANG-01-06"),
        TYPES,
        branch([yields("%⟦a|r⟧")], [yields("%b")]),
        returns("%r"),
        line=5,
    ),
    case(
        "argument-of-a-region-behind-it",
        ("LANG-05-01", "LANG-01-06"),
        TYPES,
        f'%r = "tessera.graph.for"(%n, %n, %n, %a) ({{\n    ^bb0(%i: int32, %x: {T}):',
        "  " + yields("%x"),
        f"}}) : (int32, int32, int32, {T}) -> {T}",
        returns("%⟦r|x⟧"),
        takes=f"%a: {T}, %n: int32",
        line=8,
    ),
    case(
        "no-value-yielded",
        ("LANG-01-06",),
        TYPES,
        branch([f'"tessera.graph.yield"(⟦%a|⟧) : (⟦{T}|⟧) -> ()'], [yields("%b")]),
        returns("%r"),
    ),
    case(
        "yields-of-two-types",
        ("LANG-01-06", "LANG-11-01"),
        TYPES,
        branch([yields("%a")], [f'"tessera.graph.yield"(%⟦b|c⟧) : (⟦{T}|bool⟧) -> ()']),
        returns("%r"),
    ),
    case(
        "type-for-an-operand",
        ("LANG-11-01", "LANG-01-03"),
        TYPES,
        f'%p = "tessera.graph.softmax"(%a) : ({T}⟦|, {T}⟧) -> {T}',
        returns("%p"),
        line=4,
    ),
    case(
        "yield-of-a-function",
        ("LANG-01-06",),
        (*TYPES, "syntax"),
        f'"tessera.graph.⟦return|yield⟧"(%a) : ({T}) -> ()',
        line=4,
    ),
    case(
        "result-of-a-terminator",
        ("LANG-01-06", "LANG-11-01"),
        (*TYPES, "syntax"),
        f'⟦|%x = ⟧"tessera.graph.return"(%a) : ({T}) -> ⟦()|{T}⟧',
        line=4,
    ),
    case(
        "regions-of-an-unknown-operation",
        ("LANG-05.2-03", "LANG-11-01"),
        TYPES,
        branch([yields("%a")], [yields("%b")]).replace("graph.if", "graph.⟦if|unless⟧"),
        returns("%r"),
        line=4,
    ),
    case(
        "type-of-an-argument-of-a-region",
        ("LANG-01-06", "LANG-11-01"),
        TYPES,
        f'%r = "tessera.graph.for"(%n, %n, %n, %a) ({{\n    ^bb0(%i: int⟦32|64⟧, %x: {T}):',
        "  " + yields("%x"),
        f"}}) : (int32, int32, int32, {T}) -> {T}",
        returns("%r"),
        takes=f"%a: {T}, %n: int32",
        line=4,
    ),
    case(
        "yields-of-a-scalar-first",
        ("LANG-01-06", "LANG-11-01"),
        TYPES,
        branch([f'"tessera.graph.yield"(%⟦a|c⟧) : (⟦{T}|bool⟧) -> ()'], [yields("%b")]),
        returns("%r"),
    ),
    case(
        "condition",
        ("LANG-11-01",),
        TYPES,
        branch([yields("%a")], [yields("%b")]).replace("(%c)", "(%⟦c|n⟧)").replace("(bool)", "(⟦bool|int32⟧)"),
        returns("%r"),
        takes=f"%a: {T}, %b: {T}, %c: bool, %n: int32",
        line=4,
    ),
    case(
        "carried-value",
        ("LANG-01-06", "LANG-11-01"),
        TYPES,
        f'%r = "tessera.graph.while"(%a) ({{\n    ^bb0(%x: {T}):',
        f'  "tessera.graph.yield"(%⟦c|x⟧) : (⟦bool|{T}⟧) -> ()',
        f"}}, {{\n    ^bb0(%y: {T}):",
        "  " + yields("%y"),
        f"}}) : ({T}) -> {T}",
        returns("%r"),
    ),
]


def twins(marked):
    """The legal text and the illegal one."""
    return MARK.sub(lambda mark: mark[1], marked), MARK.sub(lambda mark: mark[2], marked)


def judge(impl, check, marked, categories, line):
    """The legal text verifies; the illegal one is refused, in one of these categories and at this line."""
    legal, illegal = twins(marked)
    check.accepts(impl.language.verify_ir(text=legal))
    check.rejects(impl.language.verify_ir(text=illegal), category=categories, at_line=line)


@pytest.mark.parametrize(("marked", "categories", "line"), CASES)
def test_a_mistake_in_a_function_is_refused(impl, check, marked, categories, line):
    """A function of Graph IR with one mistake is refused at its place; its twin without it is accepted."""
    judge(impl, check, marked, categories, line)


@clause("LANG-05-01", "LANG-01-03")
@pytest.mark.parametrize("length", [31, 63, 255], ids=str)
def test_names_of_values_differ_in_every_letter(impl, check, length):
    """Two values whose names differ in the last letter are two; of one name they are not."""
    first, last = (f"%{'v' * length}{letter}" for letter in "ab")
    for name in (last, first):
        text = module(func(softmax("%a", first), softmax(first, name), returns(name)))
        accepts_if(check, name == last, impl.language.verify_ir(text=text), category=TYPES)


MESH = '  "tessera.graph.mesh"() {sym_name = "g", axes = ["dp", "tp"], shape = [4, 2]} : () -> ()'


@clause("LANG-05.4-04")
@pytest.mark.parametrize(
    ("attributes", "categories"),
    [
        ('axis = "⟦dp|ep⟧", op = "sum"', ("distributed",)),
        ('axis = "dp", op = "⟦sum|xor⟧"', ("distributed", "types")),
        ('axis = "dp"⟦, op = "sum"|⟧', ("distributed", "types")),
    ],
    ids=["axis", "op", "no-op"],
)
def test_a_collective_names_an_axis_of_the_mesh_and_what_it_computes(impl, check, attributes, categories):
    """An all-reduce along an axis of the module's mesh is accepted; along another, or computing nothing known, not."""
    operation = f'%r = "tessera.graph.all_reduce"(%a) {{{attributes}}} : ({T}) -> {T}'
    judge(impl, check, module(MESH, func(operation, returns("%r"))), categories, 5)


@clause("LANG-05.4-04")
def test_a_collective_needs_a_mesh(impl, check):
    """The same all-reduce is refused in a module without a mesh."""
    operation = f'%r = "tessera.graph.all_reduce"(%a) {{axis = "dp", op = "sum"}} : ({T}) -> {T}'
    function = func(operation, returns("%r"))
    check.accepts(impl.language.verify_ir(text=module(MESH, function)))
    check.rejects(impl.language.verify_ir(text=module(function)), category="distributed")


@clause("LANG-05-03")
def test_symbols_belong_to_their_module(impl, check):
    """Two modules may each have a function f; one module may not."""
    function = func(returns("%a"))
    check.accepts(impl.language.verify_ir(text=module(function) + module(function, name="n")))
    check.accepts(impl.language.verify_ir(text=module(function, func(returns("%a"), name="g"))))
    check.rejects(impl.language.verify_ir(text=module(function, function)), category="types")


@clause("LANG-05-03")
def test_a_call_finds_functions_of_its_module_only(impl, check):
    """A callee of the same module is found, also further down; one of another module is not."""
    caller = func(f'%r = "tessera.graph.call"(%a) {{callee = "g"}} : ({T}) -> {T}', returns("%r"))
    callee = func(returns("%x"), takes=f"%x: {T}", name="g")
    check.accepts(impl.language.verify_ir(text=module(caller, callee)))
    check.rejects(impl.language.verify_ir(text=module(caller) + module(callee, name="n")), category="types", at_line=4)
    check.rejects(impl.language.verify_ir(text=module(callee, name="n") + module(caller)), category="types")


@clause("LANG-05-03")
def test_a_recursive_function_is_refused(impl, check):
    """f calls g; that g calls f too is refused (AMB-LANG-97)."""
    call = f'%r = "tessera.graph.call"(%a) {{callee = "⟦h|f⟧"}} : ({T}) -> {T}'
    caller = func(call.replace("⟦h|f⟧", "g"), returns("%r"), takes=f"%a: {T}")
    back = func(call, returns("%r"), takes=f"%a: {T}", name="g")
    last = func(returns("%a"), takes=f"%a: {T}", name="h")
    legal, illegal = twins(module(caller, back, last))
    check.accepts(impl.language.verify_ir(text=legal))
    check.rejects(impl.language.verify_ir(text=illegal), category="types")


FORMS = {
    "generic": f'%p = "tessera.graph.softmax"(%a) {{axis = 0}} : ({T}) -> {T}',
    "generic-over-lines": f'%p = "tessera.graph.softmax"(%a)\n      {{axis = 0}}\n      : ({T}) -> {T}',
    "unquoted": f"%p = tessera.graph.softmax %a {{axis = 0}} : {T} -> {T}",
    "unquoted-with-parentheses": f"%p = tessera.graph.softmax(%a) {{axis = 0}} : ({T}) -> {T}",
    "results-in-parentheses": f'%p = "tessera.graph.softmax"(%a) {{axis = 0}} : ({T}) -> ({T})',
    "comment": f'%p = "tessera.graph.softmax"(%a) {{axis = 0}} // of columns\n      : ({T}) -> {T}',
    "location": f'%p = "tessera.graph.softmax"(%a) {{axis = 0}} : ({T}) -> {T} loc("f.tessera":12:7)',
    "unknown-location": f'%p = "tessera.graph.softmax"(%a) {{axis = 0}} : ({T}) -> {T} loc(unknown)',
    "location-in-no-line": f'%p = "tessera.graph.softmax"(%a) {{axis = 0}} : ({T}) -> {T} loc("f.tessera":0:0)',
    "properties": f'%p = "tessera.graph.softmax"(%a) <{{axis = 0}}> : ({T}) -> {T}',
    "quoted-attribute": f'%p = "tessera.graph.softmax"(%a) {{"axis" = 0}} : ({T}) -> {T}',
    "typed-attribute": f'%p = "tessera.graph.softmax"(%a) {{axis = 0 : i64}} : ({T}) -> {T}',
}


@clause("LANG-13.1-04")
@pytest.mark.parametrize("form", FORMS)
def test_operations_read_with_and_without_quotes(impl, check, form):
    """Each form means the softmax that it names: accepted, and refused with an axis out of range (AMB-LANG-66)."""
    text = module(func(FORMS[form], returns("%p")))
    check.accepts(impl.language.verify_ir(text=text))
    check.rejects(impl.language.verify_ir(text=re.sub(r'(axis"?) = 0', r"\1 = 2", text)), category=SHAPES)


@clause("LANG-13.1-04")
def test_an_argument_may_have_a_location(impl, check):
    """As MLIR prints the arguments of a block; the argument has its type all the same (AMB-LANG-190)."""
    text = module(func(softmax("%a", "%p"), returns("%p"), takes=f"%a: {T}"))
    located = text.replace(f"(%a: {T})", f'(%a: {T} loc("f.tessera":2:8))')
    check.true(located != text, "a location is added")
    check.accepts(impl.language.verify_ir(text=located))
    check.rejects(impl.language.verify_ir(text=located.replace(f"(%a: {T} loc", "(%a: int32 loc")), category=TYPES)


@clause("LANG-13.1-04", "LANG-01-03")
@pytest.mark.parametrize(
    ("results", "values"),
    [("%r:3", ("%r#0", "%r#1", "%r#2")), ("%p, %r:2", ("%p", "%r#0", "%r#1")), ("%r:2, %p", ("%r#0", "%r#1", "%p"))],
    ids=["all", "last-two", "first-two"],
)
def test_one_name_stands_for_several_results(impl, check, results, values):
    """`%r:2` names two results, `%r#0` and `%r#1`, as MLIR prints them, in order (AMB-LANG-190)."""
    types = ", ".join(["int32"] * 3)
    callee = func(
        f'"tessera.graph.return"(%c, %a, %b) : ({types}) -> ()',
        takes="%a: int32, %b: int32, %c: int32",
        gives=types,
        name="g",
    )
    caller = func(
        f'{results} = "tessera.graph.call"(%a, %b, %c) {{callee = "g"}} : ({types}) -> ({types})',
        f'"tessera.graph.return"({", ".join(values)}) : ({types}) -> ()',
        takes="%a: int32, %b: int32, %c: int32",
        gives=types,
    )
    inputs = {name: tensor_of("int32", number) for name, number in zip("abc", (5, 7, 11), strict=True)}
    text = module(caller, callee)
    actual = check.returns(impl.language.execute_ir(text=text, function="f", inputs=inputs, at="graph"))["outputs"]
    check.equal(len(actual), 3, "the number of results")
    for name, result, number in zip(values, actual, (11, 5, 7), strict=True):
        check.bits(result, tensor_of("int32", number), name)


NUMBERS = {
    "i32": ("-7 : i32", "int32", -7),
    "i64": ("9007199254740993 : i64", "int64", 2**53 + 1),
    "i8": ("-128 : i8", "int8", -128),
    "f32": ("1.5 : f32", "fp32", 1.5),
    "f64": ("-2.5e3 : f64", "fp64", -2500.0),
    "bf16": ("0.5 : bf16", "bf16", 0.5),
    "f8E4M3FN": ("1.125 : f8E4M3FN", "fp8_e4m3", 1.125),
}


@clause("LANG-13.1-04", "LANG-05.2-01")
@pytest.mark.parametrize(("written", "dtype", "number"), NUMBERS.values(), ids=NUMBERS)
def test_a_number_may_have_its_type_behind_it(impl, check, written, dtype, number):
    """As MLIR prints every number but an i64 or f64: it is the same number (AMB-LANG-190)."""
    ends = f'"tessera.graph.return"(%k) : ({dtype}) -> ()'
    text = module(
        func(f'%k = "tessera.graph.constant"() {{value = {written}}} : () -> {dtype}', ends, takes="", gives=dtype)
    )
    (actual,) = check.returns(impl.language.execute_ir(text=text, function="f", inputs={}, at="graph"))["outputs"]
    check.bits(actual, tensor_of(dtype, number))
    if written.startswith("-128"):
        beyond = text.replace(written, "-129 : i8")
        check.rejects(impl.language.verify_ir(text=beyond), category=(*TYPES, "syntax", "numerics"))


@clause("LANG-13.1-04", "LANG-05-03")
@pytest.mark.parametrize("written", [r"\66oo", r"f\6Fo", r"fo\6f", r"\66\6F\6f"])
def test_a_character_of_a_string_may_be_two_hexadecimal_digits(impl, check, written):
    """As MLIR escapes the bytes of a string, with digits of either case (AMB-LANG-190); the name is foo."""
    number = tensor_of("int32", 7)
    function = func('"tessera.graph.return"(%n) : (int32) -> ()', takes="%n: int32", gives="int32", name=written)
    answer = impl.language.execute_ir(text=module(function), function="foo", inputs={"n": number}, at="graph")
    (actual,) = check.returns(answer)["outputs"]
    check.bits(actual, number)


@clause("LANG-05.2-06")
@pytest.mark.parametrize("wrt", ["%a, %b", "%b, %a"], ids=["in-order", "turned"])
def test_a_printed_gradient_has_a_result_for_each_operand_of_wrt(impl, check, wrt):
    """`%g, %h = tessera.graph.grad %y, %wrt(%a, %b)`: of a product the other factor each (AMB-LANG-58)."""
    type_ = "tensor<2xfp32>"
    function = func(
        f'%y = "tessera.graph.multiply"(%a, %b) : ({type_}, {type_}) -> {type_}',
        f"%g, %h = tessera.graph.grad %y, %wrt({wrt}) : ({type_}, {type_}, {type_}) -> ({type_}, {type_})",
        f'"tessera.graph.return"(%g, %h) : ({type_}, {type_}) -> ()',
        takes=f"%a: {type_}, %b: {type_}",
        gives=f"{type_}, {type_}",
    )
    inputs = {"a": tensor_of("fp32", [2, -3]), "b": tensor_of("fp32", [5, 7])}
    answer = impl.language.execute_ir(text=module(function), function="f", inputs=inputs, at="graph")
    actual = check.returns(answer)["outputs"]
    check.equal(len(actual), 2, "the number of gradients")
    for name, gradient in zip(wrt.split(", "), actual, strict=True):
        check.bits(gradient, inputs["b" if name == "%a" else "a"], f"the gradient of {name}")


@clause("LANG-13.1-04", "LANG-05.2-02")
def test_the_sample_of_section_13_1_is_accepted(impl, check):
    """The matmul as section 13.1 prints it, around it a function; with another inner dimension it is refused."""
    matrix, other = "tensor<1024x1024xbf16>", "tensor<⟦1024|1023⟧x1024xbf16>"
    legal, illegal = twins(
        module(
            func(
                f'%C = "tessera.graph.matmul"(%A, %B)\n         : ({matrix}, {other}) -> {matrix}',
                f'"tessera.graph.return"(%C) : ({matrix}) -> ()',
                takes=f"%A: {matrix}, %B: {other}",
                gives=matrix,
            )
        )
    )
    check.accepts(impl.language.verify_ir(text=legal))
    check.rejects(impl.language.verify_ir(text=illegal), category="shapes", at_line=4)


@clause("LANG-05.2-01")
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize(("shape", "zeros"), [("4", [0] * 4), ("2x3", [[0] * 3] * 2)])
def test_a_constant_is_accepted_as_section_5_2_prints_it(impl, check, shape, zeros, dtype):
    """`%t  = tessera.graph.const_tensor  : tensor<...>` gives its type alone: zeros of that type (AMB-LANG-53)."""
    type_ = f"tensor<{shape}x{dtype}>"
    legal, illegal = twins(
        module(
            func(
                f"%t  = tessera.graph.const_tensor  : tensor<⟦{shape}|7⟧x{dtype}>",
                f'"tessera.graph.return"(%t) : ({type_}) -> ()',
                takes="",
                gives=type_,
            )
        )
    )
    actual = check.returns(impl.language.execute_ir(text=legal, function="f", inputs={}, at="graph"))["outputs"]
    check.equal(len(actual), 1, "the number of results")
    check.bits(actual[0], tensor_of(dtype, zeros))
    check.rejects(impl.language.verify_ir(text=illegal), category=SHAPES)


BITS = {
    "fp64": ("f64", [0xFFF0000000000000, 0x7FF0000000000000, 0x8000000000000000, 0x7FF8000000000000]),
    "fp32": ("f32", [0xFF800000, 0x7F800000, 0x80000000, 0x7FC00000]),
    "fp16": ("f16", [0xFC00, 0x7C00, 0x8000, 0x7E00]),
    "bf16": ("bf16", [0xFF80, 0x7F80, 0x8000, 0x7FC0]),
    "fp8_e5m2": ("f8E5M2", [0xFC, 0x7C, 0x80, 0x7E]),
}
"""By dtype its MLIR type, and the bits of both infinities, a zero and a NaN."""


@clause("LANG-05.2-01", "LANG-13.1-04")
@pytest.mark.parametrize("dtype", BITS)
def test_a_constant_of_bits_has_those_bits(impl, check, dtype):
    """As MLIR prints what no decimal stands for: infinities, and NaN in any bits of one."""
    type_, words = BITS[dtype]
    for word in words:
        text = module(
            func(
                f'%k = "tessera.graph.constant"() {{value = 0x{word:X} : {type_}}} : () -> {dtype}',
                f'"tessera.graph.return"(%k) : ({dtype}) -> ()',
                takes="",
                gives=dtype,
            )
        )
        (actual,) = check.returns(impl.language.execute_ir(text=text, function="f", inputs={}, at="graph"))["outputs"]
        check.bits(actual, Tensor.from_words(dtype, (), [word]), "the value of the attribute")


MALFORMED = {
    "open-region": lambda text: text.replace("  }) {sym_name", "  ) {sym_name"),
    "open-operands": lambda text: text.replace("(%a)", "(%a"),
    "no-arrow": lambda text: text.replace(f"({T}) -> {T}\n", f"({T}) {T}\n"),
    "open-string": lambda text: text.replace('"tessera.graph.softmax"', '"tessera.graph.softmax'),
    "no-operation": lambda text: text.replace('%p = "tessera.graph.softmax"(%a)', "%p = (%a)"),
    "strange-character": lambda text: text.replace("%p =", "%p ;="),
    "nothing-but-a-brace": lambda text: "}",
    "attribute-without-a-value": lambda text: text.replace("(%a) :", "(%a) {axis = } :"),
    "attribute-of-a-value": lambda text: text.replace("(%a) :", "(%a) {axis = %a} :"),
    "location-without-a-column": lambda text: text.replace(f"-> {T}\n", f'-> {T} loc("f.tessera":12)\n'),
    "location-in-no-line": lambda text: text.replace(f"-> {T}\n", f'-> {T} loc("f.tessera":-12:7)\n'),
    "location-in-no-file": lambda text: text.replace(f"-> {T}\n", f"-> {T} loc(12:7)\n"),
    "open-location": lambda text: text.replace(f"-> {T}\n", f'-> {T} loc("f.tessera":12:7\n'),
}


@clause("LANG-13.1-04")
@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_not_in_the_generic_form_is_refused(impl, check, name):
    """A text that breaks the form is refused as syntax; the same text unbroken is accepted."""
    text = module(func(softmax("%a", "%p"), returns("%p")))
    check.accepts(impl.language.verify_ir(text=text))
    broken = MALFORMED[name](text)
    check.true(broken != text, "the text is broken")
    check.rejects(impl.language.verify_ir(text=broken), **SYNTAX)


@clause("LANG-12-01", "LANG-12-02", "LANG-12-03")
def test_a_verifier_names_the_place_the_operands_and_a_remedy(impl, check):
    """Inner dimensions that differ are reported at the operation, with the shapes of its operands and what to do."""
    operation = '%y = "tessera.graph.matmul"(%a, %a) : (tensor<2x3xfp32>, tensor<2x3xfp32>) -> tensor<2x3xfp32>'
    text = module(func(operation, '"tessera.graph.return"() : () -> ()', takes="%a: tensor<2x3xfp32>", gives=""))
    actual = check.rejects(impl.language.verify_ir(text=text), category="shapes", at_line=4)
    entries = [entry for entry in actual.diagnostics if entry.line == 4]
    check.true(
        any("2x3" in "".join([*entry.operands, entry.message]) for entry in entries), "shapes are named", entries
    )
    check.true(
        any(entry.remedy or entry.requirement for entry in entries), "a remedy or a requirement is named", entries
    )
