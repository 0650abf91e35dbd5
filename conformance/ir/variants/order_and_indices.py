"""Front ends that want a declaration before its use, and indices, slices and quotients that mean more (LANG 2.3, 14.2).

Each follows one listed alternative of an interpretation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.strength import altered, varies
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.numerics import arithmetic, movement
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.movement import Selection, Stretch, Values

PROGRAMS = (
    *(f"ir/{topic}/*" for topic in ("constants", "constructs", "control-flow", "declarations", "evaluation")),
    *(f"ir/{topic}/*" for topic in ("expressions", "func-declarations", "fuzz", "grammar", "indexing", "kernels")),
    *(f"ir/{topic}/*" for topic in ("literals", "purity", "readings-of-*", "rejections", "statements", "movement")),
    *(f"ir/{topic}/*" for topic in ("gradients*", "printed-ir", "shapes", "type-rules", "types", "meshes", "ranks")),
    *(f"ir/{topic}/*" for topic in ("function-values", "stateful", "graph-ir", "annotations", "directives")),
    *(f"ir/{topic}/*" for topic in ("collectives", "derivatives", "worked-examples")),
)
"""Cases that read programs of the DSL."""

# The order of declarations

QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|(?<=module)\s+\w+', re.DOTALL)
"""Strings, comments and names of modules, in which no name is declared or used."""


class InOrder(ReferenceAdapter):
    """Refuses a legal program that uses a name in front of its declaration."""

    def declarations(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the place of each declaration that has to come first, and the pattern of its uses."""
        yield from ()

    def _compile(self, source: str) -> Any:
        compiled = super()._compile(source)
        text = QUOTED.sub(lambda quoted: " " * len(quoted[0]), source)
        for place, use in self.declarations(text):
            if re.search(use, text[text.rfind("module", 0, place) : place]):
                raise Refusal("types", "verify", "a name is used before it is declared")
        return compiled


@varies("AMB-LANG-97", "wants a function to be declared before its calls", *PROGRAMS, "ir/layouts/*", "ir/lexical/*")
class FunctionsFirst(InOrder):
    """Compiles in one pass."""

    def declarations(self, text: str) -> Iterator[tuple[int, str]]:
        """Functions and their calls."""
        for declared in re.finditer(r"\bfunc\s+(\w+)", text):
            yield declared.start(), rf"(?<![\w.]){declared[1]}\s*\("


@varies("AMB-LANG-181", "wants a constant to be declared before its uses", *PROGRAMS)
class ConstantsFirst(InOrder):
    """Compiles in one pass."""

    def declarations(self, text: str) -> Iterator[tuple[int, str]]:
        """Constants of a module, and their names where they are not declared."""
        depth = 0
        for part in re.finditer(r"[{}]|\blet\s+(\w+)", text):
            depth += {"{": 1, "}": -1}.get(part[0], 0)
            if part[1] and depth == 1:
                yield part.start(), rf"(?<![\w.]){part[1]}\b(?!\s*[:=](?!=))"


# Quotients

QUOTIENT = arithmetic._integer_quotient


def floored(a: Values, b: Values) -> Values:
    """The quotient of integers, rounded down; the usual error where a divisor is zero."""
    quotient = QUOTIENT(a, b)
    remains = (quotient * b != a) & ((a < 0) != (b < 0))
    return np.where(remains, quotient - 1, quotient).astype(quotient.dtype)


FLOORED = altered(
    "AMB-LANG-55",
    "rounds quotients of integers down",
    PROGRAMS,
    ReferenceAdapter,
    (arithmetic, "_integer_quotient", floored),
    name="floor_division",
)

# Indices and slices

PROBLEM, PLACES, STRETCH_PROBLEM = movement.index_problem, movement._places, Stretch.problem
RUNNING = (
    *(f"ir/{topic}/*" for topic in ("indexing", "kernels", "movement", "readings-of-*", "rejections", "statements")),
    *(f"ir/{topic}/*" for topic in ("control-flow", "evaluation", "fuzz", "gradients*", "constants", "purity")),
)
"""Cases that select elements."""


def indexed(name: str, description: str, problem: Any, place: Any) -> Any:
    """A variant whose indices out of range are other places."""

    def places(operation: str, x: Array, selection: Selection) -> tuple[int | slice, ...]:
        parts = zip(selection, x.shape, strict=False)
        return PLACES(operation, x, tuple(place(i, extent) if isinstance(i, int) else i for i, extent in parts))

    substitutions = ((movement, "index_problem", problem), (movement, "_places", places))
    return altered("AMB-LANG-96", description, RUNNING, ReferenceAdapter, *substitutions, name=name)


def from_the_end(index: int, extent: int | None) -> int:
    """The place of an index of which -1 is the last element."""
    return index + extent if extent is not None and index < 0 else index


def end_problem(index: int, extent: int | None) -> str:
    """The error of an index that may be negative."""
    return "" if extent is None else PROBLEM(from_the_end(index, extent), extent)


def no_stretch_problem(stretch: Stretch, extent: int | None) -> str:
    """The error of a step of 0 alone."""
    return "the step of a slice is 0" if stretch.step == 0 else ""


def no_way_down(stretch: Stretch, extent: int | None) -> str:
    """The error of a step that is not positive, and those of other slices."""
    return "the step of a slice is not positive" if stretch.step < 1 else STRETCH_PROBLEM(stretch, extent)


def clipped(stretch: Stretch, extent: int | None) -> range | None:
    """The positions that Python takes."""
    return None if extent is None else range(extent)[slice(stretch.start, stretch.stop, stretch.step)]


INDICES = [
    indexed("indices_from_the_end", "counts negative indices from the end", end_problem, from_the_end),
    indexed("clamped_indices", "clamps indices", lambda *_: "", lambda i, extent: min(max(i, 0), extent - 1)),
    altered(
        "AMB-LANG-155",
        "clips slices as Python does",
        RUNNING,
        ReferenceAdapter,
        (Stretch, "problem", no_stretch_problem),
        (Stretch, "over", clipped),
        name="clipped_slices",
    ),
    altered(
        "AMB-LANG-155",
        "takes slices of positive steps alone",
        RUNNING,
        ReferenceAdapter,
        (Stretch, "problem", no_way_down),
        name="positive_steps",
    ),
]
