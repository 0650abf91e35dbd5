"""Declaring vectors: topics, cases, tensors, programs; and the modules that declare them."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import inf, nan, prod
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import numpy as np

from tessera_conformance import oracle
from tessera_conformance.dsl import program, returning, tensor_of, type_of, type_text
from tessera_conformance.oracle import FUNCTIONS
from tessera_conformance.oracle.elementwise import UNARY
from tessera_conformance.oracle.exact import FORMATS, FloatFormat, complex_dtype, float_format
from tessera_conformance.tensors import ELEMENT_FORMATS, Tensor
from tessera_conformance.vectors.files import BrokenSource, Call, Check

# How a source declares vectors: a topic, a function for each case, tensors written by hand.
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


@dataclass(frozen=True)
class Question:
    """A protocol call, and the independent check that knows the answer."""

    call: Call
    check: Check
    clauses: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceCase:
    """One declared case, not yet answered."""

    name: str
    clauses: tuple[str, ...]
    comment: str
    question: Question


@dataclass(frozen=True)
class _Declaration:
    name: str
    clauses: tuple[str, ...]
    variants: Mapping[str, Sequence[str]]
    make_question: Callable[..., Question]

    def cases(self) -> Iterator[SourceCase]:
        comment = " ".join((inspect.getdoc(self.make_question) or "").split())
        if not comment:
            raise BrokenSource("a case has no docstring", self.name, "say in one sentence what the case shows")
        for values in product(*self.variants.values()):
            chosen = dict(zip(self.variants, values, strict=True))
            name = self.name.format(**chosen)
            try:
                question = self.make_question(**chosen)
            except Exception as error:
                raise BrokenSource(f"{type(error).__name__}: {error}", name, "correct the source") from error
            clauses = tuple(dict.fromkeys((*self.clauses, *question.clauses)))
            yield SourceCase(name, clauses, comment, question)


class Topic:
    """The cases of one vector file, in the order of their declaration."""

    def __init__(self, documentation: str | None) -> None:
        self.documentation = " ".join((documentation or "").split())
        self._declarations: list[_Declaration] = []

    def vector(
        self, name: str, *clauses: str, **variants: Sequence[str]
    ) -> Callable[[Callable[..., Question]], Callable[..., Question]]:
        """Declare a case, or one for every combination of `variants`, which name it and are passed to it."""

        def declare(make_question: Callable[..., Question]) -> Callable[..., Question]:
            self._declarations.append(_Declaration(name, clauses, variants, make_question))
            return make_question

        return declare

    def cases(self) -> list[SourceCase]:
        """Every case, its question built. Raises `BrokenSource`: two cases have one name, or one has no docstring."""
        cases = [case for declaration in self._declarations for case in declaration.cases()]
        names = [case.name for case in cases]
        for name in names:
            if names.count(name) > 1:
                raise BrokenSource(f"two cases are called {name}", name, "give each its own name")
        return cases


def codes(dtype: str, shape: tuple[int, ...], words: Sequence[int]) -> Tensor:
    """A tensor from its storage codes."""
    return Tensor.from_words(dtype, shape, words)


def require_different(results: Sequence[Tensor], why: str) -> None:
    """Make sure that the data of a case distinguish ways of computing: every two results differ.

    Raises `ValueError`: two of them are equal, so the case would not show what it claims to.
    """
    if len({result.data for result in results}) < len(results):
        raise ValueError(f"the data do not distinguish: {why}")


# Test data of any size from a name: bits that depend only on a seed and an element's place.
#
# Word i of stream `seed` is output number `seed * 2**32 + i` of SplitMix64 started at zero (Steele, Lea and Flood,
# "Fast splittable pseudorandom number generators", 2014), so it is the same in every language, version and order.


Words: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""Unsigned integers of 64 bits, whose arithmetic is modulo 2**64."""

_MASK = (1 << 64) - 1


def counter_bits(seed: int, count: int) -> list[int]:
    """The first `count` words of 64 bits of stream `seed`."""
    words: list[int] = _splitmix64(seed << 32, count).tolist()
    return words


def counted(dtype: str, shape: tuple[int, ...], seed: int, exponents: tuple[int, int] = (-2, 2)) -> Tensor:
    """A tensor of counter bits.

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

USUAL = 310
"""The seed of elements that edge values come before."""


def pairs(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two vectors that pair every element of `a` with every element of `b`."""
    lefts, rights = a.words().tolist(), b.words().tolist()
    shape = (len(lefts) * len(rights),)
    return (
        codes(a.dtype, shape, [left for left in lefts for _ in rights]),
        codes(b.dtype, shape, [right for _ in lefts for right in rights]),
    )


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


def integer_edges(dtype: str, *, zero: bool = True) -> Tensor:
    """Small numbers of both signs and the ends of the range."""
    high = (1 << (8 * tensor(dtype, 0).format.word_bytes - 1)) - 1
    return tensor(dtype, [*([0] if zero else []), 1, -1, 2, -3, 7, high, high - 1, -high, -high - 1])


def every_code(dtype: str) -> Tensor:
    """All codes of an 8- or 16-bit dtype, in order."""
    count = 1 << (8 * tensor(dtype, 0).format.word_bytes)
    return codes(dtype, (count,), range(count))


def nearest(dtype: str, *numbers: float | Fraction) -> Tensor:
    """The numbers of `dtype` nearest to each of `numbers`, with the next one below and above."""
    format_ = float_format(dtype)
    neighbours: list[int] = []
    for number in numbers:
        code = format_.encode(Fraction(number))
        neighbours += [
            neighbour
            for neighbour in (code - 1, code, code + 1)
            if (neighbour & (format_.sign_bit - 1)) <= format_.largest_code
        ]
    return codes(dtype, (len(neighbours),), neighbours)


def joined(*tensors: Tensor) -> Tensor:
    """Vectors of one dtype, one after another."""
    words = [word for tensor in tensors for word in tensor.words().tolist()]
    return codes(tensors[0].dtype, (len(words) // tensors[0].format.words,), words)


def every_element(dtype: str, shape: tuple[int, ...], seed: int = USUAL) -> Tensor:
    """Elements of any dtype to be moved about: edge values first where the seed is the usual one, then counted ones."""
    if dtype in COMPLEX:
        return complex_of(dtype, *(every_element(COMPLEX[dtype], shape, seed_) for seed_ in (seed, seed + 1)))
    elements = counted(dtype, (prod(shape),), seed)
    if seed == USUAL and dtype != "bool":
        edges = float_edges(dtype) if dtype in FLOATS else integer_edges(dtype)
        elements = joined(edges, elements)
    return codes(dtype, shape, elements.words().tolist()[: prod(shape)])


def complex_of(dtype: str, real: Tensor, imaginary: Tensor) -> Tensor:
    """A complex tensor from its two parts, of one shape."""
    parts = zip(real.words().tolist(), imaginary.words().tolist(), strict=True)
    return codes(dtype, real.shape, [word for pair in parts for word in pair])


def magnitudes(values: Tensor) -> Tensor:
    """The same floats without their signs."""
    sign = float_format(values.dtype).sign_bit
    return codes(values.dtype, values.shape, [word & (sign - 1) for word in values.words().tolist()])


# The sources of the vectors: Python modules in the folders `vector_sources` of the chapters, one for each topic.


@dataclass(frozen=True)
class SourceTopic:
    """A topic and the cases its source declares."""

    name: str
    documentation: str
    cases: tuple[SourceCase, ...]


def load_sources(folders: Mapping[str, Path], topics: tuple[str, ...] = ()) -> Iterator[SourceTopic]:
    """Every topic of the folders in order of its path; only those that `topics` names, when it names any.

    A topic is called after its chapter, the key of its folder, and its place there: `ir/matmul`.

    Raises `BrokenSource`: a module fails to load or declares nothing usable.
    """
    for chapter, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            name = (PurePosixPath(chapter) / path.relative_to(folder).with_suffix("").as_posix()).as_posix()
            if concerns(name, topics):
                yield _load(name, path)


def concerns(topic: str, topics: tuple[str, ...]) -> bool:
    """True if a topic, or a case of it, or a chapter with it, is among the names; no names mean all."""
    return not topics or any(_within(topic, name) or _within(name, topic) for name in topics)


def matches(case: str, names: tuple[str, ...]) -> bool:
    """True if a case is named, itself or by a beginning of its path."""
    return not names or any(_within(case, name) for name in names)


def _within(name: str, beginning: str) -> bool:
    return name == beginning or name.startswith(f"{beginning}/")


def _load(name: str, path: Path) -> SourceTopic:
    where = str(path)
    try:
        topic = _topic(path)
        cases = tuple(topic.cases())
    except BrokenSource as problem:
        raise BrokenSource(problem.what, f"{where} ({problem.where})", problem.remedy) from None
    except Exception as error:
        raise BrokenSource(f"{type(error).__name__}: {error}", where, "correct the source") from error
    for case in cases:
        if case.question.check.function not in FUNCTIONS:
            names = ", ".join(FUNCTIONS)
            raise BrokenSource(f"{case.name}: no check {case.question.check.function}", where, f"one of {names}")
    return SourceTopic(name, topic.documentation, cases)


def _topic(path: Path) -> Topic:
    spec = importlib.util.spec_from_file_location(f"vector_source_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BrokenSource("not a Python module", path.name, "name it *.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    topic = getattr(module, "topic", None)
    if not isinstance(topic, Topic) or not topic.documentation:
        raise BrokenSource("no documented topic", path.name, "write a docstring and `topic = Topic(__doc__)`")
    return topic


# The programs that vectors run, in the language of the specification, each with the oracle function that checks it.


ACCUMULATION = {"fp16": "LANG-15-04", "bf16": "LANG-15-05", "fp8_e4m3": "LANG-15-06", "fp8_e5m2": "LANG-15-14"}
"""The clause that fixes the accumulator of each narrow type."""

OPERATORS = {
    "add": ("+", "LANG-02.3-61"),
    "subtract": ("-", "LANG-02.3-62"),
    "multiply": ("*", "LANG-02.3-63"),
    "divide": ("/", "LANG-02.3-64"),
    "equal": ("==", "LANG-02.3-66"),
    "not_equal": ("!=", "LANG-02.3-67"),
    "less": ("<", "LANG-02.3-68"),
    "greater": (">", "LANG-02.3-69"),
    "less_or_equal": ("<=", "LANG-02.3-70"),
    "greater_or_equal": (">=", "LANG-02.3-71"),
}
"""The symbol and the clause of each binary operator, by the name of its oracle function."""

ELEMENTARY = list(UNARY)

ACCUMULATING = ("LANG-10-01", "LANG-02-04")
"""Clauses of an operator that accumulates: the precision that it states, and its defined result."""

EXTREMES = ("max", "min", "argmax")
"""Reductions that round nothing."""

QUOTED = ("approximate", "norm", "overflow")
"""The attributes that are texts; others that look like one are names."""

ARITHMETIC = ["add", "subtract", "multiply", "divide"]
COMPARISONS = ["equal", "not_equal", "less", "greater", "less_or_equal", "greater_or_equal"]


def matmul(a: Tensor, b: Tensor, out: str | None = None) -> Question:
    """`op.matmul(A, B)`, with another result type on request."""
    result = type_text(out or a.dtype, (*a.shape[:-1], b.shape[-1]))
    return applied("matmul", {"A": a, "B": b}, result, (*_accumulation(a), "LANG-15-15", "LANG-05.2-02"), out=out)


def matmul_operator(a: Tensor, b: Tensor) -> Question:
    """`A @ B`."""
    result = type_text(a.dtype, (*a.shape[:-1], b.shape[-1]))
    return question({"A": a, "B": b}, "A @ B", result, "matmul", {}, (*_accumulation(a), "LANG-15-15", "LANG-02.3-65"))


def softmax(x: Tensor, axis: int | None = None) -> Question:
    """`op.softmax(X)`, along the last axis unless another is asked for."""
    return applied("softmax", {"X": x}, type_of(x), ("LANG-15-07", "LANG-05.2-03"), axis=axis)


def binary(operator: str, a: Tensor, b: Tensor) -> Question:
    """A binary operator by its name in `OPERATORS`, on two tensors of one shape, or a tensor and a scalar."""
    symbol, clause = OPERATORS[operator]
    shape = a.shape or b.shape
    result = type_text("bool" if operator in COMPARISONS else a.dtype, shape)
    return question({"A": a, "B": b}, f"A {symbol} B", result, operator, {}, (clause,))


def negate(a: Tensor) -> Question:
    """`-A`."""
    return question({"A": a}, "-A", type_of(a), "negate", {}, ("LANG-14.2-02",))


def scale(a: Tensor, factor: str) -> Question:
    """`A * factor` with a literal."""
    return question({"A": a}, f"A * {factor}", type_of(a), "scale", {"factor": factor}, ("LANG-02.3-63",))


def multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Question:
    """`A * B + C`."""
    clauses = ("LANG-02.3-61", "LANG-02.3-63")
    return question({"A": a, "B": b, "C": c}, "A * B + C", type_of(a), "multiply_add", {}, clauses)


def add_to_product(a: Tensor, b: Tensor, c: Tensor) -> Question:
    """`C + (A @ B)`."""
    clauses = ("LANG-02.3-61", "LANG-02.3-65")
    return question({"A": a, "B": b, "C": c}, "C + (A @ B)", type_of(c), "add_to_product", {}, clauses)


def attention(q: Tensor, k: Tensor, v: Tensor, factor: str) -> Question:
    """softmax(Q K' * factor) V, a statement for each step."""
    scores, result = type_text(q.dtype, (q.shape[0], k.shape[0])), type_text(q.dtype, (q.shape[0], v.shape[1]))
    keys = type_text(k.dtype, k.shape[::-1])
    body = [
        f"let T: {keys} = op.transpose(K);",
        f"let S: {scores} = op.matmul(Q, T);",
        f"let P: {scores} = op.softmax(S * {factor}) @{{axis=1}};",
        f"let O: {result} = op.matmul(P, V);",
        "return O;",
    ]
    inputs = {"Q": q, "K": k, "V": v}
    check = Check("oracle.attention", tuple(inputs), {"factor": factor})
    clauses = (*_accumulation(q), "LANG-15-15", "LANG-15-07", "LANG-05.2-02", "LANG-05.2-03")
    return Question(_call(inputs, result, body), check, clauses, ("tensor-ops",))


def function(name: str, x: Tensor) -> Question:
    """`op.exp(X)` and its kin, named as in `ELEMENTARY`."""
    return applied(name, {"X": x}, type_of(x), ("LANG-02-04",), ("elementary-functions",))


def power(a: Tensor, b: Tensor) -> Question:
    """`op.pow(A, B)`."""
    return applied("pow", {"A": a, "B": b}, type_of(a), ("LANG-02-04",), ("elementary-functions",))


def activation(name: str, x: Tensor, approximate: str | None = None) -> Question:
    """`op.sigmoid(X)`, `op.silu(X)` or `op.gelu(X)`, whose tanh form is asked for by `approximate`."""
    return applied(name, {"X": x}, type_of(x), ("LANG-02-04",), ("activations",), approximate=approximate)


def relu(x: Tensor) -> Question:
    """`op.relu(X)`."""
    return applied("relu", {"X": x}, type_of(x), ("LANG-02-04",), ("tensor-ops",))


def reduction(name: str, x: Tensor, axis: int, keepdims: bool = False) -> Question:
    """`op.sum(X) @{axis=1}` and its kin."""
    shape = list(x.shape)
    shape[axis : axis + 1 or None] = [1] if keepdims else []
    result = type_text("int32" if name == "argmax" else x.dtype, tuple(shape))
    clauses = ("LANG-02-04",) if name in EXTREMES else ACCUMULATING
    return applied(name, {"X": x}, result, clauses, ("reductions",), axis=axis, keepdims=keepdims or None)


def cast(x: Tensor, dtype: str, overflow: str | None = None) -> Question:
    """`op.cast(X) @{dtype=bf16}`."""
    result = type_text(dtype, x.shape)
    return applied("cast", {"X": x}, result, ("LANG-02-04", "LANG-03.1-05"), ("casts",), dtype=dtype, overflow=overflow)


def fourier(name: str, x: Tensor, norm: str | None = None) -> Question:
    """`op.fft(X)` or `op.ifft(X)`, of a float or a complex tensor."""
    result = type_text(complex_dtype(x.dtype), x.shape)
    return applied(name, {"X": x}, result, ("LANG-05.2-04",), ("inverse-fft",) * (name == "ifft"), norm=norm)


def applied(
    name: str,
    inputs: Mapping[str, Tensor],
    result: str,
    clauses: tuple[str, ...],
    features: tuple[str, ...] = (),
    /,
    **attributes: Any,
) -> Question:
    """`op.NAME(A, B) @{axis=1}`, the oracle's function of that name; an attribute that is None is left out."""
    stated = {key: value for key, value in attributes.items() if value is not None}
    return question(inputs, call_text(name, inputs, stated), result, name, stated, clauses, features)


def call_text(name: str, inputs: Iterable[str], attributes: Mapping[str, Any]) -> str:
    """`op.pad(A) @{low=[1, 0], value=0.5}`: attributes are in a block, which the printed grammar has."""
    quoted = {key: f'"{value}"' if key in QUOTED else _written(value) for key, value in attributes.items()}
    block = f" @{{{', '.join(f'{key}={text}' for key, text in quoted.items())}}}" if quoted else ""
    return f"op.{name}({', '.join(inputs)}){block}"


def _written(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text) if isinstance(value, float) else text


def _accumulation(operand: Tensor) -> tuple[str, ...]:
    """The clauses of the accumulator, where it is wider than the operands."""
    return (ACCUMULATION[operand.dtype], "LANG-10-02") if operand.dtype in ACCUMULATION else ()


def question(
    inputs: Mapping[str, Tensor],
    expression: str,
    result: str,
    function: str,
    arguments: Mapping[str, Any],
    clauses: tuple[str, ...],
    features: tuple[str, ...] = (),
) -> Question:
    """Return the question of one expression, as the oracle's function of the inputs has it."""
    body = [f"let R: {result} = {expression};", "return R;"]
    check = Check(f"oracle.{function}", tuple(inputs), arguments)
    return Question(_call(inputs, result, body), check, clauses, (*features, *_features(inputs, arguments)))


def _features(inputs: Mapping[str, Tensor], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return features beyond the core: `out=` (AMB-LANG-102) and dimensions of zero (AMB-LANG-113)."""
    takes_nothing = any(0 in value.shape for value in inputs.values())
    return (*(["matmul-out"] if "out" in arguments else []), *(["zero-sizes"] if takes_nothing else []))


def _call(inputs: Mapping[str, Tensor], result: str, body: list[str]) -> Call:
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = program(*body, parameters=parameters, result=result)
    return Call("language.execute", {"source": source, "function": "f", "inputs": dict(inputs)})


# Programs of one compound operation: norms, attention, optimizer steps, draws; each with its oracle function.


Setting = int | float | bool
"""The value that an attribute has in a question."""


def layer_norm(x: Tensor, gamma: Tensor, beta: Tensor, **settings: Setting) -> Question:
    """`op.layer_norm(X, G, B)`."""
    inputs = {"X": x, "G": gamma, "B": beta}
    return applied("layer_norm", inputs, type_of(x), ACCUMULATING, ("normalization",), **settings)


def rms_norm(x: Tensor, gamma: Tensor, **settings: Setting) -> Question:
    """`op.rms_norm(X, G)`."""
    return applied("rms_norm", {"X": x, "G": gamma}, type_of(x), ACCUMULATING, ("normalization",), **settings)


def batch_norm(x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, **settings: Setting) -> Question:
    """`op.batch_norm(X, G, B, M, V)`, all its results."""
    inputs = {"X": x, "G": gamma, "B": beta, "M": mean, "V": variance}
    return several(inputs, "batch_norm", settings, ACCUMULATING)


def sgd(parameter: Tensor, gradient: Tensor, velocity: Tensor, **settings: Setting) -> Question:
    """`op.sgd(P, G, U) @{rate=...}`, both its results."""
    return several({"P": parameter, "G": gradient, "U": velocity}, "sgd", settings, ("LANG-02-04",))


def adamw(parameter: Tensor, gradient: Tensor, m: Tensor, v: Tensor, step: Tensor, **settings: Setting) -> Question:
    """`op.adamw(P, G, M, V, t) @{rate=...}`, all its results."""
    inputs = {"P": parameter, "G": gradient, "M": m, "V": v, "t": step}
    return several(inputs, "adamw", settings, ("LANG-02-04",))


def drawn(distribution: str, shape: tuple[int, ...], dtype: str, **settings: Setting) -> Question:
    """`op.uniform() @{shape=[...], dtype=...}` or `op.normal() @{...}`."""
    attributes = {"shape": list(shape), "dtype": dtype, **settings}
    call = call_text(distribution, (), attributes)
    return question({}, call, type_text(dtype, shape), distribution, {"seed": 0} | attributes, ("LANG-02-04",), RANDOM)


def dropout(x: Tensor, **settings: Setting) -> Question:
    """`op.dropout(X) @{rate=...}`."""
    return applied("dropout", {"X": x}, type_of(x), ("LANG-02-04",), RANDOM, **settings)


def flash_attention(q: Tensor, k: Tensor, v: Tensor, **settings: Setting) -> Question:
    """`op.flash_attention(Q, K, V)`."""
    inputs, result = {"Q": q, "K": k, "V": v}, type_text(q.dtype, (*q.shape[:-1], v.shape[-1]))
    clauses = (*ACCUMULATING, "LANG-10-03")
    return applied("flash_attention", inputs, result, clauses, ("fused-attention",), **settings)


RANDOM = ("random-ops", "philox")


def several(
    inputs: Mapping[str, Tensor], name: str, settings: Mapping[str, Setting], clauses: tuple[str, ...]
) -> Question:
    """A call with several results, returned by a func without annotation."""
    parameters = ", ".join(f"{name}: {type_of(value)}" for name, value in inputs.items())
    source = returning(call_text(name, inputs, settings), parameters)
    call = Call("language.execute", {"source": source, "function": "f", "inputs": dict(inputs)})
    return Question(call, Check(f"oracle.{name}", tuple(inputs), dict(settings)), clauses, ("stateful-ops",))


# The programs of operations that move, choose or join elements (AMB-LANG-106, AMB-LANG-165), each one call.
#
# The type of the result is that of the oracle's answer: what an operation gives is said once, there.


_ANY = ("LANG-02-04",)
_PLACES = ("LANG-02-04", "LANG-03.2-01")
_BROADCASTING = ("LANG-02-04", "LANG-03.2-02")

CLAUSES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("select", "maximum", "minimum", "clamp", "broadcast"), _BROADCASTING),
    **dict.fromkeys(("transpose", "reshape", "slice", "gather", "concat", "pad"), _PLACES),
    "scatter_add": ACCUMULATING,
    "layout_cast": ("LANG-02-04", "LANG-03.3-01"),
    "iota": ("LANG-02-04", "LANG-05.3-01", "LANG-05.3-02"),
    "const_tensor": ("LANG-05.2-01", "LANG-05.3-01", "LANG-05.3-02"),
}
"""Clauses of an operation's vectors, where they are more than `_ANY`."""

FEATURES = {"const_tensor": (), "layout_cast": ("layout-casts",)}
"""Features: the documents name const_tensor (AMB-LANG-101), AMB-LANG-157 the cast; others are tensor-ops."""

STRETCHING = ("select", "maximum", "minimum", "clamp")
"""Those whose operands broadcast as those of operators do: other than scalars by feature broadcasting-ops."""


def moved(name: str, *operands: Tensor, **attributes: Any) -> Question:
    """`op.pad(A) @{low=[1, 0], high=[0, 2], value=0.5}`; a text among the attributes is written as it is."""
    function = oracle.FUNCTIONS[f"oracle.{name}"]
    answer = function(*operands, **attributes)
    inputs = dict(zip("ABCDEFGH", operands, strict=False))
    result = type_text(answer.dtype, answer.shape)
    if name == "layout_cast":
        result = f"{result.removesuffix('>')}; layout={attributes['to']}>"
    clauses = CLAUSES.get(name, _ANY)
    return applied(name, inputs, result, clauses, _movement_features(name, operands), **attributes)


def _movement_features(name: str, operands: tuple[Tensor, ...]) -> tuple[str, ...]:
    shapes = {operand.shape for operand in operands} - {()}
    stretches = name in STRETCHING and len(shapes) > 1
    return (*FEATURES.get(name, ("tensor-ops",)), *(["broadcasting-ops"] * stretches))


# Vectors that ask for one operation by name, without a program (feature operation-access, AMB-RT-73).


ACCESS = "operation-access"

OVER_RANKS = {
    "bf16": ("bf16-collectives",),
    "fp8_e4m3": ("fp8-collectives",),
    "fp8_e5m2": ("fp8-collectives",),
    "tf32": ("fp8-collectives",),
}
"""The features of the dtypes that a library of collectives may lack."""


def operation(
    name: str, inputs: Sequence[Tensor], attributes: Mapping[str, Any], *clauses: str, features: Sequence[str] = ()
) -> Question:
    """`numerics.evaluate`; the oracle function of that name takes the same attributes."""
    call = Call("numerics.evaluate", {"operation": name, "inputs": list(inputs), "attributes": dict(attributes)})
    check = Check(f"oracle.{name}", tuple(map(str, range(len(inputs)))), dict(attributes))
    return Question(call, check, clauses, (ACCESS, *features))


def all_reduce(inputs: Sequence[Tensor], op: str, *clauses: str) -> Question:
    """`collectives.all_reduce` over one tensor of each rank."""
    call = Call("collectives.all_reduce", {"inputs": list(inputs), "op": op})
    check = Check("oracle.all_reduce", tuple(map(str, range(len(inputs)))), {"op": op})
    return Question(call, check, clauses, (ACCESS, *OVER_RANKS.get(inputs[0].dtype, ())))


def collective(
    name: str, algorithm: str, inputs: Sequence[Tensor], *clauses: str, op: str | None = None, feature: str = ""
) -> Question:
    """`collectives.run`: a collective by an algorithm of its own; the oracle function has its name."""
    options = {"algorithm": algorithm} if op is None else {"op": op, "algorithm": algorithm}
    call = Call("collectives.run", {"operation": name, "inputs": list(inputs), **options})
    check = Check(f"oracle.{name}", tuple(map(str, range(len(inputs)))), options)
    return Question(call, check, clauses, (ACCESS, "algorithm-control", *([feature] if feature else [])))


def compress(x: Tensor, wire: str, dtype: str, *clauses: str) -> Question:
    """`collectives.compress` to a wire of some name, which is a cast to `dtype`."""
    call = Call("collectives.compress", {"input": x, "dtype": wire})
    return Question(call, Check("oracle.cast", ("0",), {"dtype": dtype}), clauses, ("compression",))


def sparsify(x: Tensor, k: int, *clauses: str) -> Question:
    """`collectives.sparsify`: the values and indices of a top-k message."""
    call = Call("collectives.sparsify", {"input": x, "k": k})
    return Question(call, Check("oracle.top_k", ("0",), {"k": k}), clauses, ("topk-sparsity",))


# Vectors of the parameter buffer: where the arguments of a kernel lie, and their bytes.


LAYOUT_CLAUSES = ("RT-10.1-01", "RT-10.1-03", "RT-10.1-04")
BUFFER_CLAUSES = ("RT-10.1-01", "RT-10.1-02")


def layout(signature: str) -> Question:
    """`abi.parameter_layout`; the outputs are the offsets, the sizes, and the ends of arguments and buffer."""
    arguments = {"signature": signature}
    return Question(
        Call("abi.parameter_layout", arguments), Check("oracle.parameter_layout", (), arguments), LAYOUT_CLAUSES
    )


def buffer(signature: str, values: Sequence[Any]) -> Question:
    """`abi.pack`; the output is the bytes of the buffer."""
    arguments = {"signature": signature, "values": list(values)}
    return Question(Call("abi.pack", arguments), Check("oracle.parameter_buffer", (), arguments), BUFFER_CLAUSES)
