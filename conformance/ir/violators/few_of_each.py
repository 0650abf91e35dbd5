"""Implementations that are right for few, short or flat things, and wrong for many, long or nested ones.

Names, digits, line ends, rebound names, turns, blocks, values, parts, dimensions and elements (language spec, 2 to 4).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tessera_conformance.strength import Violation, replaced
from tessera_reference.adapter import make
from tessera_reference.graph.control import For, If, While
from tessera_reference.language import statements, values
from tessera_reference.language.expressions import Expressions
from tessera_reference.language.modules import FunctionLowering
from tessera_reference.language.parser import Lexer, Token
from tessera_reference.language.scope import Scope
from tessera_reference.language.statements import Statements
from tessera_reference.numerics import arithmetic, reductions
from tessera_reference.numerics import movement as moving
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DType

from .changes import changed
from .control_flow import counted, runs
from .language_syntax import rewrites
from .movement import moves

# Texts

TOKENS, FLOATING = Lexer.__iter__, values.floating
FEW_DIGITS = 20


def of_length(length: int) -> Callable[[Lexer], Iterator[Token]]:
    """Names are cut to so many characters."""

    def tokens(self: Lexer) -> Iterator[Token]:
        for token in TOKENS(self):
            if token.type == "IDENT":
                token.value = token.value[:length]
            yield token

    return tokens


def of_few_digits(text: str, negative: bool, dtype: DType) -> float:
    """Read at most so many digits in front of the point and behind it."""
    whole, point, rest = text.partition(".")
    digits = re.match("[0-9]*", rest)
    assert digits is not None
    return FLOATING(whole + point + digits[0][:FEW_DIGITS] + rest[digits.end() :], negative, dtype)


TEXTS = [
    *(
        replaced("LANG-02.1-01", f"tells names apart by {length} characters", make,
                 (Lexer, "__iter__", of_length(length)), name=f"names_of_{length}")
        for length in (31, 63, 255)
    ),
    replaced("LANG-02.1-03", "reads 20 digits behind the point of a literal", make,
             (values, "floating", of_few_digits), name="digits"),
    rewrites("carriage_returns", "LANG-02.1-06", "takes a carriage return before a newline for the newline",
             r"\r\n", "\r"),
]  # fmt: skip


# Statements

CARRIED, OUTSIDE, PROFILE = statements._carried, Scope.outside, Statements._profile
RETURNED, NAMED = FunctionLowering._returned_values, Expressions._name
FEW_NAMES, FEW_TURNS = 4, 1000


def exchanged(results: Sequence[Any], type_of: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Three results or more with the last two exchanged, where they are of one type."""
    if len(results) < 3 or type_of(results[-1]) != type_of(results[-2]):
        return tuple(results)
    return *results[:-2], results[-1], results[-2]


def if_exchanged(self: If, condition: Array, env: Any) -> Any:
    results = yield from env.region(0 if condition.values else 1, ())
    return exchanged(results, lambda result: (result.dtype, result.shape))


def while_few(self: While, *carried: Array, env: Any) -> Any:
    for _ in range(FEW_TURNS):
        (holds,) = yield from env.region(0, carried)
        if not holds.values:
            break
        carried = yield from env.region(1, carried)
    return carried


def for_few(self: For, start: Array, stop: Array, step: Array, *carried: Array, env: Any) -> Any:
    for index in islice(range(int(start.values), int(stop.values), int(step.values)), FEW_TURNS):
        carried = yield from env.region(0, (counted(start, index), *carried))
    return carried


def few_names(*arguments: Any, **hidden: Any) -> list[str]:
    return CARRIED(*arguments, **hidden)[:FEW_NAMES]


def depth_of(scope: Scope) -> int:
    """The blocks around a scope."""
    return 0 if scope.parent is None else 1 + depth_of(scope.parent)


def not_from_deep(self: Scope, name: str) -> Any:
    return self.parent.find(name) if self.parent is not None and depth_of(self) > 2 else OUTSIDE(self, name)


def inner_constant(self: Expressions, name: Any, dtype: Any) -> Any:
    if depth_of(self.scope) and name.text not in self.scope.names and name.text in self.around.constants:
        constant = self.around.value_of(name.text)
        return self.given(constant, name.span) if constant is not None else None
    return NAMED(self, name, dtype)


def outer_profile(self: Statements, call: Any, first: bool) -> None:
    if depth_of(self.scope) < 2:
        PROFILE(self, call, first)


def returned_exchanged(self: FunctionLowering, *arguments: Any) -> Any:
    present = RETURNED(self, *arguments)
    return None if present is None else exchanged(present, lambda value: value.type)


STATEMENTS = [
    runs("if_exchanged", "LANG-02.3-23", "exchanges two of several names that an if rebinds", If, if_exchanged),
    runs("while_few", "LANG-02-11", "runs a while a thousand turns at most", While, while_few),
    runs("for_few", "LANG-02-10", "runs a for a thousand turns at most", For, for_few),
    replaced("LANG-02.3-24", "carries four names through a loop", make, (statements, "_carried", few_names),
             name="few_names"),
    replaced("LANG-02.3-19", "forgets what is assigned three blocks deep", make, (Scope, "outside", not_from_deep),
             name="not_from_deep"),
    replaced("LANG-02.3-05", "takes a constant for the name that hides it, in a block", make,
             (Expressions, "_name", inner_constant), name="inner_constant"),
    replaced("LANG-02-07", "passes over a profile in a block of a block", make,
             (Statements, "_profile", outer_profile), name="outer_profile"),
    replaced("LANG-02.3-28", "exchanges the last two of several returned values", make,
             (FunctionLowering, "_returned_values", returned_exchanged), name="returned_exchanged"),
]  # fmt: skip


# Tensors

GATHERED, PADDED, CONCATENATED = moving.gathered, moving.padded, moving.concatenated
ROUNDED_ONCE, RESULT = arithmetic._rounded_once, reductions._result


def by_low_bits(x: Array, indices: Array, axis: int) -> Array:
    if indices.dtype.bits == 64:
        indices = Array(indices.dtype, (indices.values & 0xFFFFFFFF).astype(np.int64))
    return GATHERED(x, indices, axis)


def third_padded_in_front(x: Array, low: Sequence[int], high: Sequence[int], value: float) -> Array:
    both = [before + behind for before, behind in zip(low, high, strict=True)]
    return PADDED(x, (*low[:2], *both[2:]), (*high[:2], *[0] * len(both[2:])), value)


def fifth_before_fourth(parts: Sequence[Array], axis: int) -> Array:
    alike = len(parts) > 4 and parts[-1].shape == parts[-2].shape
    return CONCATENATED([*parts[:-2], parts[-1], parts[-2]] if alike else parts, axis)


def one_for_nothing(operator: Any, a: Array, b: Array) -> Array:
    if 0 in (a.values.size, b.values.size) and () in (a.shape, b.shape):
        return Array(a.dtype, np.zeros(1, a.dtype.carrier))
    return ROUNDED_ONCE(operator, a, b)


def kept_behind(reduced: Array, axis: int, keepdims: bool) -> Array:
    return RESULT(reduced, reduced.rank if reduced.rank > 2 else axis, keepdims)


TENSORS: list[Violation] = [
    moves("by_low_bits", "gather", "gathered", "gathers by the low 32 bits of an index", by_low_bits, "LANG-12-01"),
    moves("third_padded_in_front", "pad", "padded", "pads the third dimension in front alone", third_padded_in_front),
    moves("fifth_before_fourth", "concat", "concatenated", "joins the last of many parts too early",
          fifth_before_fourth),
    changed("LANG-03.2-02", "one_for_nothing", "makes one element of a scalar and none",
            (arithmetic, "_rounded_once", one_for_nothing)),
    changed("LANG-02-04", "kept_behind", "keeps the axis of a reduction of rank 4 as the last one",
            (reductions, "_result", kept_behind)),
]  # fmt: skip
