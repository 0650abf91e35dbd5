"""IR text: places and words of refusals, names, and limits on nesting (AMB-LANG-53, AMB-LANG-66, AMB-LANG-280)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tessera_reference.target_ir.operations
import tessera_reference.tile.operations  # noqa: F401
from tessera_reference.ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct
from tessera_reference.ir.operation import Function
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_parser import MOST_NESTED, MOST_REGIONS, TextOperation, parse_text
from tessera_reference.ir.text_reader import read_modules
from tessera_reference.language import compile_source


def parse(text: str) -> list[TextOperation]:
    return parse_text(text, "t.mlir")[0]


def error(text: str) -> Diagnostic:
    with pytest.raises(Rejection) as caught:
        parse(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.filename == "t.mlir"
    assert diagnostic.requirement
    return diagnostic


PLACED: dict[str, tuple[str, str, int, int, str]] = {
    "character": ('"t.f"()\n  $', "lex", 2, 3, "unexpected character '$'"),
    "nul": ('"t.f"()\x00', "lex", 1, 8, "unexpected character '\\x00'"),
    "string": ('"t.f"() {a = "open\n"}', "lex", 1, 14, "a string does not end on its line"),
    "escape": ('"t.f"() {a = "\\q"}', "parse", 1, 14, "a string has an escape that is none"),
    "bytes": ('"t.f"() {a = "\\FF"}', "parse", 1, 14, "a string has an escape that is none"),
    "no operation": ("17", "parse", 1, 1, "expected an operation, found '17'"),
    "no name": ("%a = %b", "parse", 1, 6, "expected an operation, found '%b'"),
    "no equals": ('%a "t.f"()', "parse", 1, 4, "expected '=' behind the results"),
    "two of one result": ('%a:0 = "t.f"()', "parse", 1, 4, "'0' results of one name"),
    "open operands": ('"t.f"(%a, )', "parse", 1, 11, "expected an operand, found ')'"),
    "no comma": ('"t.f"(%a %b)', "parse", 1, 10, "expected ')' behind the operands, found '%b'"),
    "open region": ('"t.f"() ({', "parse", 1, 11, "found the end of the text"),
    "two blocks": ('"t.f"() ({\n^bb0:\n^bb1:\n})', "parse", 3, 1, "a region has a second block"),
    "no colon": ('"t.f"() ({\n^bb0(%x fp32):\n})', "parse", 2, 9, "expected ':' behind %x"),
    "no value": ('"t.f"() {a = }', "parse", 1, 14, "expected the value of an attribute, found '}'"),
    "no entry": ('"t.f"() {1 = 1}', "parse", 1, 10, "expected an attribute, found '1'"),
    "twice": ('"t.f"() {a = 1, a = 1}', "parse", 1, 17, "attribute 'a' is given twice"),
    "trailing comma": ('"t.f"() {a = [1, ]}', "parse", 1, 18, "expected the value of an attribute, found ']'"),
    "open list": ('"t.f"() {a = [1 2]}', "parse", 1, 17, "expected ',' between the items of a list"),
    "number": ('"t.f"() {a = 1 : "x"}', "parse", 1, 18, "expected a type"),
    "double": ('"t.f"() {a = 0x10000000000000000 : f64}', "parse", 1, 14, "0x10000000000000000 is no f64 of 64 bits"),
    "narrow float": ('"t.f"() {a = 0x10000 : bf16}', "parse", 1, 14, "0x10000 is no bf16 of 16 bits"),
    "type of no number": ('"t.f"() {a = 1.0 : foo}', "parse", 1, 14, "'foo' is no type of floats"),
    "float as integer": ('"t.f"() {a = 1.0 : i32}', "parse", 1, 14, "'i32' is no type of floats"),
    "unknown width": ('"t.f"() {a = 7 : i0}', "parse", 1, 14, "'i0' is no type of numbers"),
    "no type": ('"t.f"() : 4', "parse", 1, 11, "expected a type, found '4'"),
    "no arrow": ('"t.f"() : (fp32)', "parse", 1, 17, "expected '->'"),
    "open function type": (
        '"t.f"() : !tessera.fn<(fp32) -> fp32',
        "parse",
        1,
        37,
        "expected '>' behind a function type",
    ),
    "location": ('"t.f"() loc("a":1)', "parse", 1, 18, "expected ':' in a location"),
    "negative line": ('"t.f"() loc("a":-1:2)', "parse", 1, 17, "expected a number"),
    "long line": ('"t.f"() loc("a":1234567890:2)', "parse", 1, 17, "expected a number"),
    "strange location": ('"t.f"() loc(here)', "parse", 1, 13, "expected a location"),
}


@pytest.mark.parametrize("name", PLACED)
def test_an_error_is_told_at_its_place(name: str) -> None:
    text, phase, line, column, message = PLACED[name]
    actual = error(text)
    assert (actual.category, actual.phase) == ("syntax", phase)
    assert (actual.span.line, actual.span.column) == (line, column)
    assert message in actual.message


def test_the_place_of_an_error_is_the_token() -> None:
    actual = error('"t.f"() {\n  axis 0}')
    assert (actual.span.line, actual.span.column, actual.span.end_line, actual.span.end_column) == (2, 8, 2, 9)
    actual = error('"t.f"() {a = false, a = true}')
    assert (actual.span.column, actual.span.end_column) == (21, 22)
    actual = error('"t.f"() {')
    assert (actual.span.column, actual.span.end_column) == (10, 11)


def test_a_wrong_type_has_its_own_category() -> None:
    actual = error('"t.f"() :\n  tensor<4xfp31>')
    assert (actual.category, actual.span.line, actual.span.column, actual.span.end_column) == ("types", 2, 3, 17)
    assert actual.remedy == "did you mean fp32?"


def test_many_digits_are_refused() -> None:
    assert "a number of 10000 digits" in error('"t.f"() {a = ' + "9" * 10_000 + "}").message
    assert "a number of 10002 digits" in error('"t.f"() {a = 0x' + "f" * 10_000 + "}").message


def nested_lists(depth: int) -> str:
    return f'"t.f"() {{a = {"[" * depth}{"]" * depth}}}'


def nested_behind_another(depth: int) -> str:
    return f'"t.f"() {{a = {"[1, " * (depth - 1)}[]{"]" * (depth - 1)}}}'


def nested_regions(depth: int) -> str:
    return f"{'t.f ({' * depth}{'})' * depth}"


def nested_types(depth: int) -> str:
    return f'"t.f"() : {"fn(" * depth}fp32{") -> fp32" * depth}'


def nested_operand_types(depth: int) -> str:
    return f'"t.f"() : ({"fn(" * depth}fp32{") -> fp32" * depth}) -> fp32'


@pytest.mark.parametrize(
    ("nest", "most"),
    [
        (nested_lists, MOST_NESTED + 1),
        (nested_behind_another, MOST_NESTED + 1),
        (nested_regions, MOST_REGIONS),
        (nested_types, MOST_NESTED + 1),
        (nested_operand_types, MOST_NESTED + 1),
    ],
    ids=["lists", "second-items", "regions", "types", "types-of-operands"],
)
def test_nesting_has_a_limit_that_is_told(nest: Callable[[int], str], most: int) -> None:
    assert len(parse(nest(most))) == 1
    for depth in (most + 1, 10 * most):
        with pytest.raises(UnsupportedConstruct) as caught:
            parse(nest(depth))
        assert caught.value.feature == "ir.deep_nesting"


Reject = Callable[[str], list[Diagnostic]]


def test_the_longest_number_has_a_place_in_a_message(rejected: Reject) -> None:
    longest = "0x" + "f" * 3498
    module_text = print_module(
        compile_source("module m { func f(a: tensor<2xfp32>) { return op.softmax(a); } }", "t.tsr").module
    )
    (actual,) = rejected(module_text.replace("axis = -1", f"axis = {longest}"))
    assert actual.message.startswith(f"softmax: axis {int(longest, 16)}")


def module(body: str, name: str = "m") -> str:
    return f'"builtin.module"() ({{\n{body}\n}}) {{sym_name = "{name}"}} : () -> ()\n'


def func(body: str, arguments: str = "", results: str = "", name: str = "f", kind: str = "func", more: str = "") -> str:
    """A function whose first operation stands on the third line of its text."""
    types = ", ".join(part.partition(":")[2].strip() for part in arguments.split(", ") if part)
    return (
        f'"tessera.graph.{kind}"() ({{\n^bb0({arguments}):\n{body}\n}})'
        f' {{sym_name = "{name}", function_type = ({types}) -> ({results}){more}}} : () -> ()'
    )


def read(body: str, arguments: str = "", results: str = "") -> Function:
    return read_modules(module(func(body, arguments, results)))[0].functions["f"]


def test_names_that_siblings_share_become_unique() -> None:
    """MLIR lets two regions use one name; here a name is given once (LANG-01-03)."""
    body = """
    %c = "tessera.graph.constant"() {value = true} : () -> bool
    %r = "tessera.graph.if"(%c) ({
      %0 = "tessera.graph.constant"() {value = 1.5} : () -> fp32
      "tessera.graph.yield"(%0) : (fp32) -> ()
    }, {
      %0 = "tessera.graph.constant"() {value = 2.5} : () -> fp32
      "tessera.graph.yield"(%0) : (fp32) -> ()
    }) : (bool) -> fp32
    "tessera.graph.return"(%r) : (fp32) -> ()"""
    function = read(body, "", "fp32")
    names = [value.name for instruction in function.body.walk() for value in instruction.results]
    assert len(names) == len(set(names)) == 4
    constants = [
        instruction.operation.attributes["value"]
        for instruction in function.body.walk()
        if instruction.operation.attributes
    ]
    assert constants == [True, 1.5, 2.5]


def test_results_of_one_name_are_told_apart_by_number() -> None:
    body = """
    %0:2 = "tessera.graph.call"(%x) {callee = "g"} : (fp32) -> (fp32, int32)
    "tessera.graph.return"(%0#1, %0#0, %0) : (int32, fp32, fp32) -> ()"""
    g = func("tessera.graph.return %a, %b", "%a: fp32, %b: int32", "fp32, int32", "g")
    g = g.replace("%a: fp32, %b: int32", "%a: fp32").replace("(fp32, int32) ->", "(fp32) ->")
    g = g.replace("^bb0(%a: fp32):", '^bb0(%a: fp32):\n%b = "tessera.graph.constant"() {value = 1} : () -> int32')
    (read,) = read_modules(module(func(body, "%x: fp32", "int32, fp32, fp32") + g))
    (call,) = read.functions["f"].body.instructions
    first, second = call.results
    assert read.functions["f"].body.results == (second, first, first)


def test_several_modules_also_in_one_that_a_tool_puts_around_them() -> None:
    two = module("", "a") + module("", "b")
    for text in (two, f'"builtin.module"() ({{{two}}}) : () -> ()'):
        assert [module.name for module in read_modules(text)] == ["a", "b"]


def test_a_module_stands_beside_functions_in_no_module(rejected: Reject) -> None:
    mixed = f'"builtin.module"() ({{{module("", "a")}{func("tessera.graph.return")}}}) : () -> ()'
    (actual,) = rejected(mixed)
    assert actual.message == "module: is in a module, outside functions"


@pytest.mark.parametrize(("owner", "name"), [("function", "return"), ("region", "yield")])
def test_a_block_without_terminator_is_told_which_it_needs(owner: str, name: str, rejected: Reject) -> None:
    branch = '"tessera.graph.if"(%c) ({}, {tessera.graph.yield}) : (bool) -> ()\ntessera.graph.return'
    (actual,) = rejected(module(func("" if owner == "function" else branch, "%c: bool")))
    assert actual.requirement == f'"tessera.graph.{name}"(...) at its end'
    assert actual.span.end_column == actual.span.column + 1


# Refusals. Each is a body that is read, and what is changed in it.

CONSTANT = '%n = "tessera.graph.constant"() {value = 3} : () -> int32'
BODY = """\
%c = "tessera.graph.constant"() {value = true} : () -> bool
%n = "tessera.graph.constant"() {value = 3} : () -> int32
%y = "tessera.graph.matmul"(%a, %b) {accum = "fp32"} : (tensor<2x3xfp32>, tensor<3x2xfp32>) -> tensor<2x2xfp32>
%r = "tessera.graph.if"(%c) ({
  %t = "tessera.graph.negate"(%y) : (tensor<2x2xfp32>) -> tensor<2x2xfp32>
  "tessera.graph.yield"(%t) : (tensor<2x2xfp32>) -> ()
}, {
  "tessera.graph.yield"(%y) : (tensor<2x2xfp32>) -> ()
}) : (bool) -> tensor<2x2xfp32>
%w = "tessera.graph.for"(%n, %n, %n, %r) ({
^bb0(%i: int32, %k: tensor<2x2xfp32>):
  "tessera.graph.yield"(%k) : (tensor<2x2xfp32>) -> ()
}) : (int32, int32, int32, tensor<2x2xfp32>) -> tensor<2x2xfp32>
%v = "tessera.graph.while"(%w) ({
^bb0(%p: tensor<2x2xfp32>):
  "tessera.graph.yield"(%c) : (bool) -> ()
}, {
^bb0(%q: tensor<2x2xfp32>):
  "tessera.graph.yield"(%q) : (tensor<2x2xfp32>) -> ()
}) : (tensor<2x2xfp32>) -> tensor<2x2xfp32>
%g = "tessera.graph.call"(%v) {callee = "g"} : (tensor<2x2xfp32>) -> tensor<2x2xfp32>
%s = "tessera.graph.all_reduce"(%g) {axis = "dp", op = "sum"} : (tensor<2x2xfp32>) -> tensor<2x2xfp32>
%d:2 = "tessera.graph.grad"(%s, %a, %b) : (tensor<2x2xfp32>, tensor<2x3xfp32>, tensor<3x2xfp32>) -> \
(tensor<2x3xfp32>, tensor<3x2xfp32>)
"tessera.graph.return"(%s) : (tensor<2x2xfp32>) -> ()"""
MESH = '"tessera.graph.mesh"() {sym_name = "g0", axes = ["dp"], shape = [2]} : () -> ()\n'
CALLEE = func("tessera.graph.return %x", "%x: tensor<2x2xfp32>", "tensor<2x2xfp32>", "g")
WHOLE = module(MESH + func(BODY, "%a: tensor<2x3xfp32>, %b: tensor<3x2xfp32>", "tensor<2x2xfp32>") + "\n" + CALLEE)
REFUSALS: dict[str, tuple[str, str, int, str, str]] = {
    # what stands there, what is put there, the line, the category, part of the message
    "a number of no result": ("(%s, %a, %b)", "(%s#1, %a, %b)", 27, "types", "%s#1 is not defined"),
    "operand layout": (
        "(%s) : (tensor<2x2xfp32>)",
        "(%s) : (tensor<2x2xfp32; layout=col_major>)",
        28,
        "layouts",
        "%s is tensor<2x2xfp32; layout=col_major>",
    ),
    "names of parameters": (
        '{sym_name = "g", ',
        '{sym_name = "g", parameters = [1], ',
        33,
        "types",
        "parameters is not a list",
    ),
    "kind of an attribute that may be left out": ('{accum = "fp32"}', "{out = [1]}", 7, "types", "out is not a dtype"),
    "a constant between two values of its dtype": (
        CONSTANT,
        f'%m = "tessera.graph.constant"() {{value = 9007199254740993}} : () -> fp64\n{CONSTANT}',
        6,
        "types",
        "9007199254740993 is no value of fp64",
    ),
    "a number of a dtype without a fraction": (
        "() -> int32",
        "() -> tensor<2xint32>",
        6,
        "types",
        "stated to be a scalar",
    ),
    "a region where there is none": (
        "(%y) : (tensor",
        "(%y) ({tessera.graph.yield}) : (tensor",
        9,
        "types",
        "1 region given",
    ),
    "an operand of what is never reached": (
        '"tessera.graph.yield"(%k)',
        '"tessera.graph.unreachable"(%k)',
        16,
        "types",
        "a terminator has operands only",
    ),
    "no name": ('sym_name = "g0", ', "", 2, "types", "has no name"),
    "an operation outside functions": ("tessera.graph.mesh", "tessera.graph.negate", 2, "types", "outside functions"),
    "no module": ('"builtin.module"', '"builtin.modul"', 1, "types", "is in the place of a module"),
    "no signature": (
        'sym_name = "g", function_type = (tensor<2x2xfp32>) -> (tensor<2x2xfp32>)',
        'sym_name = "g"',
        30,
        "types",
        "a function has a signature",
    ),
    "another signature": (
        'sym_name = "g", function_type = (tensor<2x2xfp32>)',
        'sym_name = "g", function_type = (tensor<2x3xfp32>)',
        30,
        "types",
        "the block takes (tensor<2x2xfp32>)",
    ),
    "attribute of a function": ('{sym_name = "g", ', '{sym_name = "g", inline, ', 33, "types", "no attribute 'inline'"),
    "default of no parameter": ('{sym_name = "g", ', '{sym_name = "g", defaults = {z = 1}, ', 33, "types", "a default"),
    "a label": ("(%s, %a, %b) :", "(%s, %of(%a), %b) :", 27, "types", "%of(...) is in the place of %wrt"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_change_is_refused_at_its_place(name: str, rejected: Reject) -> None:
    old, new, line, category, message = REFUSALS[name]
    assert WHOLE.count(old) >= 1, "the change changes something"
    actual = rejected(WHOLE.replace(old, new, 1))
    assert message in actual[0].message
    assert (actual[0].category, actual[0].span.line, actual[0].phase) == (category, line, "verify")
    assert len(actual) == 1, "nothing is said about what follows from it"
    assert actual[0].clause
    assert actual[0].requirement


def test_several_mistakes_are_told_at_once(rejected: Reject) -> None:
    text = WHOLE.replace("{value = 3}", "{value = 3.5}").replace('sym_name = "g", ', 'sym_name = "g", inline, ')
    text = text.replace("tessera.graph.negate", "tessera.graph.negative")
    assert [found.span.line for found in rejected(text)] == [6, 9, 33]


def test_a_reading_ends_after_many_mistakes(rejected: Reject) -> None:
    text = module(func("\n".join(f'%v{i} = "tessera.graph.strange{i}"() : () -> fp32' for i in range(5000))))
    assert len(rejected(text)) == 100


def test_what_the_reference_does_not_implement_is_no_mistake() -> None:
    body = '%y = "tessera.graph.sum"(%x) {axis = 0, accum = "fp64"} : (tensor<4xfp32>) -> fp32\ntessera.graph.return %y'
    with pytest.raises(UnsupportedConstruct) as caught:
        read(body, "%x: tensor<4xfp32>", "fp32")
    assert caught.value.feature == "op.sum.accum"
    assert caught.value.location.span.line == 4
