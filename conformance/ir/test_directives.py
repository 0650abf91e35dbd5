"""Schedule statements: their forms, the metadata they leave in the IR, and that they change no bit (section 2.3).

Malformed statements, and schedule calls of other names as values, are in `rejections/`. What a directive may ask for is
the matter of Schedule IR (section 6); the directives here ask for what is harmless everywhere.
"""

import pytest

from tessera_conformance.marks import clause, level
from tessera_conformance.programs import (
    FIRST_STATEMENT,
    SYNTAX,
    evaluate,
    func,
    kernel,
    module,
    parameters_of,
    program,
    tensor_of,
)

MATRIX = "tensor<4x4xfp32>"
DIRECTIVES = {
    "tile": "schedule.tile(C, m=2, n=2, k=2);",
    "tile-attributes": "schedule.tile(C) @{m=2, n=2, k=2};",
    "tile-both": "schedule.tile(C, m=2) @{n=2, k=2};",
    "fuse": "schedule.fuse(C, D);",
    "pipeline": "schedule.pipeline(C, double_buffer=true, depth=3);",
    "pipeline-attributes": "schedule.pipeline(C) @{double_buffer=true, depth=3};",
    "prefetch": 'schedule.prefetch(A, scope="shared", align=32);',
    "prefetch-attributes": 'schedule.prefetch(A) @{scope="shared", align=32};',
    "layout-cast": 'schedule.layout_cast(A, to="row_major");',
    "several": 'schedule.tile(C, m=2, n=2); schedule.pipeline(C, depth=2); schedule.prefetch(B, scope="global");',
}
"""The operations of section 6.1 as statements, settings as keywords or in an attribute block (AMB-LANG-14)."""
directives = pytest.mark.parametrize("directive", DIRECTIVES.values(), ids=DIRECTIVES)


def products(directive, declare=func, name="f"):
    """A product and a sum, A @ B and A + B, with a statement after them."""
    body = [f"let C: {MATRIX} = A @ B;", f"let D: {MATRIX} = A + B;", directive]
    end = "return C, D;" if declare is func else "A = C; B = D;"
    return module(declare(*body, end, parameters=parameters_of("AB", MATRIX), name=name))


def lowered(impl, check, source):
    """The Graph IR: what it says of its functions, and its text. Programs of equal lines have equal locations."""
    graph = check.accepts(impl.language.lower(source=source, to="graph"))
    check.equal(len(graph["functions"]), 1, "the number of functions")
    return graph


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
        "schedule.tile(A @ B + A, m=2);",
        "schedule.module(A);",
        "schedule.tile(A, layout=2);",
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


@clause("LANG-02.3-53")
@pytest.mark.parametrize(
    "form",
    ["let C: {0} = {1};", "return {1};", "return A + {1};", "return op.softmax({1});", "A = {1};", "A[0, :] = {1};"],
    ids=["variable", "result", "operand", "argument", "assignment", "slice-assignment"],
)
@pytest.mark.parametrize(
    "call", ["schedule.tile(A, m=2, n=2)", "schedule.pipeline(A) @{depth=2}", "schedule.fuse(A, A)"]
)
def test_a_schedule_call_is_no_value(impl, check, form, call):
    """Where a tensor is wanted it is a types error (AMB-LANG-110); as a statement it is legal."""
    check.accepts(impl.language.verify(source=program(f"{call};", parameters=f"A: {MATRIX}")))
    source = program(form.format(MATRIX, call), parameters=f"A: {MATRIX}")
    check.rejects(impl.language.verify(source=source), category=("types", "syntax"), at_line=FIRST_STATEMENT)


@clause("LANG-02.3-79", "LANG-02.3-53")
@directives
def test_a_schedule_statement_changes_metadata_of_the_ir(impl, check, directive):
    """The IR differs from that without it, and not in the types of arguments and results."""
    plain, scheduled = (lowered(impl, check, products(text)) for text in ("", directive))
    check.true(plain != scheduled, "the directive is seen in the IR", scheduled)
    for types in ("arguments", "results"):
        check.equal(scheduled["functions"][0][types], plain["functions"][0][types], f"the {types}")


@clause("LANG-02.3-79")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("schedule.tile(C, m=2, n=2);", "schedule.tile(C, m=2, n=4);"),
        ("schedule.tile(C, m=2, n=4);", "schedule.tile(C, m=4, n=2);"),
        ("schedule.tile(C, m=2, n=2);", "schedule.tile(D, m=2, n=2);"),
        ("schedule.pipeline(C, depth=2);", "schedule.pipeline(C, depth=3);"),
        ("schedule.pipeline(C, depth=2);", "schedule.pipeline(C, depth=2, double_buffer=true);"),
        ('schedule.prefetch(A, scope="shared");', 'schedule.prefetch(A, scope="global");'),
        ("schedule.pipeline(C, depth=2);", "schedule.tile(C, m=2);"),
        ("schedule.pipeline(C, depth=2);", "schedule.pipeline(C, depth=2); schedule.tile(C, m=2);"),
    ],
    ids=["value", "exchanged", "subject", "depth", "setting", "string", "name", "more"],
)
def test_the_metadata_tells_directives_apart(impl, check, one, other):
    """Another setting, another value, another tensor or another directive leaves another IR."""
    first, second = (lowered(impl, check, products(text)) for text in (one, other))
    check.true(first != second, "the IR differs", first)


@clause("LANG-02.3-79")
def test_either_spelling_leaves_the_same_metadata(impl, check):
    """Settings as keywords, in an attribute block, or in both (AMB-LANG-14)."""
    first, second, third = (
        lowered(impl, check, products(DIRECTIVES[name]))["functions"]
        for name in ("tile", "tile-attributes", "tile-both")
    )
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
    """Of a product whose bits depend on the order of its sums, nor of the sum beside it (AMB-LANG-110)."""
    inputs = {"A": tensor_of("fp32", LEFT), "B": tensor_of("fp32", RIGHT)}
    plain, scheduled = (evaluate(impl, check, products(text, declare), **inputs) for text in ("", directive))
    sums = [[left + right for left, right in zip(*rows, strict=True)] for rows in zip(LEFT, RIGHT, strict=True)]
    check.equal(len(scheduled), 2, "the number of outputs")
    check.bits(scheduled[0], plain[0], "the product with and without the directive")
    check.bits(scheduled[1], tensor_of("fp32", sums), "the sum")


@clause("LANG-02.3-79")
@pytest.mark.parametrize(
    "body",
    [
        "for (k in 0:3) { X = X + X; schedule.tile(X, m=2); }",
        "if (X[0] > 0) { X = 8 * X; schedule.pipeline(X, depth=2); } else { schedule.tile(X, m=2); }",
        'schedule.prefetch(X, scope="shared"); let Y: tensor<4xint32> = 8 * X; schedule.fuse(X, Y); X = Y;',
        "while (X[0] < 8) { schedule.tile(X, m=2); X = 2 * X; schedule.tile(X, m=4); }",
    ],
    ids=["for", "if", "straight", "while"],
)
def test_a_schedule_statement_among_others_changes_no_value(impl, check, body):
    """Before, between and after assignments, in branches and loops."""
    source = program(body, "return X;", parameters="X: tensor<4xint32>")
    outputs = evaluate(impl, check, source, X=tensor_of("int32", [1, 2, 3, 4]))
    check.equal(len(outputs), 1, "the number of returned values")
    check.bits(outputs[0], tensor_of("int32", [8, 16, 24, 32]))
