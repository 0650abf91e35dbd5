"""Front ends that follow a listed alternative of an interpretation (LANG 2, 3.2, 5.2, 5.5, 10, 13.2, 14.1).

Most read another text in the place of the one they are given.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import Variant, altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.graph import control
from tessera_reference.graph.control import Assert, For
from tessera_reference.graph.grad import Grad
from tessera_reference.graph.reductions import MatMul
from tessera_reference.ir.operation import Operation
from tessera_reference.ir.operation import Refusal as IllegalOperands
from tessera_reference.ir.types import Tensor
from tessera_reference.language import expressions, parser, values
from tessera_reference.language import expressions as calls
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype

TEXTS = (
    *(f"ir/{topic}/*" for topic in ("constructs", "readings-of-texts", "grammar", "keywords", "lexical", "types")),
    *(f"ir/{topic}/*" for topic in ("declarations", "statements", "meshes", "worked-examples", "string-escapes")),
    *(f"ir/{topic}/*" for topic in ("expressions", "precedence", "annotations", "directives")),
)
"""Cases that read texts of the language."""
RUNS = (
    *(f"ir/{topic}/*" for topic in ("constructs", "readings-of-texts", "control-flow", "statements", "evaluation")),
    *(f"ir/{topic}/*" for topic in ("literals", "constants", "expressions", "movement", "type-rules", "shapes")),
)
"""Cases that run programs."""
LOOPS = (
    *(f"ir/{topic}/*" for topic in ("gradients-of-programs", "stateful", "ranks", "random-operations", "kernels")),
    *(f"ir/{topic}/*" for topic in ("indexing", "printed-ir", "schedule/schedule-execution", "function-values")),
    *(f"ir/{topic}/*" for topic in ("annotations", "directives", "declarations", "tile/control", "purity", "fuzz")),
)
"""Further cases whose programs have loops, assertions, constants or gradients."""


class OtherText(ReferenceAdapter):
    """Reads another text in the place of each program."""

    def read(self, source: str) -> str:
        """The text that it reads."""
        return source

    def language_parse(self, *, source: str) -> dict[str, Any]:
        """The declarations of the other text."""
        return super().language_parse(source=self.read(source))

    def _compile(self, source: str) -> Any:
        return super()._compile(self.read(source))


def refuse(found: object, what: str) -> None:
    """Refuse a text in which something was found."""
    if found:
        raise Refusal("syntax", "parse", f"there is no {what}")


IN_USE = {"op", "dist", "schedule", "layout", "mesh", "numerics", "dtype", "precision", "align"}
DROPPED = altered(
    "AMB-LANG-01",
    "reserves no word that the text uses in names",
    (*TEXTS, "ir/rejections/parse/*"),
    ReferenceAdapter,
    (parser, "RESERVED", parser.RESERVED - IN_USE),
    name="dropped_words",
)

GRAMMAR_WORDS = {"assert", "fn", "tensor", "memref", "fragment", "axes", "shape", "addrspace"}
TYPES = parser._types


def reserving(name: str, description: str, words: Set[str]) -> Variant:
    """These words of the grammar are reserved."""
    return altered(
        "AMB-LANG-02",
        description,
        (*TEXTS, "ir/rejections/parse/*"),
        ReferenceAdapter,
        (parser, "RESERVED", parser.RESERVED | words),
        (parser, "_types", lambda: {**dict.fromkeys(sorted(words), "WORD"), **TYPES()}),
        name=name,
    )


MORE_WORDS = reserving("more_words", "reserves every word of the grammar", GRAMMAR_WORDS)
WORDS_OF_PRODUCTIONS = reserving(
    "words_of_productions",
    "reserves the words with which statements and types begin, and no name of an attribute",
    GRAMMAR_WORDS - {"axes", "shape", "addrspace"},
)


@varies("AMB-LANG-05", "knows the escapes of a quote and of n alone", *TEXTS, "ir/rejections/lex/*")
class TwoEscapes(OtherText):
    """Refuses the other three."""

    def read(self, source: str) -> str:
        """The text without them."""
        refuse(re.search(r'"[^"\n]*\\[\\rt]', source), "such escape")
        return source


@varies("AMB-LANG-09", "takes a comma between dimensions", *TEXTS, "ir/rejections/parse/*")
class Commas(OtherText):
    """Joins dimensions by commas, too."""

    def read(self, source: str) -> str:
        """The text with the letter x in their places."""
        return re.sub(r"(?<=[<,])(\?|\w+),(?=[?\w]+x\w+[;>])", r"\1x", source)


class Patient(ReferenceAdapter):
    """Verifies programs in which nothing is wrong but what can be found later."""

    later = ""

    def forgives(self, message: str, source: str) -> bool:
        """True if the mistake is found later."""
        return self.later in message

    def language_verify(self, *, source: str) -> dict[str, Any]:
        """No warning where only that is wrong."""
        try:
            return super().language_verify(source=source)
        except Refusal as refusal:
            errors = [diagnostic for diagnostic in refusal.outcome.diagnostics if diagnostic.severity == "error"]
            if errors and all(self.forgives(error.message, source) for error in errors):
                return {"warnings": []}
            raise


@varies(
    "AMB-LANG-10",
    "compares unknown dimensions when the program runs",
    *TEXTS,
    "ir/rejections/shape/*",
    "ir/shapes/*",
    "ir/type-rules/*",
)
class CheckedLater(Patient):
    """Accepts matrix products of sizes not known to be equal."""

    later = "not known to be equal"

    def forgives(self, message: str, source: str) -> bool:
        """True of a loop, too, which changes the shape of what is declared with an open one."""
        return super().forgives(message, source) or ("the loop changes" in message and "tensor<?" in source)


@varies("AMB-LANG-42", "repeats batches of matrices", *TEXTS, "ir/rejections/shape/*", "ir/shapes/*", "ir/type-rules/*")
class Batches(Patient):
    """Broadcasts in matrix products."""

    later = "batch dimensions differ"


@varies("AMB-LANG-11", "takes declarations outside a module", *TEXTS, "ir/rejections/parse/*")
class ImplicitModule(OtherText):
    """Puts them into one."""

    def read(self, source: str) -> str:
        """The text in a module."""
        return f"module implicit {{{source}}}" if re.match(r"\s*(func|kernel|type|let|mesh)\b", source) else source


@varies("AMB-LANG-15", "takes pairs of attributes alone", *TEXTS, "ir/rejections/parse/*", taken_for=["AMB-LANG-21"])
class Pairs(OtherText):
    """Reads the grammar by the letter."""

    def read(self, source: str) -> str:
        """A text in which each block of attributes has none or two, and each list of values too."""
        for block in re.findall(r"@\s*\{([^{}]*)\}", source):
            for inside in re.findall(r"\[([^\[\]]*)\]", block):
                refuse(inside.strip() and inside.count(",") != 1, "such list")
            flat = re.sub(r'\[.*\]|"[^"]*"', "", block)
            refuse(flat.strip() and flat.count(",") != 1, "such block")
        return source


CHAIN = re.compile(r"\b(\w+) ([<>]=?|[=!]=) (\w+) ([<>]=?|[=!]=) (\w+)\b")


@varies("AMB-LANG-20", "takes comparisons in a row for their conjunction", *TEXTS, "ir/rejections/parse/*")
class Chains(OtherText):
    """Chains comparisons as Python does."""

    def read(self, source: str) -> str:
        """The text with two comparisons, of which p > (p > q) holds where both do."""
        return CHAIN.sub(r"((\1 \2 \3) > ((\1 \2 \3) > (\3 \4 \5)))", source)


@varies("AMB-LANG-27", "has tensors of rank 0", *TEXTS, "ir/rejections/type/*")
class RankZero(OtherText):
    """Reads them as scalars."""

    def read(self, source: str) -> str:
        """The text with scalar types."""
        return re.sub(r"tensor<(fp\d+|bf16|int\d+|bool)>", r"\1", source)


TWO_NAMES = re.compile(r"for \((\w+), ?(\w+) in ([^)]*)\) \{")


@varies(
    "AMB-LANG-28",
    "counts the turns of a loop in a second name",
    *TEXTS,
    "ir/rejections/parse/*",
    "ir/control-flow/two-names*",
)
class Ordinals(OtherText):
    """The second name is the number of the turn."""

    def read(self, source: str) -> str:
        """The text with a count beside each loop."""
        counting = r"let ordinal: int32 = -1; for (\1 in \3) { ordinal = ordinal + 1; let \2: int32 = ordinal; "
        return TWO_NAMES.sub(counting, source)


@varies(
    "AMB-LANG-28", "does not parse a loop with two names", *TEXTS, "ir/rejections/parse/*", "ir/control-flow/two-names*"
)
class OneName(OtherText):
    """Refuses the second."""

    def read(self, source: str) -> str:
        """The text without it."""
        refuse(TWO_NAMES.search(source), "such loop")
        return source


def inclusive(self: For, start: Array, stop: Array, step: Array, *carried: Array, env: Any) -> Any:
    """Run the body for each index, the end among them."""
    stride = int(step.values)
    if stride == 0:
        raise control.ZeroStep
    for index in range(int(start.values), int(stop.values) + (1 if stride > 0 else -1), stride):
        carried = yield from env.region(0, (Array(start.dtype, start.values.dtype.type(index)), *carried))
    return carried


INCLUSIVE = altered(
    "AMB-LANG-29",
    "runs loops up to and with the end of their range",
    (*RUNS, *LOOPS, "ir/gradients/*"),
    ReferenceAdapter,
    (For, "steps", inclusive),
    name="inclusive_ends",
)

PRODUCT = MatMul.execute


def saturating(self: MatMul, a: Array, b: Array, env: Any) -> Array:
    """The product, of int8 the nearest int8."""
    if a.dtype.name != "int8" or self.out is not None:
        return PRODUCT(self, a, b, env)
    wide = Array(dtype("int32"), a.values.astype(np.int32)), Array(dtype("int32"), b.values.astype(np.int32))
    exact = wide[0].values @ wide[1].values
    return Array(a.dtype, np.clip(exact, -128, 127).astype(a.values.dtype))


SATURATING = altered(
    "AMB-LANG-40",
    "rounds products of int8 to the nearest int8",
    ("ir/readings-of-texts/*", "ir/matmul/*int8*", "ir/precedence/*", "ir/type-rules/*", "ir/ranks/*", "ir/fuzz/*"),
    ReferenceAdapter,
    (MatMul, "execute", saturating),
    name="saturating_products",
)


@varies(
    "AMB-LANG-46",
    "scales the inverse transform alone where no norm is named",
    "ir/fourier/*",
    "ir/fuzz/*",
    "ir/rejections/type/*",
)
class Backward(OtherText):
    """Has another norm by default."""

    def read(self, source: str) -> str:
        """The text with a norm in each transform."""
        return re.sub(r"(op\.i?fft\(\w+)\)(?! @\{norm)", r'\1, norm="backward")', source)


BARE = re.compile(r"(?<=[=(,])\s*tensor<([\dx]+)x([a-z]\w*)>|(?<=return) tensor<([\dx]+)x([a-z]\w*)>")


@varies(
    "AMB-LANG-53",
    "leaves anything in a constant without value",
    *(*RUNS, "ir/kernels/*", "ir/printed-ir/*", "ir/ir-text/*"),
)
class Undefined(OtherText):
    """Fills it with ones."""

    def read(self, source: str) -> str:
        """The text with a value in each."""
        source = BARE.sub(self.constant, source)
        return re.sub(r"op\.const_tensor\(\) @\{((?:(?!value|\}).)*)\}", r"op.const_tensor() @{\1, value=1}", source)

    def constant(self, found: re.Match[str]) -> str:
        """A constant of the type."""
        shape, name = found[1] or found[3], found[2] or found[4]
        return f" op.const_tensor() @{{shape=[{shape.replace('x', ', ')}], dtype={name}, value=1}}"


def wide(*exprs: Any) -> Any:
    """fp64 if a float literal occurs, else int64."""
    return dtype("fp64" if any(map(values._has_float, exprs)) else "int64")


WIDE = altered(
    "AMB-LANG-54",
    "has literals of 64 bits where nothing asks for a type",
    (*RUNS, *LOOPS, "ir/precedence/*", "ir/unary-operators/*", "ir/casts/*", "ir/graph-ir/*", "ir/rejections/type/*"),
    ReferenceAdapter,
    *((module, "default_dtype", wide) for module in (values, expressions, calls)),
    name="wide_literals",
)


def unchecked(self: Assert, condition: Array, env: Any) -> tuple[Array, ...]:
    """Nothing."""
    return ()


UNCHECKED = altered(
    "AMB-LANG-56",
    "has assertions that mean nothing when a program runs",
    (*RUNS, "ir/declarations/*", "ir/fuzz/*", "ir/string-escapes/*", "ir/rejections/type/*"),
    ReferenceAdapter,
    (Assert, "execute", unchecked),
    name="unchecked_assertions",
)

INFER = Grad.infer


def of_scalars(self: Grad) -> Any:
    """One gradient for each operand, of a scalar."""
    if isinstance(self.y, Tensor):
        raise IllegalOperands("shapes", "a gradient of a tensor", "a scalar", "LANG-05.2-06")
    return INFER(self)


SCALARS = altered(
    "AMB-LANG-58",
    "has gradients of scalars alone",
    ("ir/readings-of-texts/*", "ir/gradients*", "ir/derivatives/*", "ir/ir-modules/*", *LOOPS, "ir/rejections/type/*"),
    ReferenceAdapter,
    (Grad, "infer", of_scalars),
    name="scalar_gradients",
)


def zeros(self: Operation, at: Any, build: Any) -> tuple[None, ...]:
    """No gradient for any operand."""
    return (None,) * len(self.operand_types)


ZEROS = altered(
    "AMB-LANG-59",
    "has a gradient of zeros through an operation without adjoint",
    ("ir/tile/gradients/*", "ir/derivatives/norms/*", "ir/gradients*", "collectives/futures-as-values/*"),
    ReferenceAdapter,
    (Operation, "adjoint", zeros),
    (Operation, "is_differentiable", classmethod(lambda cls: True)),
    name="zero_gradients",
)
