"""Calls to the implementation under probe: one operation on one shape, one watched element, random terms."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from tessera_conformance.dsl import returning, type_of, type_text
from tessera_conformance.oracle.exact import ACCUMULATORS, FORMATS, Value, float_format
from tessera_conformance.protocol import Fault, Hello, Observation, Returned, Unsupported, describe
from tessera_conformance.session import Session
from tessera_conformance.tensors import Tensor
from tessera_conformance.terminal import error_text, quoted_tail

# Calls to the implementation under probe: one operation on one shape, of which one result element is watched.
#
# Every call has exactly the requested shape, since orders change with shapes, and watches one element, [0, 0] unless
# another is named. Masking every row of a product at once would take far fewer calls, but rows need not share an
# order, and often do not at the edges of a kernel's tiles; `other_elements` checks all elements once the order of one
# is known.
#
# Calls go to `numerics.evaluate`, or, where that is unsupported, to `language.execute` with a generated program.


Operation: TypeAlias = Literal["matmul", "sum", "all_reduce"]
Words: TypeAlias = np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]
Terms: TypeAlias = tuple[Words, Words | None]
"""The terms of one sum; those of a product have a second factor each."""

OPERATIONS: tuple[Operation, ...] = ("matmul", "sum", "all_reduce")
DTYPES = ("fp32", "fp64", "fp16", "bf16", "tf32", "fp8_e4m3", "fp8_e5m2")
FORMS: Mapping[Operation, tuple[str, Sequence[int]]] = {
    "matmul": ("MxKxN, as 64x64x64", (3,)),
    "sum": ("one extent or more, as 256", range(1, 9)),
    "all_reduce": ("RANKSxELEMENTS", (2,)),
}
"""The form of each operation's shape, and the possible numbers of extents."""
MOST_TERMS = 1 << 14


class CannotProbe(Exception):
    """The probe cannot be made: its subject is inconsistent, or the implementation does not answer."""


@dataclass(frozen=True)
class Subject:
    """The subject of a probe: an operation on a shape, and the watched element.

    `shape` is M x K x N for matmul, the shape of the operand for sum over `axis`, and ranks x elements for all_reduce.

    Raises `CannotProbe`: the parts do not fit together; says what is expected.
    """

    operation: Operation
    shape: tuple[int, ...]
    dtype: str
    axis: int = 0
    element: tuple[int, ...] = ()
    out: str | None = None

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise CannotProbe(f"operation {self.operation!r}: expected one of {', '.join(OPERATIONS)}")
        if self.dtype not in DTYPES:
            raise CannotProbe(f"dtype {self.dtype!r}: expected one of {', '.join(DTYPES)}; other sums have no order")
        if self.out is not None and self.out not in DTYPES:
            raise CannotProbe(f"out {self.out!r}: expected one of {', '.join(DTYPES)}")
        form, ranks = FORMS[self.operation]
        shape = "x".join(map(str, self.shape))
        if len(self.shape) not in ranks:
            raise CannotProbe(f"shape {shape}: {self.operation} takes {form}")
        if min(self.shape) < 1:
            raise CannotProbe(f"shape {shape}: expected extents of at least 1")
        if self.operation == "sum" and not -len(self.shape) <= self.axis < len(self.shape):
            raise CannotProbe(f"axis {self.axis}: the shape has {len(self.shape)} dimensions")
        if not 2 <= self.terms <= MOST_TERMS:
            raise CannotProbe(f"shape {shape}: {self.terms} terms; expected 2 to {MOST_TERMS}")
        within = [0 <= place < extent for place, extent in zip(self.element, self.result, strict=False)]
        if self.element and (len(self.element) != len(self.result) or not all(within)):
            raise CannotProbe(f"element {list(self.element)}: the result has shape {list(self.result)}")

    @property
    def summed(self) -> int:
        """The place in `shape` of the extent that is summed over: K of a product, the ranks of an all-reduce."""
        return {"matmul": 1, "all_reduce": 0}.get(self.operation, self.axis % len(self.shape))

    @property
    def terms(self) -> int:
        """The number of terms of an element of the result."""
        return self.shape[self.summed]

    @cached_property
    def result(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.shape[: self.summed] + self.shape[self.summed + 1 :]

    @property
    def watched(self) -> tuple[int, ...]:
        """The watched element."""
        return self.element or (0,) * len(self.result)

    @property
    def flat_element(self) -> int:
        """The watched element's number, row-major."""
        return int(np.ravel_multi_index(self.watched, self.result)) if self.result else 0

    @property
    def result_dtype(self) -> str:
        """The dtype of the result."""
        if self.operation == "matmul" and self.out is None and self.dtype.startswith("fp8"):
            return "fp32"
        return self.out or self.dtype

    @property
    def shapes(self) -> list[list[int]]:
        """The shapes of the operands, as the parameters of `numerics.declared`."""
        if self.operation == "matmul":
            return [list(self.shape[:2]), list(self.shape[1:])]
        return [list(self.shape)] if self.operation == "sum" else [list(self.shape[1:])] * self.shape[0]

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the operation."""
        if self.operation == "sum":
            return {"axis": self.axis}
        return {"out": self.result_dtype} if self.result_dtype != self.dtype else {}

    def __str__(self) -> str:
        return f"{self.operation} {'x'.join(map(str, self.shape))} {self.dtype}"


class Box:
    """A black box: one operation as a function of its terms, words in and the watched element out.

    An all-reduce goes through `method`, with `options` beside its other parameters; a sum or a product through
    `numerics.evaluate`, or through a program if that is not supported. `calls` counts the calls made.
    """

    def __init__(
        self,
        session: Session,
        subject: Subject,
        level: str,
        method: str = "collectives.all_reduce",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.session, self.subject, self.level = session, subject, level
        self.method = method if subject.operation == "all_reduce" else ""  # of others not known before the first call
        self.options = options or {}
        self.calls = 0
        self.ranks_agree = True
        self._decode = float_format(subject.result_dtype).decode
        kind = word_type(subject.dtype)
        if self.has_products:
            left, right = self._operands = [np.zeros(shape, kind) for shape in subject.shapes]
            row, column = subject.watched
            self._places = [left[row], right[:, column]]
        else:
            self._operands = [np.zeros(subject.shape, kind)]
            lines = np.moveaxis(self._operands[0], subject.summed, -1)
            self._places = [lines if subject.operation == "all_reduce" else lines[subject.watched]]

    @property
    def has_products(self) -> bool:
        """True if a term is a product of two factors."""
        return self.subject.operation == "matmul"

    def result(self, left: Words, right: Words | None = None) -> Tensor:
        """Return the whole result for these terms of the watched element.

        The terms of all other elements are zeros, or share one factor; those of an all-reduce are the same ones.
        """
        for place, words in zip(self._places, (left, right), strict=False):
            place[:] = words
        parts = self._operands[0] if self.subject.operation == "all_reduce" else self._operands
        return self.evaluated([Tensor(self.subject.dtype, part.shape, part.tobytes()) for part in parts])

    def word(self, left: Words, right: Words | None = None) -> int:
        """Return the code of the watched element."""
        return int(self.result(left, right).words()[self.subject.flat_element])

    def value(self, left: Words, right: Words | None = None) -> Value:
        """Return the exact value of the watched element."""
        return self._decode(self.word(left, right))

    def evaluated(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return the whole result for operands of the subject's shapes; of an all-reduce, the first rank's."""
        subject = self.subject
        if subject.operation == "all_reduce":
            params = {"inputs": inputs, "op": "sum", "level": self.level, **self.options}
            outputs = self._outputs(self.call(self.method, params), subject.terms)
            self.ranks_agree = self.ranks_agree and len({output.data for output in outputs}) == 1
            return outputs[0]
        if self.method != "language.execute":
            params = {"operation": subject.operation, "inputs": inputs, "attributes": subject.attributes}
            observation = self.call("numerics.evaluate", params | {"level": self.level})
            if self.method or not isinstance(observation, Unsupported):
                self.method = "numerics.evaluate"
                return self._outputs(observation, 1)[0]
        self.method = "language.execute"
        observation = self.call(self.method, self._program(inputs))
        if isinstance(observation, Unsupported):
            what = "neither numerics.evaluate nor language.execute is supported"
            remedy = "--operation=all_reduce probes a collectives library"
            raise CannotProbe(error_text(str(subject), what, "one of them, which a sum is asked through", remedy))
        return self._outputs(observation, 1)[0]

    def call(self, method: str, params: Mapping[str, Any]) -> Observation:
        """Make one call, and count it."""
        self.calls += 1
        observation = self.session.call(method, params)
        self.session.exchanges.clear()  # thousands of tensors that nobody will read
        return observation

    def _outputs(self, observation: Observation, count: int) -> list[Tensor]:
        if not isinstance(observation, Returned):
            raise CannotProbe(f"{self.subject}: {self.method}: {describe(observation)}{_stderr(observation)}")
        outputs = observation.value.get("outputs") if isinstance(observation.value, Mapping) else None
        if not isinstance(outputs, list) or len(outputs) != count:
            place = f"{self.subject}: {self.method}"
            raise CannotProbe(error_text(place, "the answer has another form", f"{count} outputs"))
        dtype, shape = self.subject.result_dtype, self.subject.result
        for output in outputs:
            if not isinstance(output, Tensor) or (output.dtype, output.shape) != (dtype, shape):
                form = f"{output.dtype} {list(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
                place = f"{self.subject}: {self.method}"
                raise CannotProbe(error_text(place, f"the answer has {form}", f"{dtype} {list(shape)}"))
        return outputs

    def _program(self, inputs: Sequence[Tensor]) -> dict[str, Any]:
        out = f", out={self.subject.result_dtype}" if self.subject.result_dtype != self.subject.dtype else ""
        expression = f"op.matmul(A, B{out})" if self.has_products else f"op.sum(A, axis={self.subject.axis})"
        named = dict(zip("AB", inputs, strict=False))
        parameters = ", ".join(f"{name}: {type_of(tensor)}" for name, tensor in named.items())
        source = returning(expression, parameters, type_text(self.subject.result_dtype, self.subject.result))
        return {"source": source, "function": "f", "inputs": named, "level": self.level}


def hello_of(session: Session) -> Hello:
    """Return the Hello of the implementation, which is started. Raises `CannotProbe`: it does not start."""
    hello = session.open()
    if isinstance(hello, Fault):
        raise CannotProbe(f"{session.label}: {describe(hello)}{_stderr(hello)}")
    return hello


def words_of(values: Sequence[Value], dtype: str) -> Words:
    """Return the codes of values in a dtype."""
    codes = {value: FORMATS[dtype].encode(value) for value in dict.fromkeys(values)}
    return np.array([codes[value] for value in values], word_type(dtype))


def word_type(dtype: str) -> str:
    """Return numpy's name of the unsigned integers that hold the codes of a dtype."""
    return f"<u{float_format(dtype).sign_bit.bit_length() // 8}"


def _stderr(observation: Observation) -> str:
    return "".join(f"\n{line}" for line in quoted_tail(observation.stderr if isinstance(observation, Fault) else ""))


# Random terms that distinguish orders and arithmetics, the same for every run.
#
# Rows have four kinds in turn. Plain rows have magnitudes that spread over several binades. Cancelling rows, narrow and
# wide, have every number and its negation at different leaves, so that only rounding errors remain; these show even if
# the result has few bits. Cancelling rows of powers of two often have exact ties.


Style: TypeAlias = Literal["plain", "cancelling", "wide", "ties"]

STYLES: tuple[Style, ...] = ("plain", "cancelling", "wide", "ties")
NARROW = {"fp16": 4, "fp8_e4m3": 2, "fp8_e5m2": 3}
"""Binades on both sides of 1 for plain and narrow cancelling rows; other dtypes take 8."""
WIDE = {"fp16": 12, "fp8_e4m3": 5, "fp8_e5m2": 12, "fp64": 40}
"""Binades on both sides of 1 for wide rows; other dtypes take 20."""


def samples(dtype: str, terms: int, rows: int, products: bool, seed: int = 0) -> list[Terms]:
    """Return rows of terms, of each style in turn."""
    draw = random.Random(f"{dtype} {terms} {products} {seed}")
    return [_sample(dtype, terms, products, STYLES[row % len(STYLES)], draw) for row in range(rows)]


def _sample(dtype: str, terms: int, products: bool, style: Style, draw: random.Random) -> Terms:
    left = _tying(dtype, terms, draw) if style == "ties" else _numbers(dtype, terms, style == "wide", draw)
    right = _numbers(dtype, terms, False, draw) if products else None
    if right is not None and style == "ties":
        right[:] = words_of([Fraction(1)], dtype)
    if style != "plain":
        places = np.array(draw.sample(range(terms), terms))
        one, other = places[0 : terms - 1 : 2], places[1::2]
        left[other] = left[one] ^ left.dtype.type(float_format(dtype).sign_bit)
        if right is not None:
            right[other] = right[one]
    return left, right


def _numbers(dtype: str, terms: int, wide: bool, draw: random.Random) -> Words:
    """Return codes of normal numbers: random signs, exponents around that of 1, and fractions."""
    format_ = float_format(dtype)
    spread = min(WIDE.get(dtype, 20) if wide else NARROW.get(dtype, 8), format_.bias - 2)
    words = np.frombuffer(draw.randbytes(8 * terms), "<u8")
    exponents = np.frombuffer(draw.randbytes(4 * terms), "<u4") % (2 * spread + 1) + (format_.bias - spread)
    fractions = words & np.uint64((1 << format_.fraction_bits) - 1)
    signs = (words >> np.uint64(63)) * np.uint64(format_.sign_bit)
    codes: np.ndarray[Any, np.dtype[np.uint64]] = (
        signs | (exponents.astype(np.uint64) << np.uint64(format_.fraction_bits)) | fractions
    )
    return codes.astype(word_type(dtype))


def _tying(dtype: str, terms: int, draw: random.Random) -> Words:
    """Return powers of two: ones, and halves of their last place in the accumulator and in the dtype."""
    format_ = float_format(dtype)
    steps = [float_format(ACCUMULATORS[dtype]).fraction_bits + 1, format_.fraction_bits + 1]
    exponents = [0, 0, *(max(-step, format_.smallest_exponent) for step in steps), -steps[1] + 1]
    numbers = words_of([sign * Fraction(2) ** exponent for exponent in exponents for sign in (1, -1)], dtype)
    return numbers[[draw.randrange(len(numbers)) for _ in range(terms)]]
