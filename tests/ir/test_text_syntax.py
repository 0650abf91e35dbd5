"""The syntax of IR text: MLIR's generic form, the short form of section 5.2, errors at their places (AMB-LANG-66)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tessera_reference.ir.diagnostics import Diagnostic, Rejection, UnsupportedConstruct
from tessera_reference.ir.text_parser import MOST_NESTED, MOST_REGIONS, Signature, TextOperation, parse_text
from tessera_reference.ir.types import FunctionType, Scalar, Tensor
from tessera_reference.numerics.formats import dtype

FP32 = Scalar(dtype("fp32"))
FOUR = Tensor((4,), dtype("fp32"))


def parse(text: str) -> list[TextOperation]:
    return parse_text(text, "t.mlir")[0]


def only(text: str) -> TextOperation:
    (operation,) = parse(text)
    return operation


def error(text: str) -> Diagnostic:
    with pytest.raises(Rejection) as caught:
        parse(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.filename == "t.mlir"
    assert diagnostic.requirement
    return diagnostic


def test_the_generic_form() -> None:
    found = only('%a, %b = "t.f"(%x, %y#1) {n = 1, s = "}"} : (fp32, tensor<4xfp32>) -> (fp32, fp32)')
    assert found.name == "t.f"
    assert [name.text for name in found.results] == ["a", "b"]
    assert [name.text for name in found.operands] == ["x", "y#1"]
    assert {name: given.value for name, given in found.attributes.items()} == {"n": 1, "s": "}"}
    assert (found.operand_types, found.result_types) == ((FP32, FOUR), (FP32, FP32))


@pytest.mark.parametrize(
    ("text", "operands", "types"),
    [
        ("%t = t.const : tensor<4xfp32>", [], (None, (FOUR,))),
        ("%y = t.matmul %a, %b : (fp32, fp32) -> tensor<4xfp32>", ["a", "b"], ((FP32, FP32), (FOUR,))),
        ("%p = t.softmax %x : tensor<4xfp32> -> tensor<4xfp32>", ["x"], ((FOUR,), (FOUR,))),
        ('%p = "t.softmax" %x : tensor<4xfp32> -> (fp32)', ["x"], ((FOUR,), (FP32,))),
        ('%p = "t.f"(%x) : () -> ()', ["x"], ((), ())),
        ('%t = "t.tile"(%c) { m=128, n=128 }', ["c"], (None, None)),
        ("t.barrier", [], (None, None)),
    ],
)
def test_the_short_forms_of_the_specification(text: str, operands: list[str], types: object) -> None:
    found = only(text)
    assert [name.text for name in found.operands] == operands
    assert (found.operand_types, found.result_types) == types


def test_operands_may_be_labelled() -> None:
    found = only("%g = tessera.graph.grad %y, %wrt(%x, %z), %w : tensor<4xfp32>")
    assert [(name.label, name.text) for name in found.operands] == [("", "y"), ("wrt", "x"), ("wrt", "z"), ("", "w")]


def test_an_operand_without_parentheses_stands_on_the_line_of_its_operation() -> None:
    """Section 7.2 has a barrier without operands above a line that begins with a result."""
    first, second = parse("t.barrier\n%sh = t.shfl %v {mask=0xffffffff}")
    assert (first.operands, [name.text for name in second.results]) == ([], ["sh"])


def test_regions_with_and_without_arguments() -> None:
    text = """
    "t.for"(%n) ({
    ^bb0(%i: fp32, %x: !tessera.tensor<4xfp32> loc("a":1:2)):
      "t.yield"(%x) : (tensor<4xfp32>) -> ()
    }, {
      t.if %c ({ t.yield }, {})
    }, {
    ^bb0:
    }) {n = 1} : (fp32) -> () loc(unknown)
    """
    found = only(text)
    assert [len(region.arguments) for region in found.regions] == [2, 0, 0]
    assert [(name.text, name.type) for name in found.regions[0].arguments] == [("i", FP32), ("x", FOUR)]
    (inner,) = found.regions[1].operations
    assert [len(region.operations) for region in inner.regions] == [1, 0]
    assert found.attributes["n"].value == 1


def test_one_name_may_stand_for_several_results() -> None:
    found = only('%0:3, %a = "t.f"()')
    assert [(name.text, name.count) for name in found.results] == [("0", 3), ("a", 1)]


def test_properties_are_attributes() -> None:
    assert only('"t.f"() <{a = 1}> ({}) {b = 2} : () -> ()').attributes.keys() == {"a", "b"}


def test_types_in_attributes() -> None:
    found = only('"t.f"() {f = (fp32) -> (), g = () -> fn(fp32) -> fp32, h = !tessera.fn<(fp32) -> fp32>}')
    inner = FunctionType((FP32,), FP32)
    assert found.attributes["f"].value == Signature((FP32,), ())
    assert found.attributes["g"].value == Signature((), (inner,))
    assert found.attributes["h"].value == inner


def test_locations_are_read() -> None:
    found = only('"t.f"() : () -> () loc("dir/\\"x\\".tsr":4:37)')
    assert str(found.location) == 'dir/"x".tsr:4:37'
    assert only('"t.f"() loc(unknown)').location is None
    assert only('"t.f"() loc("-":0:0)').location is None


def test_comments_and_blanks_say_nothing() -> None:
    text = '// first\n%a // result\n=\t"t.f"\r\n( // "quote\n%b)//'
    assert [name.text for name in only(text).operands] == ["b"]


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
    "double": ('"t.f"() {a = 0x10000000000000000 : f64}', "parse", 1, 14, "a double has 64 bits"),
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
    found = error(text)
    assert (found.category, found.phase) == ("syntax", phase)
    assert (found.span.line, found.span.column) == (line, column)
    assert message in found.message


def test_the_place_of_an_error_is_the_token() -> None:
    found = error('"t.f"() {\n  axis 0}')
    assert (found.span.line, found.span.column, found.span.end_line, found.span.end_column) == (2, 8, 2, 9)
    found = error('"t.f"() {a = false, a = true}')
    assert (found.span.column, found.span.end_column) == (21, 22)
    found = error('"t.f"() {')
    assert (found.span.column, found.span.end_column) == (10, 11)


def test_a_wrong_type_has_its_own_category() -> None:
    found = error('"t.f"() :\n  tensor<4xfp31>')
    assert (found.category, found.span.line, found.span.column, found.span.end_column) == ("types", 2, 3, 17)
    assert found.remedy == "did you mean fp32?"


def test_many_digits_are_refused() -> None:
    assert "an integer of 10000 digits" in error('"t.f"() {a = ' + "9" * 10_000 + "}").message
    assert "an integer of 10002 digits" in error('"t.f"() {a = 0x' + "f" * 10_000 + "}").message


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
