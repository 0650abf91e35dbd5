"""Programs that the texts leave open, and their meanings by the decision and by the listed alternatives.

A row has an interpretation, a program, and its meaning by the decision and by each alternative: values, a refusal, or
acceptance. An answer that follows an alternative is another reading; one that follows neither fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tessera_conformance.check import Check
from tessera_conformance.dsl import Values, func, integers, module, program, returning, tensor_of
from tessera_conformance.protocol import Observation, Rejected, Returned
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor

REFUSED, ACCEPTED = "refused", "accepted"
Meaning: TypeAlias = Sequence[Tensor] | str
"""The values of a program, `REFUSED`, or `ACCEPTED`, whatever it returns."""


@dataclass(frozen=True)
class Question:
    """A program, a legal twin, and the meanings of the program."""

    interpretation: str
    about: str
    clauses: tuple[str, ...]
    twin: str
    source: str
    decision: Meaning
    alternatives: Mapping[str, Meaning]
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    category: tuple[str, ...] = ("types",)

    @property
    def has_values(self) -> bool:
        """True if a meaning is values, so that the program is executed."""
        return any(not isinstance(alternative, str) for alternative in (self.decision, *self.alternatives.values()))


def numbers(*values: Values, dtype: str = "int32") -> list[Tensor]:
    """Results of one dtype."""
    return [tensor_of(dtype, value) for value in values]


def scalar(*body: str) -> str:
    """Return a program of a func with an int32 and a bool."""
    return program(*body, parameters="a: int32, c: bool", result="int32")


CALLER = func("return g(a);", parameters="a: int32", result="int32")


def picking(expression: str) -> str:
    """Return a program of a func with an int32 and a row."""
    return returning(expression, "a: int32, V: tensor<3xint32>")


PICKED = {"a": tensor_of("int32", 7), **integers(V=[4, 5, 6])}
GIVEN = {"a": tensor_of("int32", 7), "c": tensor_of("bool", True)}
MATRIX = "tensor<2x3xint32>"
ROWS = integers(M=[[1, 2, 3], [4, 5, 6]])
MESH = "  mesh g = mesh<axes=[dp, tp], shape=[{}, 2]>;"
HALFWAY = "1.00000005960464477539063"
"""The middle between 1 and the next fp32, and 5e-24 more: the nearest fp64 is the middle itself."""


def after_branches(holds: bool) -> Question:
    """Return the question about a name to which a branch assigns a row of five where it had one of two."""
    body = ["let D: tensor<?xint32> = P;", "if (c) { D = Q; }", "let E: tensor<?xint32> = D + D;", "return E;"]
    twin, source = (
        program(*body, parameters=f"c: bool, P: tensor<2xint32>, Q: tensor<{extent}xint32>", result="tensor<?xint32>")
        for extent in (2, 5)
    )
    return Question(
        "AMB-LANG-156",
        "A name whose annotation leaves the extent open, behind a branch that gives it another extent.",
        ("LANG-02-08",),
        twin,
        source,
        numbers([6, 8, 10, 12, 14] if holds else [2, 4]),
        {"refused": REFUSED},
        {"c": tensor_of("bool", holds), **integers(P=[1, 2], Q=[3, 4, 5, 6, 7])},
        ("shapes", "types"),
    )


QUESTIONS = {
    "longer-row-of-a-branch": after_branches(True),
    "row-of-a-branch-not-taken": after_branches(False),
    "default-before-a-parameter": Question(
        "AMB-LANG-74",
        "A parameter without a default behind one with a default.",
        ("LANG-02.3-10",),
        program(parameters="a: int32, b: int32 = 1"),
        program(parameters="a: int32 = 1, b: int32"),
        REFUSED,
        {"any parameter": ACCEPTED},
        category=("types", "syntax"),
    ),
    "shadowing": Question(
        "AMB-LANG-86",
        "A variable of an inner block with the name of an outer one.",
        ("LANG-02.3-19",),
        scalar("let d: int32 = a;", "if (c) { let e: int32 = 1; a = e; }", "return d;"),
        scalar("let d: int32 = a;", "if (c) { let d: int32 = 1; a = d; }", "return d;"),
        numbers(7),
        {"shadowing refused": REFUSED},
        GIVEN,
    ),
    "rounding-of-a-literal": Question(
        "AMB-LANG-87",
        "A decimal whose nearest fp64 lies in the middle between two fp32.",
        ("LANG-02.3-72",),
        returning("1.5", result="fp32"),
        returning(HALFWAY, result="fp32"),
        numbers(1 + 2.0**-23, dtype="fp32"),
        {"round to fp64 first": numbers(1, dtype="fp32")},
    ),
    "float-literal-for-an-integer": Question(
        "AMB-LANG-87",
        "A float literal of a whole value where an integer is wanted.",
        ("LANG-03.1-05",),
        returning("2", result="int32"),
        returning("2.0", result="int32"),
        REFUSED,
        {"accept a float literal whose value is an integer": numbers(2)},
        category=("types", "numerics"),
    ),
    "name-after-its-block": Question(
        "AMB-LANG-92",
        "A use of a variable behind the block that declares it.",
        ("LANG-03.1-01",),
        scalar("if (c) { let d: int32 = a; a = d; }", "return a;"),
        scalar("if (c) { let d: int32 = a; a = d; }", "return d;"),
        REFUSED,
        {"a declared name lives to the end of its function": numbers(7)},
        GIVEN,
        ("types", "syntax"),
    ),
    "empty-range": Question(
        "AMB-LANG-94",
        "A range whose start is its end.",
        ("LANG-02-10", "LANG-02.3-27"),
        scalar("let d: int32 = 3;", "for (k in 0:a) { d = d + 1; }", "return d;"),
        scalar("let d: int32 = 3;", "for (k in a:a) { d = d + 1; }", "return d;"),
        numbers(3),
        {"an empty range is an error": REFUSED},
        GIVEN,
    ),
    "variable-without-a-value": Question(
        "AMB-LANG-152",
        "A use of a variable that was given no value.",
        ("LANG-02.3-18", "LANG-05-01"),
        scalar("let d: int32;", "d = a;", "return d;"),
        scalar("let d: int32;", "return d;"),
        REFUSED,
        {"zero by default": numbers(0), "undefined": ACCEPTED},
        GIVEN,
    ),
    "axis-of-extent-zero": Question(
        "AMB-LANG-153",
        "A mesh axis of extent 0.",
        ("LANG-09-01",),
        module(MESH.format(1)),
        module(MESH.format(0)),
        REFUSED,
        {"a mesh without ranks": ACCEPTED},
        category=("distributed", "shapes", "types"),
    ),
    "end-assigned-in-the-loop": Question(
        "AMB-LANG-169",
        "An assignment in a loop to the name that ends its range.",
        ("LANG-02.3-24", "LANG-02-10"),
        scalar("let d: int32 = 0;", "for (k in 0:a) { d = d + 1; }", "return d;"),
        scalar("let d: int32 = 0;", "for (k in 0:a) { a = 4; d = d + 1; }", "return d;"),
        numbers(7),
        {"a condition evaluated at each turn": numbers(4)},
        GIVEN,
    ),
    "call-before-the-declaration": Question(
        "AMB-LANG-97",
        "A call of a function that is declared behind it.",
        ("LANG-02.3-07", "LANG-02.3-32"),
        module(func("return a;", parameters="a: int32", result="int32", name="g"), CALLER),
        module(CALLER, func("return a;", parameters="a: int32", result="int32", name="g")),
        numbers(7),
        {"declare before use": REFUSED},
        {"a": tensor_of("int32", 7)},
    ),
    "constant-before-its-declaration": Question(
        "AMB-LANG-181",
        "A constant that depends on one that is declared behind it.",
        ("LANG-02.3-05",),
        module("  let e: int32 = 7;", "  let d: int32 = e;", func("return d;", result="int32")),
        module("  let d: int32 = e;", "  let e: int32 = 7;", func("return d;", result="int32")),
        numbers(7),
        {"declared before use": REFUSED},
    ),
    "quotient-below-zero": Question(
        "AMB-LANG-55",
        "A quotient of integers between -4 and -3.",
        ("LANG-02.3-64",),
        scalar("return a / a;"),
        scalar("return (0 - a) / 2;"),
        numbers(-3),
        {"floor division": numbers(-4)},
        GIVEN,
    ),
    "index-of-minus-one": Question(
        "AMB-LANG-96",
        "An index of -1, known when the program runs.",
        ("LANG-14.2-07",),
        picking("V[a - a]"),
        picking("V[6 - a]"),
        REFUSED,
        {"negative indices count from the end": numbers(6), "clamp as slices do": numbers(4)},
        PICKED,
        ("shapes", "types"),
    ),
    "slice-beyond-the-end": Question(
        "AMB-LANG-155",
        "A slice that ends beyond its dimension, known when the program runs.",
        ("LANG-14.2-07",),
        picking("V[1:a - 4]"),
        picking("V[1:a]"),
        REFUSED,
        {"clip slices as Python does": numbers([5, 6])},
        PICKED,
        ("shapes", "types"),
    ),
    "slice-from-minus-two": Question(
        "AMB-LANG-155",
        "A slice that starts at -2, known when the program runs.",
        ("LANG-14.2-07",),
        picking("V[a - 6:]"),
        picking("V[5 - a:]"),
        REFUSED,
        {"count from the end": numbers([5, 6])},
        PICKED,
        ("shapes", "types"),
    ),
    "fewer-indices": Question(
        "AMB-LANG-180",
        "One index of a matrix.",
        ("LANG-14.2-07", "LANG-02.3-20"),
        program("return M[1, :];", parameters=f"M: {MATRIX}"),
        program("return M[1];", parameters=f"M: {MATRIX}"),
        numbers([4, 5, 6]),
        {"refused": REFUSED},
        ROWS,
    ),
    "dtype-of-a-result": Question(
        "AMB-LANG-182",
        "An attribute dtype that is not that of the result.",
        ("LANG-05.3-02",),
        returning("op.softmax(A) @{dtype=fp32}", "A: tensor<1x4xfp32>"),
        returning("op.softmax(A) @{dtype=fp64}", "A: tensor<1x4xfp32>"),
        REFUSED,
        {"ignored": numbers([[0.25] * 4], dtype="fp32"), "a cast": numbers([[0.25] * 4], dtype="fp64")},
        {"A": tensor_of("fp32", [[2] * 4])},
        ("types", "shapes"),
    ),
}


def answer_of(impl: Implementation, check: Check, question: Question) -> Observation:
    """Return the refusal of a program, or else, if a meaning is values, the answer to its execution."""
    check.accepts(impl.language.verify(source=question.twin), "the twin is legal")
    observation: Observation = impl.language.verify(source=question.source)
    if isinstance(observation, Returned) and question.has_values:
        level = {} if impl.level == "strict" else {"level": impl.level}
        observation = impl.language.execute(source=question.source, function="f", inputs=question.inputs, **level)
    return observation


def follows(answer: Observation, meaning: Meaning) -> bool:
    """True if an answer has a meaning."""
    if isinstance(meaning, str):
        return isinstance(answer, Rejected if meaning == REFUSED else Returned)
    return isinstance(answer, Returned) and list(answer.value.get("outputs", ())) == list(meaning)


def judge(impl: Implementation, check: Check, question: Question) -> None:
    """Check that a program has the decision's values or refusal; those of a listed alternative are another reading."""
    answer = answer_of(impl, check, question)
    for alternative, meaning in question.alternatives.items():
        check.reading(question.interpretation, alternative, follows(answer, meaning))
    if isinstance(question.decision, str):
        check.rejects(answer, category=question.category)
        return
    outputs = check.returns(answer)["outputs"]
    check.equal(len(outputs), len(question.decision), "the number of returned values")
    for output, expected in zip(outputs, question.decision, strict=True):
        check.bits(output, expected)
