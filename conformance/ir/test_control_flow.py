"""If, for and while: what they compute, what leaves them, the regions they become (language spec, sections 1, 2, 2.3).

Malformed statements and conditions of other types are in `rejections/`.
"""

import pytest

from tessera_conformance.chapters.ir.kit.programs import graph_of, returns, tensor_type
from tessera_conformance.dsl import func, integers, module, program, tensor_of
from tessera_conformance.marks import clause
from tessera_conformance.protocol import Rejected

SCALARS = "a: int32, b: int32, s: int32"
ROW = "tensor<3xint32>"
STEPLESS = ("types", "shapes", "numerics")
"""Categories in which a step of zero may be reported: no group of section 11 names it."""


def truth(value):
    """An input that is a bool scalar."""
    return tensor_of("bool", value)


EITHER = pytest.mark.parametrize("holds", [True, False], ids=["true", "false"])


@clause("LANG-02-08", "LANG-02.3-22", "LANG-02.3-23")
@EITHER
def test_an_if_takes_one_of_two_branches(impl, check, holds):
    """The block after the condition where it holds, the one after else where it does not."""
    source = program(
        "let d: int32 = 0;", "if (c) { d = a + 2; } else { d = a + 6; }", "return d;", parameters="c: bool, a: int32"
    )
    returns(impl, check, source, [7 if holds else 11], c=truth(holds), **integers(a=5))


@clause("LANG-02-08", "LANG-02.3-23")
@EITHER
def test_an_if_without_else_leaves_a_name_its_value(impl, check, holds):
    """A name that had a value before keeps it where the condition does not hold (AMB-LANG-52)."""
    source = program("let d: int32 = a;", "if (c) { d = d + 3; }", "return d;", parameters="c: bool, a: int32")
    returns(impl, check, source, [8 if holds else 5], c=truth(holds), **integers(a=5))


@clause("LANG-02-08")
@EITHER
def test_each_branch_rebinds_names_of_its_own(impl, check, holds):
    """A name assigned in one branch only, beside one assigned in the other: both have a value after the if."""
    body = ["let d: int32 = 1;", "let e: int32 = 20;", "if (c) { d = 2; } else { e = 30; }", "return d, e;"]
    returns(impl, check, program(*body, parameters="c: bool"), [2, 20] if holds else [1, 30], c=truth(holds))


@clause("LANG-02-08")
@EITHER
def test_a_variable_may_get_its_first_value_in_both_branches(impl, check, holds):
    """A variable declared without a value has one after an if whose branches both assign it; here a tensor."""
    body = [f"let D: {ROW};", "if (c) { D = A + A; } else { D = A - A; }", "return D;"]
    source = program(*body, parameters=f"c: bool, A: {ROW}")
    returns(impl, check, source, [[2, 4, 6] if holds else [0, 0, 0]], c=truth(holds), **integers(A=[1, 2, 3]))


@clause("LANG-02-08", "LANG-02.3-23")
@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [(1, 2, 1), (2, 2, 2), (2, 1, 3), (5, 1, 4), (-3, 0, 1), (0, -3, 4)],
    ids=["less", "same", "one-more", "more", "below-zero", "above"],
)
def test_ifs_may_be_nested(impl, check, left, right, expected):
    """An if in a branch of an if in a branch of an if: two numbers select one of the leaves."""
    body = [
        "let d: int32 = 0;",
        "if (a < b) { d = 1; } else {",
        "if (a == b) { d = 2; } else { if (a - b > 1) { d = 4; } else { d = 3; } }",
        "}",
        "return d;",
    ]
    returns(impl, check, program(*body, parameters="a: int32, b: int32"), [expected], **integers(a=left, b=right))


@clause("LANG-02-08", "LANG-02.3-23")
@pytest.mark.parametrize("divisor", [0, 4], ids=["zero", "four"])
def test_only_the_branch_that_is_taken_is_executed(impl, check, divisor):
    """A division by zero and an assertion that does not hold do nothing in the other branch."""
    body = [
        "let d: int32 = 0;",
        "if (b == 0) { d = -1; } else { d = a / b; }",
        "if (b == 0) { d = d * 2; } else { assert(b != 0); }",
        "return d;",
    ]
    source = program(*body, parameters="a: int32, b: int32")
    returns(impl, check, source, [9 // divisor if divisor else -2], **integers(a=9, b=divisor))


@clause("LANG-02-08")
@pytest.mark.parametrize(("value", "expected"), [(-5, 5), (0, 100), (7, 7)], ids=["negative", "zero", "positive"])
def test_a_branch_may_return(impl, check, value, expected):
    """Statements behind an if whose branch returned are not executed; the other branch goes on to them."""
    body = [
        "if (a < 0) { return -a; }",
        "if (a == 0) { return 100 / (a + 1); } else { let d: int32 = a; return 100 / a - 100 / d + a; }",
    ]
    source = program(*body, parameters="a: int32", result="int32")
    returns(impl, check, source, [expected], **integers(a=value))


@clause("LANG-02.3-28", "LANG-02-08")
@pytest.mark.parametrize(
    "body",
    [
        ["return a + 1;", "return a;"],
        ["return a + 1;", "a = a - 1;", "if (a > 0) { return a; }", "return 0;"],
        ["if (a > 0) { return a + 1; a = 0; } else { return 0; }", "let d: int32 = a;", "assert(d < 0);"],
        ["if (a < 0) { return 0; a = 1; return a; }", "return a + 1;"],
    ],
    ids=["return", "statements", "both-branches", "in-a-branch"],
)
def test_what_follows_a_return_is_not_executed(impl, check, body):
    """Statements that nothing can reach are legal and do nothing (AMB-LANG-93)."""
    source = program(*body, parameters="a: int32", result="int32")
    check.accepts(impl.language.verify(source=source))
    returns(impl, check, source, [6], **integers(a=5))


@clause("LANG-02-08", "LANG-02.3-23")
def test_a_name_declared_in_a_branch_hides_the_outer_one_there(impl, check):
    """An inner block may declare a name again, and of another type; outside, the name is what it was.

    AMB-LANG-86, AMB-LANG-92.
    """
    body = [
        "let d: int32 = a;",
        f"if (c) {{ let d: {ROW} = A; d = d + d; e = d[2]; }} else {{ let d: bool = c; c = d; }}",
        "return d, e;",
    ]
    source = program(*body, parameters=f"c: bool, a: int32, e: int32, A: {ROW}")
    returns(impl, check, source, [5, 6], c=truth(True), **integers(a=5, e=1, A=[1, 2, 3]))
    returns(impl, check, source, [5, 1], c=truth(False), **integers(a=5, e=1, A=[1, 2, 3]))


PATHS = {
    "hidden-behind-an-assignment": ("if (c) { a = 1; } else { let a: bool = c; a = true; }", 1, 5),
    "hidden-in-either-branch": ("if (c) { let a: bool = false; } else { a = 3; let a: bool = c; a = true; }", 5, 3),
    "hidden-in-a-branch-of-a-loop": ("for (i in 0:2) { if (c) { let a: bool = c; } else { a = a + 1; } }", 5, 7),
    "hidden-anew-in-every-turn": ("for (i in 0:2) { a = a + 1; let a: bool = c; a = true; }", 7, 7),
    "hidden-by-the-variable-of-a-loop": ("for (a in 0:3) { let b: int32 = a; }", 5, 5),
}


@clause("LANG-02-08", "LANG-02-10")
@EITHER
@pytest.mark.parametrize(("statement", "then", "otherwise"), PATHS.values(), ids=PATHS)
def test_a_name_has_the_value_that_the_path_gave_it(impl, check, statement, then, otherwise, holds):
    """An assignment behind an inner declaration belongs to the inner name, one before it to the outer.

    AMB-LANG-86, AMB-LANG-92.
    """
    source = program(statement, "return a;", parameters="c: bool, a: int32")
    returns(impl, check, source, [then if holds else otherwise], c=truth(holds), **integers(a=5))


@clause("LANG-02-08", "LANG-02.3-23")
def test_the_condition_may_be_any_scalar_bool(impl, check):
    """A literal, a parameter, a comparison, a call, and an element of a tensor of bools (AMB-LANG-55)."""
    conditions = {"true": 1, "false": 0, "c": 1, "a > 4": 1, "c == false": 0, "odd(a)": 1, "M[1]": 1, "M[0]": 0}
    body = [f"if ({condition}) {{ d = 2 * d + 1; }} else {{ d = 2 * d; }}" for condition in conditions]
    source = module(
        func("return p - p / 2 * 2 == 1;", parameters="p: int32", result="bool", name="odd"),
        func("let d: int32 = 0;", *body, "return d;", parameters="c: bool, a: int32, M: tensor<2xbool>"),
    )
    expected = int("".join(map(str, conditions.values())), 2)
    returns(impl, check, source, [expected], c=truth(True), M=truth([False, True]), **integers(a=5))


RANGES = {
    "0:5": [0, 1, 2, 3, 4],
    "3:4": [3],
    "2:9:3": [2, 5, 8],
    "2:8:3": [2, 5],
    "0:7:10": [0],
    "9:4:-1": [9, 8, 7, 6, 5],
    "9:1:-4": [9, 5],
    "9:2:-4": [9, 5],
    "3:-1:-1": [3, 2, 1, 0],
    "5:5": [],
    "5:2": [],
    "2:5:-1": [],
    "4:4:-1": [],
    "a:b": [2, 3, 4, 5, 6],
    "a:b:s": [2, 5],
    "b:a:-s": [7, 4],
    "b:a": [],
    "a + 1:2 * a + 2:s - 1": [3, 5],
}


@clause("LANG-02-10", "LANG-02.3-22", "LANG-02.3-24", "LANG-02.3-27")
@pytest.mark.parametrize("range_", RANGES)
def test_a_for_counts_over_its_range(impl, check, range_):
    """From start, by step or by one, up or down, to stop, which is excluded (AMB-LANG-29, AMB-LANG-94)."""
    body = ["let d: int32 = 1;", f"for (k in {range_}) {{ d = d * 10 + k; }}", "return d;"]
    expected = int("1" + "".join(map(str, RANGES[range_])))
    returns(impl, check, program(*body, parameters=SCALARS), [expected], **integers(a=2, b=7, s=3))


@clause("LANG-02-10", "LANG-02.3-27")
@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [
        (-3, 3, 2),
        (0, 100, 7),
        (100, 0, -9),
        (5, 5, 1),
        (7, 3, 2),
        (3, 7, -2),
        (2**31 - 3, 2**31 - 1, 1),
        (2**31 - 8, 2**31 - 1, 3),
        (-(2**31) + 7, -(2**31), -3),
    ],
    ids=["over-zero", "up", "down", "equal", "past", "past-downwards", "largest", "past-the-largest", "past-the-least"],
)
def test_a_range_may_be_computed_at_run_time(impl, check, start, stop, step):
    """Start, stop and step are parameters; number of turns and last number identify it (AMB-LANG-29, AMB-LANG-94)."""
    body = [
        "let turns: int32 = 0;",
        "let last: int32 = -1;",
        "for (k in a:b:s) {",
        "turns = turns + 1;",
        "last = k;",
        "}",
        "return turns, last;",
    ]
    numbers = range(start, stop, step)
    expected = [len(numbers), numbers[-1] if numbers else -1]
    returns(impl, check, program(*body, parameters=SCALARS), expected, **integers(a=start, b=stop, s=step))


@clause("LANG-02-10", "LANG-02.3-27")
def test_a_step_of_zero_at_run_time_is_an_error(impl, check):
    """The loop does not start, let alone run forever (AMB-LANG-29); any other step is legal."""
    source = program("let d: int32 = 0;", "for (k in a:b:s) { d = d + k; }", "return d;", parameters=SCALARS)
    returns(impl, check, source, [3], **integers(a=0, b=3, s=1))
    observation = impl.language.execute(source=source, function="f", inputs=integers(a=0, b=3, s=0))
    check.rejects(observation, category=STEPLESS, phase="execute")


@clause("LANG-02-10", "LANG-02-11", "LANG-02.3-27")
@pytest.mark.parametrize("loop", ["for (k in 5:a)", "while (a > 5)"], ids=["for", "while"])
def test_a_loop_of_no_turns_divides_by_nothing(impl, check, loop):
    """A quotient that no turn changes is not computed before the first turn (AMB-LANG-29, AMB-LANG-94)."""
    parameters = "a: int32, b: int32"
    source = program(
        "let d: int32 = 7;", f"{loop} {{ d = 1 / b; }}", "return d;", parameters=parameters, result="int32"
    )
    returns(impl, check, source, [7], **integers(a=1, b=0))


@clause("LANG-02-10")
@pytest.mark.parametrize("count", [0, 1, 2, 10, 45], ids=str)
def test_a_for_carries_two_values(impl, check, count):
    """Fibonacci numbers: each turn makes both values from both; none is made in no turn (AMB-LANG-29, AMB-LANG-94)."""
    body = [
        "let d: int32 = 0;",
        "let e: int32 = 1;",
        "for (k in 0:a) {",
        "let next: int32 = d + e;",
        "d = e;",
        "e = next;",
        "}",
        "return d, e;",
    ]
    d, e = 0, 1
    for _ in range(count):
        d, e = e, d + e
    returns(impl, check, program(*body, parameters="a: int32"), [d, e], **integers(a=count))


@clause("LANG-02-10")
def test_a_for_carries_a_tensor(impl, check):
    """A loop carries the fifth power of a matrix and a count of its turns (AMB-LANG-29)."""
    matrix = "tensor<2x2xint32>"
    body = [
        f"let P: {matrix} = A;",
        "let turns: int32 = 0;",
        "for (k in 1:5) { P = P @ A; turns = turns + 1; }",
        "return P, turns;",
    ]
    source = program(*body, parameters=f"A: {matrix}")
    returns(impl, check, source, [[[8, 5], [5, 3]], 4], **integers(A=[[1, 1], [1, 0]]))


@clause("LANG-02-10", "LANG-02.3-24")
def test_fors_may_be_nested(impl, check):
    """The range of an inner loop depends on the outer variable, and is empty at first (AMB-LANG-29, AMB-LANG-94)."""
    body = [
        "let d: int32 = 0;",
        "for (i in 0:a) {",
        "let row: int32 = 0;",
        "for (j in 0:i) { row = row + i * j; if (i == j + 1) { d = d + 1000; } }",
        "d = d + row;",
        "}",
        "return d;",
    ]
    expected = sum(i * j + 1000 * (i == j + 1) for i in range(6) for j in range(i))
    returns(impl, check, program(*body, parameters="a: int32"), [expected], **integers(a=6))


@clause("LANG-02-10", "LANG-02.3-24", "LANG-02.3-26")
def test_the_variable_of_a_for_is_int32_and_its_own(impl, check):
    """It can be used where an int32 is wanted, and leaves an outer name as it was (AMB-LANG-86, AMB-LANG-94).

    The end of a range does not count (AMB-LANG-29, AMB-LANG-92).
    """
    body = [
        "let k: int32 = 40;",
        "let d: int32 = 0;",
        "for (k in 0:4) { let e: int32 = k; d = d + e * twice(k); }",
        "return d, k;",
    ]
    twice = func("return p + p;", parameters="p: int32", result="int32", name="twice")
    returns(impl, check, module(twice, func(*body)), [28, 40])


@clause("LANG-02.3-26", "LANG-02.3-24")
@pytest.mark.parametrize("names", ["i, j", "i,j", "a, i"], ids=["two", "without-blank", "one-of-them-a-parameter"])
def test_two_names_over_one_range_parse_and_are_refused(impl, check, names):
    """The grammar has an iterator of two names, and nothing says what they mean (AMB-LANG-28)."""
    body = "for ({} in 0:4) {{ let d: int32 = 1; }}"
    check.accepts(impl.language.verify(source=program(body.format("i"), parameters="a: int32")))
    source = program(body.format(names), parameters="a: int32")
    parsed = impl.language.parse(source=source)
    check.reading("AMB-LANG-28", "refuse in the parser", isinstance(parsed, Rejected))
    check.accepts(parsed)
    check.rejects(impl.language.verify(source=source), category=("types", "shapes", "syntax"), phase="verify")


@clause("LANG-02-11", "LANG-02.3-22", "LANG-02.3-25")
@pytest.mark.parametrize("start", [10, 1, 0, -4], ids=str)
def test_a_while_runs_as_long_as_its_condition_holds(impl, check, start):
    """Counting down; where the condition does not hold at first the body does not run."""
    body = [
        "let d: int32 = 0;",
        "while (a > 0) {",
        "d = d + a;",
        "a = a - 3;",
        "}",
        "return d, a;",
    ]
    numbers = range(start, 0, -3)
    expected = [sum(numbers), start - 3 * len(numbers)]
    returns(impl, check, program(*body, parameters="a: int32"), expected, **integers(a=start))


@clause("LANG-02-11")
@pytest.mark.parametrize(("left", "right"), [(48, 18), (17, 5), (7, 7), (1, 1000)], ids=["6", "1", "same", "far"])
def test_a_while_carries_two_values(impl, check, left, right):
    """Euclid's algorithm by subtraction; the condition compares both carried values."""
    body = ["while (a != b) { if (a > b) { a = a - b; } else { b = b - a; } }", "return a, b;"]
    divisor = max(index for index in range(1, 1001) if left % index == right % index == 0)
    returns(
        impl, check, program(*body, parameters="a: int32, b: int32"), [divisor, divisor], **integers(a=left, b=right)
    )


@clause("LANG-02-11", "LANG-02.3-25")
def test_the_condition_of_a_while_is_computed_anew_in_every_turn(impl, check):
    """It reads an element of a tensor that the body assigns, through a call."""
    body = [
        f"let X: {ROW} = A;",
        "while (more(X[1])) {",
        "X[1] = X[1] - 2;",
        "X[0] = X[0] + 1;",
        "}",
        "return X, A;",
    ]
    source = module(
        func("return p > 0;", parameters="p: int32", result="bool", name="more"),
        func(*body, parameters=f"A: {ROW}"),
    )
    returns(impl, check, source, [[4, -1, 9], [0, 7, 9]], **integers(A=[0, 7, 9]))


FIVE = "p: int32, q: int32, r: int32, s: int32, t: int32"
REBINDING = "let old: int32 = p; p = q + 1; q = r + 10; r = s + 100; s = t + 1000; t = old + 10000;"


@pytest.mark.parametrize(
    ("statement", "turns"),
    [
        pytest.param(f"if (true) {{ {REBINDING} }}", 1, id="if", marks=clause("LANG-02-08", "LANG-02.3-23")),
        pytest.param(f"if (false) {{ }} else {{ {REBINDING} }}", 1, id="else", marks=clause("LANG-02.3-23")),
        pytest.param(f"for (k in 0:3) {{ {REBINDING} }}", 3, id="for", marks=clause("LANG-02-10", "LANG-02.3-24")),
        pytest.param(
            f"let k: int32 = 0; while (k < 3) {{ k = k + 1; {REBINDING} }}",
            3,
            id="while",
            marks=clause("LANG-02-11", "LANG-02.3-25"),
        ),
        pytest.param(
            f"for (k in 0:3) {{ if (k != 1) {{ {REBINDING} }} }}", 2, id="if-in-for", marks=clause("LANG-02.3-24")
        ),
    ],
)
def test_a_statement_rebinds_several_names_of_one_type(impl, check, statement, turns):
    """Five names, each assigned from the next, keep what was assigned to them (AMB-LANG-29, AMB-LANG-94)."""
    expected = [1, 2, 3, 4, 5]
    for _ in range(turns):
        expected = [value + 10**place for place, value in enumerate([*expected[1:], expected[0]])]
    source = program(statement, "return p, q, r, s, t;", parameters=FIVE)
    returns(impl, check, source, expected, **integers(p=1, q=2, r=3, s=4, t=5))


@clause("LANG-02-08", "LANG-02-10", "LANG-02-11", "LANG-02.3-19")
@pytest.mark.parametrize("depth", [2, 3, 6])
def test_a_name_may_be_assigned_from_any_depth(impl, check, depth):
    """In blocks within blocks, an if, a for and a while by turns, each adds to the outer name (AMB-LANG-29)."""
    heads = ("if (true) {{", "for (k{0} in 0:2) {{", "while (d < 0) {{ d = 0; }} if (true) {{")
    body = ["let d: int32 = 0;", *(f"{heads[level % 3].format(level)} d = d + {10**level};" for level in range(depth))]
    body += ["}"] * depth + ["return d;"]
    expected = sum(10**level * 2 ** ((level + 2) // 3) for level in range(depth))
    returns(impl, check, program(*body), [expected])


@pytest.mark.parametrize(
    "loop",
    [
        pytest.param("for (k in 0:a) { d = d + k; }", id="for", marks=clause("LANG-02-10", "LANG-02.3-24")),
        pytest.param(
            "let k: int32 = 0; while (k < a) { d = d + k; k = k + 1; }",
            id="while",
            marks=clause("LANG-02-11", "LANG-02.3-25"),
        ),
    ],
)
def test_a_loop_runs_as_many_turns_as_its_condition_asks_for(impl, check, loop):
    """A loop of 1,500 turns runs all of them (AMB-LANG-29, AMB-LANG-94)."""
    source = program("let d: int32 = 0;", loop, "return d;", parameters="a: int32")
    returns(impl, check, source, [sum(range(1500))], **integers(a=1500))


OUTER = {
    "for": "for (i in 0:3) {{ {} }}",
    "while": "let i: int32 = 0; while (i < 3) {{ {} i = i + 1; }}",
}
INNER = {
    "for": "for (j in 0:2) {{ {} }}",
    "while": "let j: int32 = 0; while (j < 2) {{ {} j = j + 1; }}",
}


@clause("LANG-02-10", "LANG-02-11", "LANG-02.3-19")
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_a_loop_carries_what_only_a_loop_in_it_assigns(impl, check, outer, inner):
    """Each kind of loop in each (AMB-LANG-29)."""
    loops = OUTER[outer].format(INNER[inner].format("d = d * 2 + j + i;"))
    expected = 1
    for i in range(3):
        for j in range(2):
            expected = expected * 2 + j + i
    returns(impl, check, program("let d: int32 = 1;", loops, "return d;"), [expected])


@clause("LANG-02-11", "LANG-02-10", "LANG-02-08")
def test_loops_and_branches_may_stand_in_each_other(impl, check):
    """The longest Collatz sequence below ten: an if in a while in a for, all carrying what they assign."""
    body = [
        "let longest: int32 = 0;",
        "let of: int32 = 0;",
        "for (k in 1:10) {",
        "let n: int32 = k;",
        "let steps: int32 = 0;",
        "while (n != 1) {",
        "if (n / 2 * 2 == n) { n = n / 2; } else { n = 3 * n + 1; }",
        "steps = steps + 1;",
        "}",
        "if (steps > longest) { longest = steps; of = k; }",
        "}",
        "return longest, of;",
    ]
    returns(impl, check, program(*body), [19, 9])


REGIONS = {
    "if": ("if (c) { d = d + 1; X = X + X; }", "LANG-02-08"),
    "for": ("for (k in 0:3) { d = d + k; X = X + X; }", "LANG-02-10"),
    "while": ("while (d < 3) { d = d + 1; X = X + X; }", "LANG-02-11"),
}


@clause("LANG-01-06")
@pytest.mark.parametrize(
    "statement", [pytest.param(text, id=name, marks=clause(tag)) for name, (text, tag) in REGIONS.items()]
)
def test_a_control_statement_is_an_operation_with_regions(impl, check, statement):
    """Its results are the names that it rebinds; what it is called is free (AMB-LANG-52, AMB-LANG-85)."""
    body = ["let d: int32 = 0;", f"let X: {ROW} = A;", statement, "return d, X;"]
    graph = graph_of(impl, check, program(*body, parameters=f"c: bool, A: {ROW}"))
    owners = _owners(graph)
    check.true(owners != [], "an operation owns a region", graph.operations)
    carrying = [operation for operation in owners if _kinds(operation) >= {"int32", ("3",)}]
    check.true(carrying != [], "an operation with regions yields both the scalar and the tensor", owners)


def _owners(graph):
    """The operations that have regions."""
    return [operation for operation in graph.operations if operation.get("regions", 0) > 0]


def _kinds(operation):
    """The scalar types, and the shapes of the tensors, that an operation yields."""
    actual = [(text, tensor_type(text)) for text in operation["result_types"]]
    return {text if type_ is None else type_.shape for text, type_ in actual}


@clause("LANG-01-06")
def test_regions_are_nested_as_blocks_are(impl, check):
    """A loop in a loop in a branch: three more operations own regions than in straight-line code."""
    nested, straight = (
        len(_owners(graph_of(impl, check, program("let d: int32 = 0;", statement, "return d;", parameters="c: bool"))))
        for statement in ("if (c) { for (i in 0:3) { while (d < i) { d = d + 1; } } }", "d = d + 1;")
    )
    check.true(nested - straight >= 3, "each of the three blocks is a region", (nested, straight))
