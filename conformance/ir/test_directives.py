"""Schedule statements: their forms, the metadata they leave in the IR, and that they change no bit (section 2.3).

Malformed statements, and schedule calls of other names as values, are in `rejections/`. What a directive may ask for is
the matter of Schedule IR (section 6); the directives here ask for what is harmless everywhere.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import SYNTAX, evaluate
from tessera_conformance.dsl import func, kernel, module, parameters_of, program, tensor_of
from tessera_conformance.marks import clause, level
from tessera_conformance.protocol import Rejected, Returned

MATRIX = "tensor<4x4xfp32>"
DIRECTIVES = {
    "tile": "schedule.tile(C) @{m=2, n=2, k=2};",
    "fuse": "schedule.fuse(C, D);",
    "pipeline": "schedule.pipeline(C) @{double_buffer=true, depth=3};",
    "pipeline-attributes": "schedule.pipeline(C) @{double_buffer=true, depth=3};",
    "prefetch": 'schedule.prefetch(C) @{scope="shared", align=32};',
    "prefetch-attributes": 'schedule.prefetch(C) @{scope="shared", align=32};',
    "layout-cast": 'schedule.layout_cast(C) @{to="row_major"};',
    "several": 'schedule.tile(C) @{m=2, n=2}; schedule.pipeline(C) @{depth=2}; schedule.prefetch(D) @{scope="global"};',
}
"""The operations of section 6.1 as statements, settings in an attribute block."""
directives = pytest.mark.parametrize("directive", DIRECTIVES.values(), ids=DIRECTIVES)
SEEN = {name: text for name, text in DIRECTIVES.items() if name != "layout-cast"}
"""Those that ask for something: a product is row_major before it is cast to that."""


def products(directive, declare=func, name="f"):
    """A product and another of its result, with a statement after them."""
    body = [f"let C: {MATRIX} = A @ B;", f"let D: {MATRIX} = C @ B;", directive]
    end = "return C, D;" if declare is func else "A = C; B = D;"
    return module(declare(*body, end, parameters=parameters_of("AB", MATRIX), name=name))


def lowered(impl, check, source):
    """Return the Graph IR of the one function."""
    functions = check.accepts(impl.language.lower(source=source, to="graph"))["functions"]
    check.equal(len(functions), 1, "the number of functions")
    return functions[0]


@clause("LANG-02.3-43")
@directives
def test_a_schedule_statement_is_accepted(impl, check, directive):
    """In a func, in a kernel, and in inner blocks."""
    for declare in (func, kernel):
        for place in ("{}", "if (true) {{ {} }}", "for (k in 0:2) {{ {} }}"):
            check.accepts(impl.language.verify(source=products(place.format(directive), declare)))


@clause("LANG-02.3-43")
@pytest.mark.parametrize(
    "directive",
    [
        "schedule.tile();",
        "schedule.anything(A, B, 1, 2.5);",
        "schedule.tile(A) @{};",
        "schedule.tile(A @ B + A) @{m=2};",
        "schedule.module(A);",
        "schedule.tile(A) @{layout=2};",
    ],
    ids=["no-arguments", "another-name", "empty-block", "expression", "reserved-word", "reserved-keyword"],
)
def test_the_grammar_takes_any_name_and_arguments(impl, check, directive):
    """A point, any name, reserved or not, parentheses with any arguments, and attributes where wanted (AMB-LANG-01)."""
    check.accepts(impl.language.parse(source=program(directive, parameters=parameters_of("AB", MATRIX))))


@clause("LANG-02.3-43")
@pytest.mark.parametrize(
    "illegal",
    ["schedule(A);", "schedule.tile;", "schedule.tile A;", "schedule tile(A);", "schedule.(A);", "schedule.tile(A;"],
    ids=["no-name", "no-parentheses", "blank", "no-point", "point-only", "open"],
)
def test_a_malformed_schedule_statement_is_refused(impl, check, illegal):
    """The word, a point, one name and parentheses are needed."""
    check.accepts(impl.language.parse(source=program("schedule.tile(A);", parameters=parameters_of("AB", MATRIX))))
    check.rejects(impl.language.parse(source=program(illegal, parameters=parameters_of("AB", MATRIX))), **SYNTAX)


@clause("LANG-02.3-43")
@pytest.mark.parametrize(
    "directive",
    [
        "schedule.tile();",
        "schedule.tile() @{m=2};",
        "schedule.layout_cast(A);",
        'schedule.layout_cast(A @ B) @{to="row_major"};',
    ],
    ids=["nothing", "no-subject", "no-layout", "no-name"],
)
def test_a_directive_that_says_too_little_is_accepted_or_refused(impl, check, directive):
    """The grammar takes it, and what a directive needs beyond that is left open (AMB-LANG-216): no crash, an answer."""
    observation = impl.language.verify(source=program(directive, parameters=parameters_of("AB", MATRIX)))
    if isinstance(observation, Returned):
        check.accepts(observation)
    else:
        check.rejects(observation, category=("schedule", "layouts", "types", "shapes"))


@clause("LANG-02.3-53")
@pytest.mark.parametrize(
    "form",
    ["let E: {0} = {1};", "return {1};", "return A + {1};", "return op.softmax({1});", "A = {1};", "A[0, :] = {1};"],
    ids=["variable", "result", "operand", "argument", "assignment", "slice-assignment"],
)
@pytest.mark.parametrize(
    "call", ["schedule.tile(C) @{m=2, n=2}", "schedule.pipeline(C) @{depth=2}", "schedule.fuse(C, D)"]
)
def test_a_schedule_call_is_no_value(impl, check, form, call):
    """As a value it is a types error (AMB-LANG-110); as a statement it is legal."""
    products = [f"let C: {MATRIX} = A @ A;", f"let D: {MATRIX} = C @ A;"]
    check.accepts(impl.language.verify(source=program(*products, f"{call};", parameters=f"A: {MATRIX}")))
    source = program(*products, form.format(MATRIX, call), parameters=f"A: {MATRIX}")
    check.rejects(impl.language.verify(source=source), category=("types", "syntax"))


@clause("LANG-02.3-79", "LANG-02.3-53")
@pytest.mark.parametrize("directive", SEEN.values(), ids=SEEN)
def test_a_schedule_statement_changes_metadata_of_the_ir(impl, check, directive):
    """The IR differs from that without it, and not in the types of arguments and results."""
    plain, scheduled = (lowered(impl, check, products(text)) for text in ("", directive))
    check.true(plain != scheduled, "the directive is seen in the IR", scheduled)
    for types in ("arguments", "results"):
        check.equal(scheduled[types], plain[types], f"the {types}")


@clause("LANG-02.3-79")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("schedule.tile(C) @{m=2, n=2};", "schedule.tile(C) @{m=2, n=4};"),
        ("schedule.tile(C) @{m=2, n=4};", "schedule.tile(C) @{m=4, n=2};"),
        ("schedule.tile(C) @{m=2, n=2};", "schedule.tile(D) @{m=2, n=2};"),
        ("schedule.pipeline(C) @{depth=2};", "schedule.pipeline(C) @{depth=3};"),
        ("schedule.pipeline(C) @{depth=2};", "schedule.pipeline(C) @{depth=2, double_buffer=true};"),
        ('schedule.prefetch(C) @{scope="shared"};', 'schedule.prefetch(C) @{scope="global"};'),
        ("schedule.pipeline(C) @{depth=2};", "schedule.tile(C) @{m=2};"),
        ("schedule.pipeline(C) @{depth=2};", "schedule.pipeline(C) @{depth=2}; schedule.tile(C) @{m=2};"),
    ],
    ids=["value", "exchanged", "subject", "depth", "setting", "string", "name", "more"],
)
def test_the_metadata_of_directives_is_distinct(impl, check, one, other):
    """Another setting, another value, another tensor or another directive leaves another IR."""
    first, second = (lowered(impl, check, products(text)) for text in (one, other))
    check.true(first != second, "the IR differs", first)


@clause("LANG-02.3-79")
def test_either_spelling_leaves_the_same_metadata(impl, check):
    """Settings as keywords, in an attribute block, or in both (AMB-LANG-14)."""
    spellings = ("schedule.tile(C, m=2, n=2, k=2);", DIRECTIVES["tile"], "schedule.tile(C, m=2) @{n=2, k=2};")
    answer = impl.language.parse(source=products(spellings[0]))
    check.reading("AMB-LANG-14", "attribute block only", isinstance(answer, Rejected))
    first, second, third = (lowered(impl, check, products(text)) for text in spellings)
    check.equal(first, second, "the IR of keywords and of attributes")
    check.equal(first, third, "the IR of keywords and of both")


BIG = 2.0**24
LEFT = [[BIG, 1, 1, -BIG], [1, 0.5, -3, 7], [BIG, -BIG, 1, 1], [0, -0.0, 2, 0.25]]
RIGHT = [[2, 0, 3, -2], [1, 0.125, 5, 2], [2, -2, 0.5, 0.375], [1, 9, 7, 1]]


@clause("LANG-02.3-79", "LANG-02.3-43")
@level("strict", "deterministic")
@directives
@pytest.mark.parametrize("declare", [func, kernel], ids=["func", "kernel"])
def test_a_schedule_statement_changes_no_bit(impl, check, directive, declare):
    """The bits of the products depend on the order of their sums (AMB-LANG-110)."""
    inputs = {"A": tensor_of("fp32", LEFT), "B": tensor_of("fp32", RIGHT)}
    plain, scheduled = (evaluate(impl, check, products(text, declare), **inputs) for text in ("", directive))
    check.equal(len(scheduled), 2, "the number of outputs")
    check.bits(scheduled[0], plain[0], "the product with and without the directive")
    check.bits(scheduled[1], plain[1], "the product of the product with and without the directive")


@clause("LANG-02.3-79")
@pytest.mark.parametrize(
    "body",
    [
        "for (k in 0:3) { X = X @ T; schedule.tile(X) @{m=2, n=2}; }",
        "if (c) { X = X @ (T @ T @ T); schedule.pipeline(X) @{depth=2}; } else { X = X @ T; schedule.tile(X) @{m=2}; }",
        "let C: {0} = X @ T; let D: {0} = C @ T; schedule.fuse(C, D); X = D @ T;",
        "while (X[0, 0] < 8) { X = X @ T; schedule.tile(X) @{m=2}; schedule.tile(X) @{n=2}; }",
    ],
    ids=["for", "if", "straight", "while"],
)
def test_a_schedule_statement_among_others_changes_no_value(impl, check, body):
    """Between and after assignments, in branches and loops: each makes three doublings of a product (AMB-LANG-29)."""
    matrix = "tensor<2x2xint32>"
    source = program(body.replace("{0}", matrix), "return X;", parameters=f"c: bool, {parameters_of('XT', matrix)}")
    inputs = {"X": tensor_of("int32", [[1, 2], [3, 4]]), "T": tensor_of("int32", [[2, 0], [0, 2]])}
    outputs = evaluate(impl, check, source, c=tensor_of("bool", True), **inputs)
    check.equal(len(outputs), 1, "the number of returned values")
    check.bits(outputs[0], tensor_of("int32", [[8, 16], [24, 32]]))
