"""Declaring vectors: topics, cases, tensors, programs; and the modules that declare them."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import inf, nan, prod
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance.dsl import tensor_of
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.oracle.exact import FORMATS, FloatFormat, float_format
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.files import BrokenSource, Call, Check

# The form of a source of vectors: a topic, a function for each case, tensors written by hand.
#
# topic = Topic(__doc__)
#
# @topic.vector("{dtype}/k-tail", "LANG-15-15", dtype=["bf16", "fp32"])
# def k_tail(dtype: str) -> Question:
# """Thirteen products an element, one more than a multiple of four."""
# return programs.matmul(counted(dtype, (2, 13), seed=1), counted(dtype, (13, 2), seed=2))
#
# The docstring is published as the case's comment.


tensor = tensor_of
"""A tensor written by hand, from nested lists of numbers."""
codes = Tensor.from_words
"""A tensor from its storage codes."""


@dataclass(frozen=True)
class Question:
    """A protocol call, and the independent check that computes the answer; a declared case has a name and a comment."""

    call: Call
    check: Check
    clauses: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    name: str = ""
    comment: str = ""


Source: TypeAlias = Callable[..., Question]


class Topic:
    """The cases of one vector file, in the order of their declaration."""

    def __init__(self, documentation: str | None) -> None:
        self.documentation = " ".join((documentation or "").split())
        self._declarations: list[tuple[str, tuple[str, ...], Mapping[str, Sequence[str]], Source]] = []

    def vector(self, name: str, *clauses: str, **variants: Sequence[str]) -> Callable[[Source], Source]:
        """Declare a case, or one for each combination of `variants`, which name it and are passed to it."""

        def declare(make_question: Source) -> Source:
            self._declarations.append((name, clauses, variants, make_question))
            return make_question

        return declare

    def cases(self) -> list[Question]:
        """Return every case with its question. Raises `BrokenSource`: equal names, or a missing docstring."""
        cases: dict[str, Question] = {}
        for form, clauses, variants, make_question in self._declarations:
            comment = " ".join((inspect.getdoc(make_question) or "").split())
            if not comment:
                raise BrokenSource("a case has no docstring", form, "say in one sentence what the case shows")
            for values in product(*variants.values()):
                chosen = dict(zip(variants, values, strict=True))
                name = form.format(**chosen)
                try:
                    question = make_question(**chosen)
                except Exception as error:
                    raise BrokenSource(f"{type(error).__name__}: {error}", name, "correct the source") from error
                if name in cases:
                    raise BrokenSource(f"two cases are called {name}", name, "give each its own name")
                clauses_of_both = tuple(dict.fromkeys((*clauses, *question.clauses)))
                cases[name] = replace(question, name=name, comment=comment, clauses=clauses_of_both)
        return list(cases.values())


# Test data of any size: bits that depend only on a seed and an element's place.
#
# Word i of stream `seed` is output number `seed * 2**32 + i` of SplitMix64 started at zero (Steele, Lea and Flood,
# "Fast splittable pseudorandom number generators", 2014), so it is the same in every language, version and order.


Words: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""Unsigned integers of 64 bits, whose arithmetic is modulo 2**64."""

_MASK = (1 << 64) - 1


def counter_bits(seed: int, count: int) -> list[int]:
    """Return the first `count` words of 64 bits of stream `seed`."""
    words: list[int] = _splitmix64(seed << 32, count).tolist()
    return words


def counted(dtype: str, shape: tuple[int, ...], seed: int, exponents: tuple[int, int] = (-2, 2)) -> Tensor:
    """Return a tensor of counter bits.

    Integers take the low bits of their word. A float takes its sign from bit 63, its fraction from the low bits, and an
    exponent from the given range, ends included, from bits 32 to 62; fp64, whose fraction is wider, from bits 53 to 62.
    """
    words = _splitmix64(seed << 32, prod(shape))
    format_ = FORMATS[dtype]
    if isinstance(format_, FloatFormat):
        return Tensor.from_words(dtype, shape, _float_codes(words, format_, exponents).tolist())
    bits = 1 if dtype == "bool" else 8 * ELEMENT_FORMATS[dtype].word_bytes
    return Tensor.from_words(dtype, shape, (words & ((1 << bits) - 1)).tolist())


def _float_codes(words: Words, format_: FloatFormat, exponents: tuple[int, int]) -> Words:
    low, high = exponents
    entropy = (words & (_MASK >> 1)) >> max(format_.fraction_bits + 1, 32)
    fields = format_.bias + low + entropy % (high - low + 1)
    fractions = words & ((1 << format_.fraction_bits) - 1)
    return (words >> 63) * format_.sign_bit | fields << format_.fraction_bits | fractions


def _splitmix64(first: int, count: int) -> Words:
    z: Words = (np.arange(1, count + 1, dtype=np.uint64) + (first & _MASK)) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    z ^= z >> 31
    return z


# Edge values of every dtype, which vectors put first.


FLOATS = ["fp8_e4m3", "fp8_e5m2", "fp16", "bf16", "tf32", "fp32", "fp64"]
INTEGERS = ["int8", "int16", "int32", "int64"]
COMPLEX = {"complex64": "fp32", "complex128": "fp64"}
"""The complex dtypes with the dtype of their parts."""


def float_edges(dtype: str) -> Tensor:
    """Zeros, subnormals, the neighbours of one and of the limits, infinities where the type has them, and NaN."""
    format_ = float_format(dtype)
    epsilon, smallest, normal, largest = format_.epsilon, format_.smallest, format_.smallest_normal, format_.largest
    positive: list[int | Fraction] = [
        smallest,
        3 * smallest,
        normal - smallest,
        normal,
        Fraction(1, 2),
        1,
        1 + epsilon,
        3,
        largest,
    ]
    infinities = [inf, -inf] if format_.has_infinity else []
    return tensor(dtype, [0, -0.0, *positive, *(-number for number in positive[::2]), *infinities, nan])


def complex_of(dtype: str, real: Tensor, imaginary: Tensor) -> Tensor:
    """Return a complex tensor from its two parts, of one shape."""
    parts = zip(real.words().tolist(), imaginary.words().tolist(), strict=True)
    return codes(dtype, real.shape, [word for pair in parts for word in pair])


# The sources of the vectors: Python modules in the folders `vector_sources` of the chapters, one for each topic.


@dataclass(frozen=True)
class SourceTopic:
    """A topic and the cases its source declares."""

    name: str
    documentation: str
    cases: tuple[Question, ...]


def load_sources(folders: Mapping[str, Path], topics: tuple[str, ...] = ()) -> Iterator[SourceTopic]:
    """Yield every topic of the folders in order of its path; only those in `topics`, if it names any.

    A topic is named after its chapter, the key of its folder, and its path there: `ir/matmul`.

    Raises `BrokenSource`: a module fails to load or declares nothing usable.
    """
    for chapter, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            name = (PurePosixPath(chapter) / path.relative_to(folder).with_suffix("").as_posix()).as_posix()
            if concerns(name, topics):
                yield _load(name, path)


def concerns(topic: str, topics: tuple[str, ...]) -> bool:
    """True if a topic, one of its cases, or a chapter with it is among the names; no names mean all."""
    return not topics or any(_within(topic, name) or _within(name, topic) for name in topics)


def matches(case: str, names: tuple[str, ...]) -> bool:
    """True if a name is the case or a beginning of its path; no names mean all."""
    return not names or any(_within(case, name) for name in names)


def _within(name: str, beginning: str) -> bool:
    return name == beginning or name.startswith(f"{beginning}/")


def _load(name: str, path: Path) -> SourceTopic:
    where = str(path)
    try:
        topic = runpy.run_path(where).get("topic")
        if not isinstance(topic, Topic) or not topic.documentation:
            raise BrokenSource("no documented topic", path.name, "write a docstring and `topic = Topic(__doc__)`")
        cases = tuple(topic.cases())
    except BrokenSource as problem:
        raise BrokenSource(problem.what, f"{where} ({problem.where})", problem.remedy) from None
    except Exception as error:
        raise BrokenSource(f"{type(error).__name__}: {error}", where, "correct the source") from error
    for case in cases:
        if case.check.function not in FUNCTIONS:
            names = ", ".join(FUNCTIONS)
            raise BrokenSource(f"{case.name}: no check {case.check.function}", where, f"one of {names}")
    return SourceTopic(name, topic.documentation, cases)
