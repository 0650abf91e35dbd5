"""Assignments, assertions, barriers and calls as statements (language spec, sections 2.3 and 4).

Malformed statements are in `rejections/`.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import evaluate, returns, syntax_twins, value_of
from tessera_conformance.dsl import func, integers, kernel, module, program, tensor_of
from tessera_conformance.marks import clause

CATEGORIES = ("syntax", "types", "shapes", "layouts", "schedule", "tile", "distributed", "numerics")
"""An assertion that does not hold belongs to none of the groups of section 11; any is accepted."""
VECTOR = "tensor<4xint32>"
MESH = "  mesh g = mesh<axes=[dp], shape=[2]>;"


def fails(impl, check, source, message, function="f", **inputs):
    """Execution ends with an error, the first of which says `message`, where one is given."""
    observation = impl.language.execute(source=source, function=function, inputs=inputs)
    rejected = check.rejects(observation, category=CATEGORIES, phase="execute")
    errors = [entry.message for entry in rejected.diagnostics if entry.severity == "error"]
    first = (errors or [rejected.message])[0]
    if message:
        check.true(message in first, f"the error says {message}", first)


# Semicolons


@clause("LANG-02.3-17")
@pytest.mark.parametrize(
    "statement",
    [
        "if (a > 0) { d = d + 1; }",
        "if (a > 0) { d = d + 1; } else { d = d - 1; }",
        "for (k in 0:1) { d = d + 1; }",
        "while (d < 1) { d = d + 1; }",
    ],
    ids=["if", "if-else", "for", "while"],
)
@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("{} return d;", 1),
        ("if (a > 0) {{ {} }} return d;", 1),
        ("{} d = 10 * d; return d;", 10),
        ("{} let e: int32 = d; return e;", 1),
        ("{} assert(d == 1); return d;", 1),
        ("{} barrier(); return d;", 1),
        ("{} if (d == 1) {{ d = 5; }} for (i in 0:2) {{ d = 2 * d; }} while (d < 99) {{ d = 99; }} return d;", 99),
    ],
    ids=["return", "last-of-a-block", "assignment", "variable", "assert", "barrier", "control"],
)
def test_a_control_statement_needs_no_semicolon(impl, check, statement, place, expected):
    """Its closing brace ends it, whatever follows (AMB-LANG-29)."""
    source = program("let d: int32 = 0;", place.format(statement), parameters="a: int32")
    returns(impl, check, source, [expected], **integers(a=1))


# Assignments


@clause("LANG-02.3-19")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(["let d: int32 = 1;", "d = 2;", "d = 3;", "return d;"], [3], id="the-last-counts"),
        pytest.param(["let d: int32;", "d = a;", "return d;"], [5], id="declared-without-value"),
        pytest.param(["a = a * a;", "return a;"], [25], id="parameter"),
        pytest.param(["let d: int32 = a;", "d = d + d;", "d = d + d;", "return d, a;"], [20, 5], id="from-itself"),
        pytest.param(["let d: int32 = a;", "a = 7;", "return d, a;"], [5, 7], id="a-name-holds-a-value"),
        pytest.param(["let t: int32 = a;", "a = b;", "b = t;", "return a, b;"], [2, 5], id="exchange"),
        pytest.param(["a = twice(b) - 1;", "b = twice(a);", "return a, b;"], [3, 6], id="from-a-call"),
        pytest.param(
            ["let d: int32 = 1;", "let e: int32 = d;", "d = e + 1;", "e = d + 1;", "return d, e;"],
            [2, 3],
            id="back-and-forth",
        ),
    ],
)
def test_an_assignment_gives_a_name_another_value(impl, check, body, expected):
    """From there on the name has the value on the right, which is computed first (AMB-LANG-52)."""
    twice = func("return p + p;", parameters="p: int32", result="int32", name="twice")
    source = module(twice, func(*body, parameters="a: int32, b: int32"))
    returns(impl, check, source, expected, **integers(a=5, b=2))


@clause("LANG-02.3-19")
@pytest.mark.parametrize(
    ("dtype", "literal", "value"),
    [("bf16", "-1.5", -1.5), ("fp64", "1e300", 1e300), ("int8", "-128", -128), ("bool", "true", True)],
)
def test_an_assigned_literal_has_the_type_of_its_name(impl, check, dtype, literal, value):
    """It takes the dtype that the name was declared with."""
    source = program(f"let d: {dtype};", f"d = {literal};", "return d;", result=dtype)
    check.bits(value_of(impl, check, source), tensor_of(dtype, value))


@clause("LANG-02.3-19")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(["B = A + A;", "return A, B;"], [[1, 2, 3, 4], [2, 4, 6, 8]], id="whole"),
        pytest.param(["B[0] = 9;", "return A, B;"], [[1, 2, 3, 4], [9, 2, 3, 4]], id="copy-changed"),
        pytest.param(["A[0] = 9;", "return A, B;"], [[9, 2, 3, 4], [1, 2, 3, 4]], id="original-changed"),
        pytest.param(["B[1:3] = A[0:2];", "A[1] = 0;", "return A, B;"], [[1, 0, 3, 4], [1, 1, 2, 4]], id="both"),
        pytest.param(["change(A);", "return A, B;"], [[1, 2, 3, 4]] * 2, id="changed-by-a-func"),
        pytest.param(["B = change(A);", "return A, B;"], [[1, 2, 3, 4], [-1, 2, 3, -1]], id="handed-back-by-a-func"),
        pytest.param(
            ["let S: tensor<2xint32> = A[0:2];", "S[0] = 7;", "return A, S;"],
            [[1, 2, 3, 4], [7, 2]],
            id="slice-changed",
        ),
        pytest.param(
            ["let S: tensor<2xint32> = A[0:2];", "A[0] = 7;", "return A, S;"],
            [[7, 2, 3, 4], [1, 2]],
            id="sliced-changed",
        ),
        pytest.param(["for (k in 0:4) { B[k] = 0; }", "return A, B;"], [[1, 2, 3, 4], [0, 0, 0, 0]], id="in-a-loop"),
        pytest.param(["if (B[0] == 1) { B[0] = 0; }", "return A, B;"], [[1, 2, 3, 4], [0, 2, 3, 4]], id="in-a-branch"),
    ],
)
def test_assigning_through_one_name_changes_no_other(impl, check, body, expected):
    """A name holds a value: a copy, a slice and an argument are values of their own (AMB-LANG-95, AMB-LANG-29)."""
    source = module(
        func("P[0] = -1;", "P[3] = -1;", "return P;", parameters=f"P: {VECTOR}", name="change"),
        func(f"let B: {VECTOR} = A;", *body, parameters=f"A: {VECTOR}"),
    )
    returns(impl, check, source, expected, **integers(A=[1, 2, 3, 4]))


@clause("LANG-02.3-19")
@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("if (a > 0) { d = a; }", 5),
        ("if (a > 0) { let e: int32 = a; if (e > 0) { d = e + 1; } }", 6),
        ("for (k in 0:3) { d = d + k; }", 103),
        ("while (d > 50) { let e: int32 = d; d = e - 60; }", 40),
        ("if (a > 0) { let d: int32 = 1; d = 2; }", 100),
        ("for (k in 0:3) { let d: int32 = k; d = d + 1; }", 100),
        ("for (d in 0:3) { d = d + 10; }", 100),
    ],
    ids=["if", "two-blocks", "for", "while", "hidden-in-if", "hidden-in-for", "hidden-by-an-iterator"],
)
def test_an_inner_block_assigns_names_from_outside(impl, check, block, expected):
    """Unless it declared a name of that spelling itself, which ends with it (AMB-LANG-86, AMB-LANG-92, AMB-LANG-29)."""
    source = program("let d: int32 = 100;", block, "return d;", parameters="a: int32")
    returns(impl, check, source, [expected], **integers(a=5))


# Operations as statements


@clause("LANG-02.3-21")
@pytest.mark.parametrize(
    "statement",
    [
        "op.softmax(X);",
        "op.softmax(X) @{axis=0};",
        "helper(a);",
        "schedule.tile(C) @{m=2, n=2};",
        'dist.all_reduce(X) @{axis=dp, op="sum"};',
        "barrier();",
        'barrier("here");',
        "assert(a == a);",
        'assert(a == a, "why");',
    ],
    ids=[
        "operation",
        "operation-attributes",
        "func",
        "schedule-attributes",
        "dist-attributes",
        "barrier",
        "barrier-string",
        "assert",
        "assert-string",
    ],
)
def test_an_operation_may_stand_as_a_statement(impl, check, statement):
    """A call, a schedule, dist, barrier or assert statement is legal in a func and in its inner blocks."""
    helper = func("return p;", parameters="p: int32", name="helper")
    for body in (statement, f"if (a == 0) {{ {statement} }}", f"for (k in 0:2) {{ {statement} }}"):
        product = "let C: tensor<4x4xfp32> = X @ X;"
        source = module(MESH, helper, func(product, body, parameters="a: int32, X: tensor<4x4xfp32>"))
        check.accepts(impl.language.verify(source=source))


@clause("LANG-02.3-21")
@pytest.mark.parametrize(
    "illegal",
    ["a;", "1;", "a + a;", "-a;", "(helper(a));", "helper(a) + 1;", '"text";', "true;", "X[0];", "tensor<4xfp32>;"],
    ids=["name", "number", "sum", "sign", "group", "call-in-a-sum", "string", "literal", "element", "tensor"],
)
def test_an_expression_that_is_no_call_is_no_statement(impl, check, illegal):
    """A call is one; a name, a number, a sum, a group, an element and a string are not."""
    parameters = "a: int32, X: tensor<4xfp32>"
    syntax_twins(impl, check, program("helper(a);", parameters=parameters), program(illegal, parameters=parameters))


@clause("LANG-02.3-21", "LANG-02.3-46")
def test_a_called_func_is_executed(impl, check):
    """A func called as a statement runs, so that an assertion in it counts (AMB-LANG-56)."""
    source = module(
        func('assert(p > 0, "not positive");', parameters="p: int32", name="positive"),
        func("positive(a);", "return a;", parameters="a: int32", result="int32"),
    )
    returns(impl, check, source, [3], **integers(a=3))
    fails(impl, check, source, "not positive", **integers(a=-3))


@clause("LANG-02.3-46")
@pytest.mark.parametrize("call", ["positive(a);", "let b: int32 = positive(a);"], ids=["statement", "variable"])
def test_a_called_func_is_executed_though_nothing_reads_its_value(impl, check, call):
    """An assertion in a func that returns a value counts where the value is not used (AMB-LANG-56)."""
    source = module(
        func('assert(p > 0, "not positive");', "return p;", parameters="p: int32", name="positive"),
        func(call, "return a;", parameters="a: int32", result="int32"),
    )
    returns(impl, check, source, [3], **integers(a=3))
    fails(impl, check, source, "not positive", **integers(a=-3))


# Assertions


@clause("LANG-02.3-46")
@pytest.mark.parametrize(
    "statement",
    ["assert(a > 0);", 'assert(a > 0, "a is too small");', 'assert((a > 0), "");', "assert(T[a]);", "assert(ok(a));"],
    ids=["bare", "string", "empty-string", "element", "call"],
)
def test_an_assertion_that_does_not_hold_ends_execution(impl, check, statement):
    """One that holds changes nothing (AMB-LANG-56)."""
    source = module(
        func("return p > 0;", parameters="p: int32", result="bool", name="ok"),
        func(statement, "return a;", parameters="a: int32, T: tensor<2xbool>", result="int32"),
    )
    table = tensor_of("bool", [False, True])
    returns(impl, check, source, [1], T=table, **integers(a=1))
    fails(impl, check, source, "", T=table, **integers(a=0))


@clause("LANG-02.3-46")
@pytest.mark.parametrize(
    ("literal", "message"),
    [
        ('"a is too small"', "a is too small"),
        (r'"say \"no\""', 'say "no"'),
        (r'"a\\b"', r"a\b"),
        ('"für α"', "für α"),
        ('"cafe\u0301"', "cafe\u0301"),
        ('"two  blanks"', "two  blanks"),
        ('"a\tb"', "a\tb"),
    ],
    ids=["words", "quotes", "backslash", "letters", "accent-alone", "blanks", "tab"],
)
def test_the_error_of_an_assertion_carries_its_string(impl, check, literal, message):
    """The error has the string with its escapes resolved (AMB-LANG-05, AMB-LANG-56)."""
    source = program(f"assert(a > 0, {literal});", "return a;", parameters="a: int32")
    returns(impl, check, source, [1], **integers(a=1))
    fails(impl, check, source, message, **integers(a=0))


@clause("LANG-02.3-46")
@pytest.mark.parametrize(
    "body",
    [
        ['if (a > 5) { assert(a < 0, "never"); }'],
        ['for (k in 5:a) { assert(a < 0, "never"); }'],
        ['while (a > 5) { assert(a < 0, "never"); }'],
        ["if (a > 0) { return a; }", 'assert(a < 0, "never");'],
        ["let b: int32 = a;", "a = -1;", 'assert(a < 0, "never");', "a = b;"],
    ],
    ids=["branch", "empty-for", "empty-while", "after-a-return", "of-another-value"],
)
def test_an_assertion_counts_only_where_it_is_reached(impl, check, body):
    """One in a block that does not run, as over an empty range (AMB-LANG-94), or after a return, is not evaluated."""
    source = program(*body, "return a;", parameters="a: int32", result="int32")
    returns(impl, check, source, [1], **integers(a=1))


@clause("LANG-02.3-46")
def test_an_assertion_in_a_loop_counts_in_every_turn(impl, check):
    """It holds in the first three turns and not in the fourth (AMB-LANG-29, AMB-LANG-56)."""
    body = ["let d: int32 = 0;", "for (k in 0:a) {", 'assert(X[k] > 0, "not positive");', "d = d + X[k];", "}"]
    source = program(*body, "return d;", parameters=f"a: int32, X: {VECTOR}")
    returns(impl, check, source, [6], **integers(a=3, X=[1, 2, 3, -4]))
    fails(impl, check, source, "not positive", **integers(a=4, X=[1, 2, 3, -4]))


@clause("LANG-02.3-46")
@pytest.mark.parametrize(
    "body",
    [
        ["for (k in 0:a) { if (k > 1) { assert(k < 3); } }"],
        ["if (a > 0) { for (k in 0:a) { assert(k < 3); } }"],
        ["let k: int32 = 0;", "while (k < a) { if (k > 1) { if (k > 2) { assert(k < 3); } } k = k + 1; }"],
    ],
    ids=["branch-of-a-loop", "loop-of-a-branch", "branch-of-a-branch-of-a-loop"],
)
def test_an_assertion_in_blocks_of_blocks_counts(impl, check, body):
    """For 3 it holds, or is not reached, and for 4 it does not hold (AMB-LANG-29, AMB-LANG-56)."""
    source = program(*body, "return a;", parameters="a: int32", result="int32")
    returns(impl, check, source, [3], **integers(a=3))
    fails(impl, check, source, "", **integers(a=4))


@clause("LANG-02.3-46")
def test_assert_is_a_name_elsewhere(impl, check):
    """assert is a keyword only where a statement begins with it (AMB-LANG-02)."""
    body = ["let d: int32 = assert + 1;", "assert(assert + 1 == d);", "return d;"]
    returns(impl, check, program(*body, parameters="assert: int32"), [6], **integers(**{"assert": 5}))


# Barriers


@clause("LANG-02.3-45")
@pytest.mark.parametrize(
    "barrier",
    ["barrier();", 'barrier("stage");', r'barrier("say \"go\"");', 'barrier("");'],
    ids=["bare", "string", "escapes", "empty-string"],
)
@pytest.mark.parametrize(
    "body",
    [
        "{} a = a + 1;",
        "a = a + 1; {}",
        "a = a - 1; {} a = a + 2;",
        "if (a > 0) {{ {} a = a + 1; {} }}",
        "for (k in 0:1) {{ a = a + 1; {} }}",
    ],
    ids=["first", "last", "between", "in-a-branch", "in-a-loop"],
)
def test_a_barrier_changes_no_value(impl, check, barrier, body):
    """With a string or without, in any block of a func and of a kernel (AMB-LANG-29)."""
    statements = body.replace("{}", barrier).replace("{{", "{").replace("}}", "}")
    returns(impl, check, program(statements, "return a;", parameters="a: int32"), [6], **integers(a=5))
    source = module(kernel(statements, "X[0] = a;", parameters=f"a: int32, X: {VECTOR}"))
    outputs = evaluate(impl, check, source, "k", **integers(a=5, X=[1, 2, 3, 4]))
    check.equal(len(outputs), 1, "the number of tensor parameters")
    check.bits(outputs[0], tensor_of("int32", [6, 2, 3, 4]))


@clause("LANG-04-10", "LANG-02.3-45")
@pytest.mark.parametrize(
    ("body", "first"),
    [
        (['assert(a > 0, "first");', "barrier();", 'assert(b > 0, "second");'], "first"),
        (['assert(b > 0, "second");', "barrier();", 'assert(a > 0, "first");'], "second"),
        (['assert(a > 0, "first");', 'barrier("x");', "let d: int32 = 1 / a;", "return d;"], "first"),
        (['if (a == 0) { assert(a > 0, "first"); }', "barrier();", "return 1 / a;"], "first"),
        (['for (k in 0:2) { assert(a > 0, "first"); }', "barrier();", "return 1 / a;"], "first"),
        (["barrier();", 'assert(b > 0, "second");', "barrier();", 'assert(a > 0, "first");'], "second"),
        (['for (k in 0:2) { assert(k <= b, "first"); barrier(); assert(k < 2 * b, "second"); }'], "second"),
    ],
    ids=["two", "two-exchanged", "division", "branch", "loop", "two-barriers", "in-a-loop"],
)
def test_work_before_a_barrier_comes_first(impl, check, body, first):
    """The first error is the one before the barrier, with everything else equal (AMB-LANG-84).

    The end of a range does not count (AMB-LANG-29), and an assertion is checked when the program runs (AMB-LANG-56).
    """
    source = program(*body, parameters="a: int32, b: int32")
    evaluate(impl, check, source, **integers(a=1, b=1))
    fails(impl, check, source, first, **integers(a=0, b=0))


@clause("LANG-04-10")
@pytest.mark.parametrize("where", ["func", "kernel"])
def test_an_error_before_a_barrier_hides_an_assertion_after_it(impl, check, where):
    """An index out of range before the barrier ends the run before the assertion behind it; without error both pass.

    An assertion is checked when the program runs (AMB-LANG-56), and no index is clamped (AMB-LANG-96).
    """
    body = ["let ok: bool = b > 0;", "let d: int32 = X[a];", "barrier();", 'assert(ok, "second");', "X[0] = d;"]
    parameters = f"a: int32, b: int32, X: {VECTOR}"
    source = module(
        func(*body, "return X;", parameters=parameters) if where == "func" else kernel(*body, parameters=parameters)
    )
    name = where[0]
    outputs = evaluate(impl, check, source, name, **integers(a=3, b=1, X=[1, 2, 3, 4]))
    check.bits(outputs[0], tensor_of("int32", [4, 2, 3, 4]))
    fails(impl, check, source, "second", name, **integers(a=3, b=0, X=[1, 2, 3, 4]))
    observation = impl.language.execute(source=source, function=name, inputs=integers(a=4, b=0, X=[1, 2, 3, 4]))
    rejected = check.rejects(observation, category=("shapes", "types"), phase="execute")
    check.true("second" not in rejected.message, "the error is that of the index", rejected.message)
