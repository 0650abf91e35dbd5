"""What IR text means: names, types, operations, symbols; each refusal beside a twin that is read (LANG-05-01)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Diagnostic, UnsupportedConstruct
from tessera_reference.ir.module import Function, Module
from tessera_reference.ir.text import print_module
from tessera_reference.ir.text_reader import read_module, read_modules
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

Reject = Callable[[str], list[Diagnostic]]


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
    return read_module(module(func(body, arguments, results))).functions["f"]


ADD = '%y = "tessera.graph.add"(%x, %x) : (fp32, fp32) -> fp32\n"tessera.graph.return"(%y) : (fp32) -> ()'


def test_a_function_reads_with_its_names_and_places() -> None:
    function = read(ADD, "%x: fp32", "fp32")
    (add,) = function.body.instructions
    assert [value.name for value in (*function.parameters, *add.results)] == ["x", "y"]
    assert add.operands == (function.parameters[0],) * 2
    assert str(add.location) == "<ir>:4:1"
    assert add.location.span.end_column == len(ADD.splitlines()[0]) + 1
    assert function.body.results == add.results


def test_a_stated_place_is_kept() -> None:
    stated = ADD.replace("-> fp32\n", '-> fp32 loc("a.tsr":7:9)\n')
    assert str(read(stated, "%x: fp32", "fp32").body.instructions[0].location) == "a.tsr:7:9"


def test_the_short_form_means_the_same() -> None:
    short = "%y = tessera.graph.add %x, %x : fp32\ntessera.graph.return %y"
    assert print_module(read_module(module(func(short, "%x: fp32", "fp32")))) == print_module(
        read_module(module(func(ADD, "%x: fp32", "fp32")))
    )


def test_what_was_read_runs() -> None:
    found = execute(
        read_module(module(func(ADD, "%x: fp32", "fp32"))),
        "f",
        {"x": Array(dtype("fp32"), np.asarray(2.5, np.float32))},
    )
    assert found[0].values == 5


def test_attributes_that_are_left_out_have_their_defaults() -> None:
    body = '%y = "tessera.graph.softmax"(%x) : (tensor<4xbf16>) -> tensor<4xbf16>\ntessera.graph.return %y'
    (softmax,) = read(body, "%x: tensor<4xbf16>", "tensor<4xbf16>").body.instructions
    assert softmax.operation.attributes == {"axis": -1, "accum": dtype("fp32")}


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
    names = [value.name for each in function.body.walk() for value in each.results]
    assert len(names) == len(set(names)) == 4
    constants = [each.operation.attributes["value"] for each in function.body.walk() if each.operation.attributes]
    assert constants == [True, 1.5, 2.5]


def test_results_of_one_name_are_told_apart_by_number() -> None:
    body = """
    %0:2 = "tessera.graph.call"(%x) {callee = "g"} : (fp32) -> (fp32, int32)
    "tessera.graph.return"(%0#1, %0#0, %0) : (int32, fp32, fp32) -> ()"""
    g = func("tessera.graph.return %a, %b", "%a: fp32, %b: int32", "fp32, int32", "g")
    g = g.replace("%a: fp32, %b: int32", "%a: fp32").replace("(fp32, int32) ->", "(fp32) ->")
    g = g.replace("^bb0(%a: fp32):", '^bb0(%a: fp32):\n%b = "tessera.graph.constant"() {value = 1} : () -> int32')
    read_module_ = read_module(module(func(body, "%x: fp32", "int32, fp32, fp32") + g))
    (call,) = read_module_.functions["f"].body.instructions
    first, second = call.results
    assert read_module_.functions["f"].body.results == (second, first, first)


def test_parameters_take_back_the_names_that_a_tool_has_changed() -> None:
    text = func("tessera.graph.return %arg0", "%arg0: fp32", "fp32", more=', parameters = ["X"], defaults = {X = 0.5}')
    function = read_module(module(text)).functions["f"]
    assert function.parameters[0].name == "X"
    assert function.defaults["X"].values == 0.5


def test_functions_may_stand_before_what_they_call() -> None:
    f = func(
        '%y = "tessera.graph.call"(%x) {callee = "g"} : (fp32) -> fp32\ntessera.graph.return %y', "%x: fp32", "fp32"
    )
    g = func("tessera.graph.return %x", "%x: fp32", "fp32", "g")
    for text in (f + g, g + f):
        assert list(read_module(module(text)).functions) == (["f", "g"] if text.startswith(f) else ["g", "f"])


def test_a_kernel_is_read_as_one() -> None:
    text = func("tessera.graph.return %A", "%n: int32, %A: tensor<4xfp32>", "tensor<4xfp32>", "k", "kernel")
    assert read_module(module(text)).functions["k"].kernel


def test_several_modules_also_in_one_that_a_tool_puts_around_them() -> None:
    two = module("", "a") + module("", "b")
    for text in (two, f'"builtin.module"() ({{{two}}}) : () -> ()'):
        assert [each.name for each in read_modules(text)] == ["a", "b"]
    with pytest.raises(ValueError, match="2 modules"):
        read_module(two)


def test_a_module_stands_beside_functions_in_no_module(rejected: Reject) -> None:
    mixed = f'"builtin.module"() ({{{module("", "a")}{func("tessera.graph.return")}}}) : () -> ()'
    (found,) = rejected(mixed)
    assert found.message == "module: stands in a module, outside functions"


@pytest.mark.parametrize(("owner", "name"), [("function", "return"), ("region", "yield")])
def test_a_block_without_terminator_is_told_which_it_needs(owner: str, name: str, rejected: Reject) -> None:
    branch = '"tessera.graph.if"(%c) ({}, {tessera.graph.yield}) : (bool) -> ()\ntessera.graph.return'
    (found,) = rejected(module(func("" if owner == "function" else branch, "%c: bool")))
    assert found.requirement == f'"tessera.graph.{name}"(...) at its end'
    assert found.span.end_column == found.span.column + 1


# Unknown dimensions: the text shows them as ?, and which are equal follows from the operations.

UNKNOWN = {
    "of an operation": """
    %y = "tessera.graph.negate"(%x) : (tensor<?x4xfp32>) -> tensor<?x4xfp32>""",
    "of a loop": """
    %n = "tessera.graph.constant"() {value = 3} : () -> int32
    %y = "tessera.graph.for"(%n, %n, %n, %x) ({
    ^bb0(%i: int32, %a: tensor<?x4xfp32>):
      %b = "tessera.graph.add"(%a, %x) : (tensor<?x4xfp32>, tensor<?x4xfp32>) -> tensor<?x4xfp32>
      "tessera.graph.yield"(%b) : (tensor<?x4xfp32>) -> ()
    }) : (int32, int32, int32, tensor<?x4xfp32>) -> tensor<?x4xfp32>""",
    "of branches": """
    %c = "tessera.graph.constant"() {value = true} : () -> bool
    %y = "tessera.graph.if"(%c) ({
      "tessera.graph.yield"(%x) : (tensor<?x4xfp32>) -> ()
    }, {
      %b = "tessera.graph.negate"(%x) : (tensor<?x4xfp32>) -> tensor<?x4xfp32>
      "tessera.graph.yield"(%b) : (tensor<?x4xfp32>) -> ()
    }) : (bool) -> tensor<?x4xfp32>""",
    "of a call": """
    %y = "tessera.graph.call"(%x) {callee = "same"} : (tensor<?x4xfp32>) -> tensor<?x4xfp32>""",
    "of a function that is called": """
    %y = "tessera.graph.call"(%x) {callee = "early"} : (tensor<?x4xfp32>) -> tensor<?x4xfp32>""",
}
CALLED = func("tessera.graph.return %x", "%x: tensor<Nx4xfp32>", "tensor<Nx4xfp32>", "same") + func(
    """%c = "tessera.graph.constant"() {value = true} : () -> bool
    "tessera.graph.if"(%c) ({ tessera.graph.return %x }, { tessera.graph.yield }) : (bool) -> ()
    %y = "tessera.graph.negate"(%x) : (tensor<?x4xfp32>) -> tensor<?x4xfp32>
    tessera.graph.return %y""",
    "%x: tensor<?x4xfp32>",
    "tensor<?x4xfp32>",
    "early",
)


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_dimensions_that_are_the_same_are_known_to_be(name: str) -> None:
    """x + y needs equal dimensions, and x + z, of a parameter of its own, has none (AMB-LANG-122)."""
    sound = """
    %s = "tessera.graph.add"(%x, %y) : (tensor<?x4xfp32>, tensor<?x4xfp32>) -> tensor<?x4xfp32>
    "tessera.graph.return"(%s) : (tensor<?x4xfp32>) -> ()"""
    arguments = "%x: tensor<?x4xfp32>, %z: tensor<?x4xfp32>"
    text = module(func(UNKNOWN[name] + sound, arguments, "tensor<?x4xfp32>") + CALLED)
    assert print_module(read_module(print_module(read_module(text)))) == print_module(read_module(text))


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_dimensions_of_other_values_are_not_equal(name: str, rejected: Reject) -> None:
    strange = """
    %s = "tessera.graph.add"(%y, %z) : (tensor<?x4xfp32>, tensor<?x4xfp32>) -> tensor<?x4xfp32>
    "tessera.graph.return"(%s) : (tensor<?x4xfp32>) -> ()"""
    arguments = "%x: tensor<?x4xfp32>, %z: tensor<?x4xfp32>"
    (found,) = rejected(module(func(UNKNOWN[name] + strange, arguments, "tensor<?x4xfp32>") + CALLED))
    assert found.category == "shapes"


def test_branches_of_different_extents_give_an_unknown_one() -> None:
    body = """
    %c = "tessera.graph.constant"() {value = true} : () -> bool
    %y = "tessera.graph.if"(%c) ({
      "tessera.graph.yield"(%a) : (tensor<3x4xfp32>) -> ()
    }, {
      "tessera.graph.yield"(%b) : (tensor<5x4xfp32>) -> ()
    }) : (bool) -> tensor<?x4xfp32>
    "tessera.graph.return"(%y) : (tensor<?x4xfp32>) -> ()"""
    function = read(body, "%a: tensor<3x4xfp32>, %b: tensor<5x4xfp32>", "tensor<?x4xfp32>")
    assert str(function.results[0]) == "tensor<?x4xfp32>"


def test_a_signature_does_not_know_more_than_its_returns(rejected: Reject) -> None:
    for stated, sound in (("?", True), ("N", True), ("4", False)):
        text = module(func("tessera.graph.return %x", "%x: tensor<?x4xfp32>", f"tensor<{stated}x4xfp32>"))
        if sound:
            read_module(text)
        else:
            (found,) = rejected(text)
            assert found.message == "@f returns (tensor<?x4xfp32>), its signature has (tensor<4x4xfp32>)"


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
WHOLE = module(
    MESH + func(BODY, "%a: tensor<2x3xfp32>, %b: tensor<3x2xfp32>", "tensor<2x2xfp32>") + "\n" + CALLEE,
)

REFUSALS: dict[str, tuple[str, str, int, str, str]] = {
    # what stands there, what is put there, the line, the category, part of the message
    "second definition in a region": ("  %t = ", f"  {CONSTANT}\n  %t = ", 9, "types", "%n is defined twice"),
    "a number of no result": ("(%s, %a, %b)", "(%s#1, %a, %b)", 27, "types", "%s#1 is not defined"),
    "operand count, as typed": (
        "(%y) : (tensor<2x2xfp32>) -> tensor",
        "(%y, %y) : (tensor<2x2xfp32>, tensor<2x2xfp32>) -> tensor",
        9,
        "types",
        "2 operands given",
    ),
    "operand layout": (
        "(%s) : (tensor<2x2xfp32>)",
        "(%s) : (tensor<2x2xfp32; layout=col_major>)",
        28,
        "layouts",
        "%s is tensor<2x2xfp32; layout=col_major>",
    ),
    "result count without types": (
        '%s = "tessera.graph.all_reduce"(%g) {axis = "dp", op = "sum"} : (tensor<2x2xfp32>) -> tensor<2x2xfp32>',
        '%s, %z = "tessera.graph.all_reduce"(%g) {axis = "dp", op = "sum"}',
        26,
        "types",
        "2 results named, it has 1",
    ),
    "names of parameters": (
        '{sym_name = "g", ',
        '{sym_name = "g", parameters = [1], ',
        33,
        "types",
        "parameters is not a list",
    ),
    "kind of an attribute that may be left out": (
        '{accum = "fp32"}',
        "{out = [1]}",
        7,
        "types",
        "out is not a dtype",
    ),
    "dtype of an attribute": ('{accum = "fp32"}', '{accum = "fp23"}', 7, "types", "unknown dtype 'fp23'"),
    "missing attribute": ("{value = 3}", "", 6, "types", "the attribute value is missing"),
    "a constant between two values of its dtype": (
        CONSTANT,
        f'%m = "tessera.graph.constant"() {{value = 9007199254740993}} : () -> fp64\n{CONSTANT}',
        6,
        "types",
        "9007199254740993 is no value of fp64",
    ),
    "a bool that is none": ("{value = true}", "{value = 2}", 5, "types", "2 is no value of bool"),
    "a number of a dtype without a fraction": (
        "() -> int32",
        "() -> tensor<2xint32>",
        6,
        "types",
        "stated to be a scalar",
    ),
    "a region too few": (
        '}, {\n  "tessera.graph.yield"(%y) : (tensor<2x2xfp32>) -> ()\n})',
        "})",
        8,
        "types",
        "1 region given",
    ),
    "a region where there is none": (
        "(%y) : (tensor",
        "(%y) ({tessera.graph.yield}) : (tensor",
        9,
        "types",
        "1 region given",
    ),
    "a terminator with a region": (
        '"tessera.graph.yield"(%k) :',
        '"tessera.graph.yield"(%k) ({}) :',
        16,
        "types",
        "a terminator has operands only",
    ),
    "a terminator with a type": (
        '"tessera.graph.yield"(%k) : (tensor<2x2xfp32>) -> ()',
        '"tessera.graph.yield"(%k) : (tensor<2x2xfp32>) -> fp32',
        16,
        "types",
        "a terminator has operands only",
    ),
    "an operand of what is never reached": (
        '"tessera.graph.yield"(%k)',
        '"tessera.graph.unreachable"(%k)',
        16,
        "types",
        "a terminator has operands only",
    ),
    "one argument too many": (
        "^bb0(%q: tensor<2x2xfp32>):",
        "^bb0(%q: tensor<2x2xfp32>, %o: int32):",
        18,
        "types",
        "a region takes (tensor<2x2xfp32>, int32)",
    ),
    "argument of a call": (
        '(%v) {callee = "g"} : (tensor<2x2xfp32>)',
        '(%a) {callee = "g"} : (tensor<2x3xfp32>)',
        25,
        "types",
        "the arguments are (tensor<2x3xfp32>)",
    ),
    "a mesh of two extents": ("shape = [2]", "shape = [2, 2]", 2, "distributed", "a mesh of 1 axes has 2 extents"),
    "a mesh without axes": ('axes = ["dp"], ', "", 2, "types", "the attribute axes is missing"),
    "a mesh of words": ("shape = [2]", 'shape = ["2"]', 2, "types", "shape is not a list"),
    "no name": ('sym_name = "g0", ', "", 2, "types", "has no name"),
    "an operation outside functions": ("tessera.graph.mesh", "tessera.graph.negate", 2, "types", "outside functions"),
    "no module": ('"builtin.module"', '"builtin.modul"', 1, "types", "stands where a module is expected"),
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
    "profile of a function": (
        '{sym_name = "g", ',
        '{sym_name = "g", numerics_profile = "exact", ',
        30,
        "numerics",
        "'exact' is no numerics profile",
    ),
    "default of no parameter": ('{sym_name = "g", ', '{sym_name = "g", defaults = {z = 1}, ', 33, "types", "a default"),
    "a shape that the result does not have": (
        '{accum = "fp32"}',
        "{shape = [2, 3]}",
        7,
        "shapes",
        "shape=[2, 3] is stated",
    ),
    "an axis of no mesh": ('{accum = "fp32"}', '{mesh_axes = ["tp"]}', 7, "distributed", "no mesh has the axis 'tp'"),
    "a precision that is none": ('{accum = "fp32"}', '{precision = "int8"}', 7, "numerics", "'int8' is no precision"),
    "a label": ("(%s, %a, %b) :", "(%s, %of(%a), %b) :", 27, "types", "%of(...) stands where %wrt does"),
}


def test_the_whole_text_is_read() -> None:
    found = read_module(WHOLE)
    assert print_module(read_module(print_module(found))) == print_module(found)
    assert WHOLE.count("\n") > 30


@pytest.mark.parametrize("name", REFUSALS)
def test_a_change_is_refused_at_its_place(name: str, rejected: Reject) -> None:
    old, new, line, category, message = REFUSALS[name]
    assert WHOLE.count(old) >= 1, "the change changes something"
    found = rejected(WHOLE.replace(old, new, 1))
    assert message in found[0].message
    assert (found[0].category, found[0].span.line, found[0].phase) == (category, line, "verify")
    assert len(found) == 1, "nothing is said about what follows from it"
    assert found[0].clause
    assert found[0].requirement


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('{accum = "fp32"}', '{shape = [2, 2], dtype = "fp32", layout = "row_major", mesh_axes = ["dp"]}'),
        ('{accum = "fp32"}', '{precision = "bf16", numerics_profile = "strict"}'),
        ('{sym_name = "g", ', '{sym_name = "g", numerics_profile = "fast", schedule = [["tile", 128]], '),
        ("(%s, %a, %b) :", "(%s, %wrt(%a), %wrt(%b)) :"),
        ("(%s, %a, %b) :", "(%y(%s), %wrt(%a, %b)) :"),
        ('callee = "g"', "callee = @g"),
        ('"(%t) : (tensor<2x2xfp32>) -> ()', '"(%t)'),
        ('{axis = "dp", op', '{axis = "dp", mesh = "g0", op'),
        ('"tessera.graph.yield"(%k) : (tensor<2x2xfp32>)', '"tessera.graph.unreachable"() : ()'),
        ('"tessera.graph.yield"(%k)', '"tessera.graph.return"(%k)'),
    ],
)
def test_a_change_that_is_legal_is_read(old: str, new: str) -> None:
    assert WHOLE.count(old) == 1
    found = read_module(WHOLE.replace(old, new))
    assert print_module(read_module(print_module(found))) == print_module(found)


def test_common_attributes_are_no_part_of_the_operation() -> None:
    text = WHOLE.replace('{accum = "fp32"}', '{numerics_profile = "strict", accum = "fp32", shape = [2, 2]}')
    product = read_module(text).functions["f"].body.instructions[2]
    assert product.attributes == {"shape": (2, 2), "numerics_profile": "strict"}
    assert product.operation.attributes == {"accum": dtype("fp32")}
    assert '{accum = "fp32", shape = [2, 2], numerics_profile = "strict"}' in print_module(read_module(text))


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


def test_a_module_that_changed_is_another_text() -> None:
    found = read_module(WHOLE)
    renamed: Module = replace(found, name="other")
    assert print_module(renamed) != print_module(found)
