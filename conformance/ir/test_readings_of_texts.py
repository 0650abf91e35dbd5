"""Texts that show how an interpretation of the language is read (LANG 2, 3.2, 5.2, 5.5, 10, 13.2).

Each row has short programs, and of each the end by the decision and by one listed alternative. An implementation that
ends all of them as the alternative has it follows it; the cases that name the interpretation are then blocked by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest

from tessera_conformance.chapters.ir.kit.programs import accepts_if
from tessera_conformance.check import Check, first_difference
from tessera_conformance.dsl import func, module, program, returning, tensor_of, type_of
from tessera_conformance.marks import clause, title
from tessera_conformance.protocol import Observation, Rejected, Returned
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor

End: TypeAlias = Tensor | str | tuple[str, ...]
"""The value that `f` returns, `LEGAL`, or the categories of a refusal."""
LEGAL = "legal"
SYNTAX = ("syntax",)


@dataclass(frozen=True)
class Row:
    """A listed alternative, the programs that show it with the two ends of each, and a legal program beside them."""

    interpretation: str
    alternative: str
    programs: Sequence[tuple[str, End, End]]
    twin: str = ""
    apart: bool = False
    """True if an implementation may follow the alternative in some of the programs, and the decision in the others."""


def same(dtype: str, *rows: tuple[str, Any, Any]) -> list[tuple[str, End, End]]:
    """Programs that return another value of one dtype by the alternative."""
    return [(source, tensor_of(dtype, ours), tensor_of(dtype, theirs)) for source, ours, theirs in rows]


def taken(sources: Sequence[str], *categories: str) -> list[tuple[str, End, End]]:
    """Programs that the alternative accepts, and the decision refuses."""
    return [(source, categories, LEGAL) for source in sources]


def refused(sources: Sequence[str], *categories: str) -> list[tuple[str, End, End]]:
    """Programs that the alternative refuses, and the decision accepts."""
    return [(source, LEGAL, categories) for source in sources]


def named(word: str) -> str:
    """A program with a local variable of this name."""
    return program(f"let {word}: int32 = 5;", f"return {word};", result="int32")


def noted(string: str) -> str:
    """A program with a string as the value of an attribute."""
    return program(attributes='{note="' + string + '"}')


def counted(range_: str) -> str:
    """A program whose value has the numbers of a range for digits."""
    return program("let d: int32 = 0;", f"for (k in {range_}) {{ d = d * 10 + k; }}", "return d;", result="int32")


def product(a: Any, b: Any) -> str:
    """A program that multiplies two matrices of int8."""
    values = "".join(
        f"    let {name}: tensor<1x1xint8> = op.const_tensor() @{{shape=[1, 1], dtype=int8, value={value}}};\n"
        for name, value in (("A", a), ("B", b))
    )
    return f"module m {{\n  func f() -> tensor<1x1xint8> {{\n{values}    return op.matmul(A, B);\n  }}\n}}\n"


WORDS_OF_USE = ["op", "dist", "schedule", "layout", "mesh", "numerics"]
"""Reserved words that the text itself uses in dotted names and as names of attributes."""
WORDS_OF_THE_GRAMMAR = ["assert", "fn", "tensor", "memref", "fragment", "axes", "shape", "addrspace"]
SQUARE, OPEN = "X: tensor<4x4xbf16>", "X: tensor<?x4xbf16>"
BATCHES = "A: tensor<3x2x2xfp32>, B: tensor<{}x2x2xfp32>"

ROWS = {
    "reserved-words": (
        "LANG-02.1-19",
        "Reserved words that the text uses in names name no variable",
        Row(
            "AMB-LANG-01",
            "drop the words from the reserved list",
            taken([program(f"let {word}: int32 = 1;") for word in WORDS_OF_USE], *SYNTAX),
            apart=True,
        ),
    ),
    "words-of-the-grammar": (
        "LANG-02.1-01",
        "Words of the grammar that are not in the list of section 2.1 name variables",
        Row(
            "AMB-LANG-02",
            "reserve them too",
            refused(list(map(named, WORDS_OF_THE_GRAMMAR)), *SYNTAX),
            named("word"),
            apart=True,
        ),
    ),
    "escapes": (
        "LANG-14.1-07",
        "A string may escape a backslash, r and t",
        Row(
            "AMB-LANG-05",
            "only quote and n",
            refused([noted(r"a\\b"), noted(r"a\rb"), noted(r"a\tb")], *SYNTAX),
            noted(r"a\nb\"c"),
            apart=True,
        ),
    ),
    "comma-in-a-shape": (
        "LANG-13.2-02",
        "No comma stands in the shape of a tensor",
        Row(
            "AMB-LANG-09",
            "accept the comma",
            taken([program(parameters="X: tensor<?,Dxbf16>")], *SYNTAX),
            program(parameters="X: tensor<?xDxbf16>"),
        ),
    ),
    "unknown-dimensions": (
        "LANG-13.2-05",
        "A product needs dimensions that are known to be equal",
        Row(
            "AMB-LANG-10",
            "check at run time",
            taken([returning("op.matmul(X, X)", OPEN)], "shapes"),
            returning("op.matmul(X, X)", SQUARE),
        ),
    ),
    "no-module": (
        "LANG-02.3-01",
        "A declaration stands in a module",
        Row("AMB-LANG-11", "an implicit module", taken([func()], *SYNTAX), module(func())),
    ),
    "chains": (
        "LANG-14.2-09",
        "Comparisons do not chain",
        Row(
            "AMB-LANG-20",
            "chains mean conjunction",
            [
                (returning("1 < 2 < 3", result="bool"), ("syntax", "types"), tensor_of("bool", True)),
                (returning("3 < 2 < 2", result="bool"), ("syntax", "types"), tensor_of("bool", False)),
                (returning("3 > 2 > 2", result="bool"), ("syntax", "types"), tensor_of("bool", False)),
            ],
            returning("(1 < 2) == (2 < 3)", result="bool"),
        ),
    ),
    "rank-0": (
        "LANG-03.1-02",
        "A tensor has a dimension",
        Row(
            "AMB-LANG-27",
            "tensor<fp32>",
            taken([program(parameters="A: tensor<fp32>")], "syntax", "types", "shapes"),
            program(parameters="A: tensor<1xfp32>"),
        ),
    ),
    "two-names": (
        "LANG-02.3-26",
        "A loop over one range binds one name",
        Row(
            "AMB-LANG-28",
            "(index, ordinal)",
            [
                (
                    program(
                        "let d: int32 = 0;",
                        "for (i, j in 3:9:2) { d = d * 100 + i * 10 + j; }",
                        "return d;",
                        result="int32",
                    ),
                    ("types", "shapes", "syntax"),
                    tensor_of("int32", 305172),
                )
            ],
        ),
    ),
    "end-of-a-range": (
        "LANG-02.3-27",
        "The end of a range does not count",
        Row(
            "AMB-LANG-29",
            "inclusive end",
            same("int32", (counted("1:4"), 123, 1234), (counted("1:7:3"), 14, 147), (counted("4:1:-1"), 432, 4321)),
        ),
    ),
    "int8-products": (
        "LANG-15-05",
        "Integers wrap in a product of int8",
        Row(
            "AMB-LANG-40",
            "int8 saturating",
            same("int8", (product(100, 2), [[-56]], [[127]]), (product(-100, 2), [[56]], [[-128]])),
        ),
    ),
    "batches": (
        "LANG-03.2-03",
        "Batch dimensions of a product are equal",
        Row(
            "AMB-LANG-42",
            "matmul declares broadcasting",
            taken([returning("op.matmul(A, B)", BATCHES.format(1))], "shapes", "types"),
            returning("op.matmul(A, B)", BATCHES.format(3)),
        ),
    ),
    "empty-constant": (
        "LANG-02.3-35",
        "A tensor expression is zeros",
        Row(
            "AMB-LANG-53",
            "contents undefined",
            [(returning("tensor<2x2xint32>"), tensor_of("int32", [[0, 0], [0, 0]]), "tensor<2x2xint32>")],
        ),
    ),
    "literals": (
        "LANG-02.3-42",
        "Where nothing asks for a type a literal is an int32 or an fp32",
        Row(
            "AMB-LANG-54",
            "literals are int64 and fp64",
            [
                (returning("3"), tensor_of("int32", 3), tensor_of("int64", 3)),
                (returning("1.5"), tensor_of("fp32", 1.5), tensor_of("fp64", 1.5)),
            ],
        ),
    ),
    "assertion": (
        "LANG-02.3-46",
        "An assertion that does not hold ends execution",
        Row(
            "AMB-LANG-56",
            "compile-time only",
            [
                (
                    program("let a: int32 = 0;", "assert(a > 0);", "return a;", result="int32"),
                    ("numerics", "types", "syntax"),
                    tensor_of("int32", 0),
                )
            ],
        ),
    ),
    "gradient-of-a-tensor": (
        "LANG-05.2-06",
        "A tensor may be differentiated",
        Row(
            "AMB-LANG-58",
            "scalar results only",
            refused([returning("op.grad(A * A, A)", "A: tensor<2xfp32>")], "types", "shapes"),
            returning("op.grad(a * a, a)", "a: fp32"),
        ),
    ),
}
"""The clause, the rule by the decision, and the row of each interpretation."""


def asked(impl: Implementation, source: str, *ends: End) -> Observation:
    """The answer of the implementation: the program is run where an end is a value, and else verified."""
    if all(end == LEGAL or isinstance(end, tuple) for end in ends):
        return impl.language.verify(source=source)
    level = {} if impl.level == "strict" else {"level": impl.level}
    return impl.language.execute(source=source, function="f", inputs={}, **level)


def ends_as(answer: Observation, end: End) -> bool:
    """True if the answer is this value, any value of this type, a legal program, or a refusal of these categories."""
    match answer, end:
        case Rejected(), tuple():
            return answer.code in end or any(diagnostic.category in end for diagnostic in answer.diagnostics)
        case Returned(), Tensor():
            outputs = answer.value["outputs"]
            return len(outputs) == 1 and first_difference(outputs[0], end) is None
        case Returned(), str():
            return end == LEGAL or [type_of(output) for output in answer.value["outputs"]] == [end]
        case _:
            return False


def judge(check: Check, answer: Observation, end: End) -> None:
    """Judge the answer by the decision."""
    if isinstance(end, Tensor):
        (output,) = check.returns(answer)["outputs"]
        check.bits(output, end)
    else:
        accepts_if(check, end == LEGAL, answer, category=end)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=name, marks=[clause(clause_id), title(f"{rule} ({row.interpretation}).")])
        for name, (clause_id, rule, row) in ROWS.items()
    ],
)
def test_a_text_shows_how_an_interpretation_is_read(impl: Implementation, check: Check, row: Row) -> None:
    """Every program ends as the decision has it; or every one as the alternative has it, which is another reading.

    Where the programs are choices apart, some may end as the one and some as the other.
    """
    if row.twin:
        check.accepts(impl.language.verify(source=row.twin))
    answers = [asked(impl, source, *ends) for source, *ends in row.programs]
    follows = [ends_as(answer, theirs) for answer, (_, _, theirs) in zip(answers, row.programs, strict=True)]
    decided = [ends_as(answer, ours) for answer, (_, ours, _) in zip(answers, row.programs, strict=True)]
    ends = map(any, zip(follows, decided, strict=True)) if row.apart else follows
    check.reading(row.interpretation, row.alternative, all(ends) and not all(decided))
    for answer, (_, ours, _) in zip(answers, row.programs, strict=True):
        judge(check, answer, ours)
