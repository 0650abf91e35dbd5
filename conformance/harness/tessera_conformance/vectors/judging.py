"""The judgement of a vector's answer at each numerics level, with the other readings that interpretations list."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import partial, reduce
from typing import Any

import numpy as np
import pytest

from tessera_conformance.arithmetic import ModelError, NodeArithmetic, canonical, replay
from tessera_conformance.check import Check, are_nan
from tessera_conformance.oracle import FUNCTIONS, bounds, elementwise, exact
from tessera_conformance.oracle import reductions as products
from tessera_conformance.oracle.bounds.intervals import Enclosure, may_flush
from tessera_conformance.oracle.bounds.operations import MOVED, settled
from tessera_conformance.oracle.compositions import PROGRAMS, Step, run_program
from tessera_conformance.oracle.elementwise import OPERATIONS
from tessera_conformance.oracle.exact import NAN, ZERO, IntegerFormat, Value, values_of
from tessera_conformance.oracle.parameter_buffers import without_padding
from tessera_conformance.oracle.reductions import greatest
from tessera_conformance.oracle.trees import Tree, TreeError
from tessera_conformance.protocol import Rejected, Returned, Unsupported
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports import Lacking
from tessera_conformance.vectors import load
from tessera_conformance.vectors.files import Vector
from tessera_conformance.verdicts import LEVELS

# A question to an implementation, and one result of it.


@dataclass(frozen=True)
class Question:
    """An operation, which is a function of the oracle, its operands and the other arguments."""

    operation: str
    inputs: Sequence[Tensor]
    arguments: Mapping[str, Any]

    @classmethod
    def of(cls, vector: Vector) -> Question:
        """Return the operation that confirms a vector."""
        confirmed = vector.provenance.check
        inputs = [vector.call.inputs[name] for name in confirmed.operands]
        return cls(confirmed.function.removeprefix("oracle."), inputs, confirmed.arguments)

    def computed(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return the oracle's first result for other operands."""
        answer = FUNCTIONS[f"oracle.{self.operation}"](*inputs, **self.arguments)
        computed: Tensor = answer[0] if isinstance(answer, tuple) else answer
        return computed

    @property
    def is_replayed(self) -> bool:
        """True if a declaration determines the bits; those of complex numbers may arise in several ways."""
        adds = self.operation in REPLAYED and self.arguments.get("op", "sum") == "sum"
        return adds and self.inputs[0].format.words == 1


@dataclass(frozen=True)
class Result:
    """One result of a question, judged below the level strict: the actual and the frozen one."""

    check: Check
    level: str
    question: Question
    found: Any
    frozen: Tensor

    def judge_words(self, words: Any, what: str) -> None:
        """Check that the result has these storage codes."""
        self.check.bits(self.found, Tensor(self.frozen.dtype, self.frozen.shape, words.tobytes()), what)

    def require_form(self) -> None:
        """Check the dtype and the shape."""
        form = (self.found.dtype, self.found.shape) if isinstance(self.found, Tensor) else None
        self.check.equal(form, (self.frozen.dtype, self.frozen.shape), "dtype and shape")


def has_form(actual: Any, expected: Tensor) -> bool:
    """True if a result is a tensor of the expected dtype and shape."""
    return isinstance(actual, Tensor) and (actual.dtype, actual.shape) == (expected.dtype, expected.shape)


# Answers that follow a listed alternative of an interpretation: other readings, no failures.
#
# Products of int8 may saturate at every level. If operands contain NaN or zeros of both signs, and if a number exceeds
# a narrow type, the decision of an interpretation is asserted at the level strict alone. An element may then follow the
# decision or an alternative.


INDEX_TYPES = re.compile(r"((?:-> |let R: )tensor<[0-9x]*)int32")
"""The types of the indices in a program that finds them."""
NAN_IGNORED = "NaN ignored"
EQUAL_ZEROS = "-0 and +0 equal"
NAN_UNORDERED = "a comparison with NaN is false, so that the order of comparisons decides"
NONFINITE = "overflow to infinity or NaN by default"
NEAREST = "float to integer rounds to the nearest, to even in the middle"

INTEGER_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": exact.add,
    "subtract": exact.subtract,
    "multiply": exact.multiply,
    "divide": lambda a, b: Fraction(math.trunc(a / b)) if b else None,
    "negate": exact.negate,
    "abs": abs,
}
"""The operators whose results wrap in a type of integers."""

Alternative = Callable[[Tensor, Mapping[str, Any]], Sequence[Value]]


def recognize(check: Check, question: Question, found: Any, frozen: Tensor) -> None:
    """End the case as another reading if all elements that depart from the decision follow one alternative.

    Raises `OtherReading`: they do.
    """
    inputs, arguments = question.inputs, question.arguments
    if question.operation == "all_reduce" and arguments["op"] in ("max", "min"):
        recognize_extremes(check, list(map(values_of, inputs)), arguments["op"], found, frozen)
        return
    alternatives = ALTERNATIVES.get(question.operation, {})
    if not alternatives or not has_form(found, frozen):
        return
    decision, actual = values_of(frozen), values_of(found)
    departing = [place for place, value in enumerate(actual) if not _are_equal(value, decision[place])]
    for alternative, compute in alternatives.items():
        other = compute(inputs[0], arguments) if departing else ()
        follows = bool(other) and all(_are_equal(actual[place], other[place]) for place in departing)
        check.reading("AMB-LANG-105" if alternative in CASTS else "AMB-LANG-134", alternative, follows)


def recognize_saturation(check: Check, inputs: Sequence[Tensor], actual: Any, frozen: Tensor) -> None:
    """End the case as another reading if a product of int8 has the nearest int8 in each place.

    Raises `OtherReading`: it has, and the decision has another in some place.
    """
    if {operand.dtype for operand in (*inputs, frozen)} != {"int8"}:
        return
    a, b = inputs
    wide = values_of(products.matmul(a, b, out="int32"))
    nearest = [min(max(value, Fraction(-128)), Fraction(127)) for value in wide if isinstance(value, Fraction)]
    follows = isinstance(actual, Tensor) and actual.dtype == "int8" and values_of(actual) == nearest
    check.reading("AMB-LANG-40", "int8 saturating", follows and nearest != values_of(frozen))


def recognize_overflow(check: Check, observation: Any) -> None:
    """End the case as another reading if a program whose integers overflow is refused while it runs.

    Raises `OtherReading`: it is, with a diagnostic of category numerics, or types as for a literal out of range.
    """
    codes = ("numerics", "types")
    refused = isinstance(observation, Rejected) and observation.phase == "execute" and observation.code in codes
    check.reading("AMB-LANG-90", "integer overflow is an error", refused)


def overflows(vector: Vector) -> bool:
    """Return True if exact arithmetic on the integers of a vector has another result than the frozen one."""
    question = Question.of(vector)
    operands, name = question.inputs, question.operation
    if name not in INTEGER_OPERATIONS or not isinstance(exact.FORMATS.get(operands[0].dtype), IntegerFormat):
        return False
    groups = exact.grouped(*operands)[1]
    return [INTEGER_OPERATIONS[name](*group) for group in groups] != values_of(vector.expected[0])


def recognize_wide_indices(check: Check, actual: Any, frozen: Tensor) -> None:
    """End the case as another reading if indices are those of the decision, in int64.

    Raises `OtherReading`: they are.
    """
    wide = isinstance(actual, Tensor) and (actual.dtype, actual.shape) == ("int64", frozen.shape)
    check.reading("AMB-LANG-134", "argmax as int64", wide and values_of(actual) == values_of(frozen))


def recognize_extremes(check: Check, rows: Sequence[Sequence[Value]], op: str, actual_row: Any, frozen: Tensor) -> None:
    """End the case as another reading if extremes over ranks, a row for each, follow AMB-LANG-134.

    Raises `OtherReading`: every element that departs from the decision follows an alternative.
    """
    if not has_form(actual_row, frozen):
        return
    followed: list[str | None] = []
    for decision, actual, column in zip(values_of(frozen), values_of(actual_row), zip(*rows, strict=True), strict=True):
        if decision == actual:
            continue
        numbers = _numbers(column)
        extreme = greatest(numbers) if op == "max" else reduce(exact.minimum, numbers)
        if NAN not in column:
            followed.append(EQUAL_ZEROS if _are_equal(decision, actual) and actual in column else None)
        elif _are_equal(actual, extreme):
            followed.append(NAN_IGNORED)
        else:
            followed.append(NAN_UNORDERED if any(_are_equal(actual, value) for value in column) else None)
    if followed and None not in followed:
        check.reading("AMB-LANG-134", str(followed[0]), True)


def _are_equal(a: Value, b: Value) -> bool:
    zeros = (ZERO, exact.NEGATIVE_ZERO)
    return a == b or (a in zeros and b in zeros)


def _numbers(row: Sequence[Value]) -> list[Value]:
    """Return the elements that are numbers, with one zero; the row itself if it has none."""
    return [ZERO if value is exact.NEGATIVE_ZERO else value for value in row if value is not NAN] or list(row)


def _first_largest(row: Sequence[Value], *, ignoring_nan: bool) -> Value:
    """Return the index of the first largest element, or of the first NaN unless ignored, -0 and +0 being equal."""
    plain = [ZERO if value is exact.NEGATIVE_ZERO else value for value in row]
    return Fraction(plain.index(greatest(_numbers(row) if ignoring_nan else plain)))


def _by_rows(rule: Callable[[Sequence[Value]], Value]) -> Alternative:
    return lambda x, arguments: [rule(row) for row in exact.rows_of(x, arguments["axis"])]


def _overflowing(x: Tensor, arguments: Mapping[str, Any]) -> Sequence[Value]:
    if "overflow" in arguments:
        return ()
    return values_of(elementwise.cast(x, dtype=arguments["dtype"], overflow="nonfinite"))


def _nearest(x: Tensor, arguments: Mapping[str, Any]) -> Sequence[Value]:
    """Return the numbers rounded to the nearest integer, which a cast then keeps."""
    if not arguments["dtype"].startswith("int") or not x.format.is_float:
        return ()
    return [Fraction(round(value)) if isinstance(value, Fraction) else value for value in values_of(x)]


CASTS: Mapping[str, Alternative] = {NONFINITE: _overflowing, NEAREST: _nearest}
ALTERNATIVES: Mapping[str, Mapping[str, Alternative]] = {
    "cast": CASTS,
    "argmax": {
        EQUAL_ZEROS: _by_rows(partial(_first_largest, ignoring_nan=False)),
        NAN_IGNORED: _by_rows(partial(_first_largest, ignoring_nan=True)),
    },
    "max": {NAN_IGNORED: _by_rows(lambda row: greatest(_numbers(row)))},
    "min": {NAN_IGNORED: _by_rows(lambda row: reduce(exact.minimum, _numbers(row)))},
}
"""The alternatives of a function of the oracle, which compute the values of the result's elements."""

# The result of a call, as the tensors that a vector has frozen.
#
# Programs, operations and collectives return tensors. Of a parameter layout the offsets, the sizes and the end count,
# as int32. Of a parameter buffer its bytes count, as int8, and its padding as zeros, since nobody reads it (AMB-RT-55).
# Of a compressed tensor its payload counts; of a top-k message the values, and the indices as int32.


def outputs_of(method: str, params: Mapping[str, Any], value: Mapping[str, Any]) -> list[Any]:
    """Return the tensors in the returned value of a method."""
    match method:
        case "abi.parameter_layout":
            rows = (
                [parameter["offset"] for parameter in value["parameters"]],
                [parameter["size"] for parameter in value["parameters"]],
                [value["end_of_last_argument"], value["size"]],
            )
            return [_row("int32", row) for row in rows]
        case "abi.pack":
            return [_row("int8", list(without_padding(params["signature"], bytes.fromhex(value["buffer"]))))]
        case "collectives.compress":
            return [value["payload"]]
        case "collectives.sparsify":
            return [value["values"], _row("int32", [int(word) for word in value["indices"].words()])]
        case _:
            return list(value["outputs"])


def _row(dtype: str, words: Sequence[int]) -> Tensor:
    return Tensor.from_words(dtype, (len(words),), words)


# Permitted departures from the frozen bits, below the level strict, of results without an order.


def judge_flushing(result: Result, why: str) -> None:
    """Check that each element has the frozen bits, or those with subnormal operands, results or both flushed."""
    actual, frozen = result.found, result.frozen
    words = frozen.words().copy()
    if has_form(actual, frozen):
        computed = result.question.computed(list(map(flushed, result.question.inputs)))
        for other in (flushed(frozen), computed, flushed(computed)):
            words = np.where(actual.words() == other.words(), actual.words(), words)
    result.judge_words(words, f"{why}, subnormals kept or flushed")


def flushed(x: Tensor) -> Tensor:
    """Return the tensor with subnormal numbers as zeros of their sign; fp8 and dtypes without floats are unchanged."""
    layout = x.format
    if not layout.is_float or not may_flush(exact.component_format(x.dtype)):
        return x
    words = x.words()
    exponents = (words >> layout.fraction_bits) & ((1 << layout.exponent_bits) - 1)
    signs = words & (1 << (layout.exponent_bits + layout.fraction_bits))
    return Tensor(x.dtype, x.shape, np.where(exponents == 0, signs, words).astype(words.dtype).tobytes())


def judge_function(result: Result, declared: float, flushes: bool) -> None:
    """Check the declared accuracy; at the level deterministic special values have the frozen bits."""
    level, name, inputs = result.level, result.question.operation, result.question.inputs
    if level == "deterministic" and declared == 0.5 and not flushes:
        result.check.bits(result.found, result.frozen, f"deterministic: {name} correctly rounded, as declared")
        return
    result.require_form()
    ulps = min(declared, bounds.FUNCTION_ULPS)
    what = f"{level}: within {ulps:g} ulp of {name}{', subnormals kept or flushed' if flushes else ''}"
    enclosures = bounds.function(name, *inputs, **result.question.arguments, ulps=ulps, flushes=flushes)
    result.check.enclosed(result.found, enclosures, what)
    if level == "deterministic":
        is_settled = np.array(settled(name, *inputs, ulps=ulps, flushes=flushes), bool)
        words = np.where(is_settled, result.frozen.words(), result.found.words())
        result.judge_words(words, f"{level}: special values of {name}")


def judge_special(result: Result, enclosures: Sequence[Enclosure | None]) -> None:
    """Check NaN and infinities that follow from those among the operands, and settled finite results beside them.

    A number may overflow or underflow in one order and not in another. So an infinity, or a NaN that no operand is, is
    settled only if an enclosure holds once the operands are finite; that of a product must exclude zero, since zero
    times infinity is NaN. Algorithms mix the parts of complex products and transforms differently: of those at least
    one is not finite.
    """
    open_ = np.array([enclosure is None for enclosure in enclosures], bool)
    question, actual, frozen = result.question, result.found, result.frozen
    name, inputs = question.operation, question.inputs
    if not open_.any() or not any(_are_special(x).any() for x in inputs):
        return
    tame = bounds.enclose(name, [_replaced(x, _are_special(x), Fraction(1)) for x in inputs], question.arguments)
    settles = np.array([bound is not None and not (name == "prod" and bound.holds(ZERO)) for bound in tame], bool)
    from_nan = are_nan(question.computed([_replaced(x, ~are_nan(x), Fraction(1)) for x in inputs]))
    settles = open_ & (settles | (from_nan & are_nan(frozen)))
    what = f"{result.level}: special values of {name}"
    special = settles & _are_special(frozen)
    if frozen.format.words > 1 and name not in COMPONENTWISE:
        lost = special.reshape(-1, 2).any(axis=1) & ~_are_special(actual).reshape(-1, 2).any(axis=1)
        result.check.true(not lost.any(), f"{what}: what is made of NaN or infinities is not finite")
        return
    result.judge_words(np.where(special, frozen.words(), actual.words()), what)
    result.check.enclosed(actual, _beside_special(result, settles & ~special), what)


COMPONENTWISE = frozenset({"sum", "negate", "cast"}) | MOVED.keys()
"""Functions that do not mix the parts of complex numbers."""

ONE_VALUE = frozenset({"sigmoid", "negate", "relu", "max", "min", "cast"}) | MOVED.keys()
"""Functions whose finite results beside infinities are exact."""


def _beside_special(result: Result, where: Any) -> list[Enclosure | None]:
    """Return enclosures of finite results of infinite or NaN operands."""
    name, values = result.question.operation, values_of(result.frozen)
    found: list[Enclosure | None] = [None] * len(values)
    if name in ONE_VALUE:
        least = exact.component_format(result.frozen.dtype).smallest_normal
        for place in np.flatnonzero(where).tolist():
            value = exact.finite(values[place])
            if value == 0 or abs(value) >= least:
                found[place] = Enclosure(value, Fraction(0), "one right answer")
    elif name in ("softmax", "logsumexp"):
        (x,) = result.question.inputs
        numbers = [exact.finite(value) for value in values_of(x) if value is not NAN and not exact.is_infinite(value)]
        far = -exact.component_format(x.dtype).largest / 4
        if numbers and min(numbers) >= far / 2:
            limits = bounds.enclose(name, [_replaced(x, _are_special(x), far)], result.question.arguments)
            found = [limit if here else None for limit, here in zip(limits, where.tolist(), strict=True)]
    return found


def _replaced(x: Tensor, where: Any, value: Fraction) -> Tensor:
    """Return a tensor with a number at some places; a tensor without floats is unchanged."""
    if not x.format.is_float:
        return x
    words = x.words()
    code = words.dtype.type(exact.component_format(x.dtype).encode(value))
    return Tensor(x.dtype, x.shape, np.where(where, code, words).astype(words.dtype).tobytes())


def _are_special(x: Tensor) -> Any:
    """Return a mask of the words that are NaN or infinite."""
    return np.array([not exact.is_finite(value) for value in values_of(x)], bool)


# An implementation's declaration about a reducing operation, and the bits that it gives (AMB-LANG-44).


LONGEST_TREE = 60
"""The most characters of a tree that are shown."""

Replay = Callable[[Sequence[Tensor], Mapping[str, Any], Tree, NodeArithmetic], Tensor]

REPLAYED: Mapping[str, Replay] = {
    "matmul": lambda inputs, arguments, tree, model: replay.matmul(
        inputs[0], inputs[1], tree, model, arguments.get("out")
    ),
    "sum": lambda inputs, arguments, tree, model: replay.sum(
        inputs[0], arguments.get("axis", -1), tree, model, keepdims=arguments.get("keepdims", False)
    ),
    "all_reduce": lambda inputs, arguments, tree, model: replay.all_reduce(inputs, tree, model),
}
"""The reductions whose bits follow from a declared tree and arithmetic alone."""


@dataclass(frozen=True)
class Declaration:
    """The order in which an element is reduced, and the arithmetic of a node."""

    tree: Tree
    model: NodeArithmetic

    def __str__(self) -> str:
        """Return the rule, as the verdict states it."""
        text = self.tree.to_text()
        shown = text if len(text) <= LONGEST_TREE else f"{text[: LONGEST_TREE - 3]}..."
        parts = [f"products {self.model.product}", f"in {self.model.accumulator}"]
        parts += [self.model.rounding] if self.model.is_float else []
        parts += [f"aligned to {self.model.alignment_bits} bits"] if self.model.alignment_bits is not None else []
        parts += ["subnormals flushed"] if self.model.subnormals == "flushed" else []
        parts += ["from the first term"] if self.model.start == "none" else []
        return f"the declared tree {shown} ({', '.join(parts)})"


def judge_declared(impl: Implementation, check: Check, question: Question, actual: Any) -> None:
    """Check that the result has the bits that replaying the declaration gives; elements may declare other orders."""
    declared = declaration(impl, check, question)
    expected = replayed(check, question, declared)
    if has_form(actual, expected):
        expected = _by_element(impl, check, question, actual, declared, expected)
    check.bits(actual, expected, f"{impl.level}: {declared}, replayed")


def declaration(impl: Implementation, check: Check, question: Question, element: int = 0) -> Declaration:
    """Return the declaration of one element of the result: of `numerics.declared`, else of the Hello."""
    operation, dtype = question.operation, question.inputs[0].dtype
    observation = impl.numerics.declared(
        operation=operation,
        dtype=dtype,
        shapes=[list(operand.shape) for operand in question.inputs],
        attributes=dict(question.arguments),
        element=element,
    )
    try:
        if isinstance(observation, Unsupported) and operation in impl.arithmetic.trees:
            subnormals = "flushed" if impl.arithmetic.flushes else "kept"
            tree = Tree.from_text(impl.arithmetic.trees[operation])
            return Declaration(tree, canonical(dtype).but(subnormals=subnormals))
        if isinstance(observation, Unsupported) and impl.via == "operations":
            raise Lacking(f"the implementation lacks {observation.feature}")
        said = check.returns(observation, f"the order of {operation} is declared")
        declared = Declaration(Tree.from_json(said["tree"]), NodeArithmetic.from_json(said["arithmetic"]))
    except (TreeError, ModelError) as error:
        check.true(False, f"the declared order of {operation} can be read: {error}")
        raise
    _require_wide_accumulator(check, question, declared.model)
    return declared


def _require_wide_accumulator(check: Check, question: Question, model: NodeArithmetic) -> None:
    """Check that the accumulator is no narrower than the reference's (AMB-LANG-137), but over ranks (AMB-LANG-109)."""
    if question.operation == "all_reduce":
        return
    own = canonical(question.inputs[0].dtype)
    wide, narrow = model.format, own.format
    check.true(
        type(wide) is type(narrow) and all(map(operator.ge, astuple(wide), astuple(narrow))),
        f"the declared accumulator of {question.operation}, {model.accumulator}, is no narrower than the reference's, "
        f"{own.accumulator}",
    )


def replayed(check: Check, question: Question, declared: Declaration) -> Tensor:
    """Return the bits of a declaration that fits the question."""
    try:
        replay_of = REPLAYED[question.operation]
        return replay_of(question.inputs, question.arguments, declared.tree, declared.model)
    except (TreeError, replay.ReplayError) as error:
        check.true(False, f"the declared order of {question.operation} fits the operands: {error}")
        raise


def _by_element(
    impl: Implementation, check: Check, question: Question, actual: Tensor, first: Declaration, expected: Tensor
) -> Tensor:
    """Return `expected`, with differing elements replaced by what their own declarations give.

    Stops at the first element that is declared as element 0 is: that one differs from its declaration.
    """
    words = expected.words().copy()
    replays = {first: expected}
    both_nan = are_nan(actual) & are_nan(expected)
    for place in np.flatnonzero((actual.words() != words) & ~both_nan).tolist():
        own = declaration(impl, check, question, place)
        if own == first:
            break
        if own not in replays:
            replays[own] = replayed(check, question, own)
        words[place] = replays[own].words()[place]
    return Tensor(expected.dtype, expected.shape, words.tobytes())


# The rule for a vector's answer at each numerics level (AMB-LANG-44).
#
# strict: the frozen bits. deterministic: the bits of the implementation's own declaration, replayed, and the same bits
# in a second call; a result without a declaration is within its bound. fast: a rigorous bound around the exact result.
# Integers and booleans have one right answer at every level. A check's text names the rule that accepted or refused the
# answer.


ROUNDED_ONCE = frozenset({"add", "subtract", "multiply", "divide", "scale", "cast"})
"""Operators that round every result once, except products of complex numbers."""

EXACT = frozenset({"negate", "relu", "max", "min"}) | MOVED.keys()
"""Operators that round nothing, except a literal."""

COMPOSED = frozenset({"softmax", "logsumexp", "mean", "prod", "sum", "fft", "ifft", "gelu", "silu", "sigmoid"})
"""Functions of several steps whose special values do not depend on their order."""

MESSAGES = frozenset({"top_k"})
"""Operations that carry the bits of their sender at every level."""

WITHOUT_LEVEL = frozenset({"collectives.compress", "collectives.sparsify"})
"""Methods that take no level."""

MOST_ENCLOSED = 4096
"""Results with more elements are judged by bits only: an enclosure of every 16-bit value takes seconds."""


def levels(vector: Vector) -> tuple[str, ...]:
    """Return the levels at which a vector can be judged."""
    if not _is_float(vector):
        return LEVELS
    if Question.of(vector).operation not in bounds.ENCLOSED:
        return ("strict",)  # such as random numbers, which have no meaning but their bits
    if vector.expected[0].size > MOST_ENCLOSED:
        return ("deterministic", "strict") if _has_one_answer(vector) else ("strict",)
    return LEVELS


def judge(impl: Implementation, check: Check, vector: Vector) -> None:
    """Ask the vector's question and judge the answer at the level of the run."""
    outputs = evaluate(impl, check, vector)
    judge_outputs(impl, check, vector, outputs)
    if impl.level == "deterministic" and Question.of(vector).operation not in MESSAGES:
        for output, again in zip(outputs, evaluate(impl, check, vector), strict=True):
            check.bits(again, output, "deterministic: the same bits when asked again")


def judge_outputs(impl: Implementation, check: Check, vector: Vector, outputs: Sequence[Any]) -> None:
    """Judge results of a vector's operation at the level of the run, whichever calls produced them."""
    question = Question.of(vector)
    if question.operation == "argmax":
        recognize_wide_indices(check, outputs[0], vector.expected[0])
    if question.operation == "matmul":
        recognize_saturation(check, question.inputs, outputs[0], vector.expected[0])
    for output, expected in zip(outputs, vector.expected, strict=True):
        if impl.level == "strict" or question.operation in MESSAGES:
            check.bits(output, expected, f"{impl.level}: the frozen bits")
        else:
            _judge_below_strict(impl, vector, Result(check, impl.level, question, output, expected))


def evaluate(impl: Implementation, check: Check, vector: Vector) -> list[Any]:
    """Return the outputs, and check their number."""
    if vector.call.method == "language.execute" and impl.via == "operations":
        outputs = list(_by_operations(impl, check, Question.of(vector)))
        check.equal(len(outputs), len(vector.expected), "the number of results")
        return outputs
    area, _, method = vector.call.method.partition(".")
    level = {} if area == "abi" or vector.call.method in WITHOUT_LEVEL else {"level": impl.level}
    call = getattr(getattr(impl, area), method)
    observation = call(**vector.call.params, **level)
    if isinstance(observation, Rejected) and Question.of(vector).operation == "argmax":
        wide = INDEX_TYPES.sub(r"\1int64", vector.call.params["source"])
        again = call(**{**vector.call.params, "source": wide}, **level)
        if isinstance(again, Returned):
            recognize_wide_indices(check, again.value["outputs"][0], vector.expected[0])
    if isinstance(observation, Rejected) and overflows(vector):
        recognize_overflow(check, observation)
    value = check.returns(observation)
    outputs = outputs_of(vector.call.method, vector.call.params, value)
    check.equal(len(outputs), len(vector.expected), "the number of results")
    return outputs


def _by_operations(impl: Implementation, check: Check, question: Question) -> Sequence[Tensor]:
    """Return the results of a program of an implementation without a parser, called operation by operation.

    Raises `Lacking`: an operation is not supported.
    """

    def called(step: Step, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        observation = impl.numerics.evaluate(
            operation=step.operation, inputs=list(operands), attributes=dict(step.attributes), level=impl.level
        )
        if isinstance(observation, Unsupported):
            raise Lacking(f"the implementation lacks {observation.feature}")
        outputs: Sequence[Tensor] = check.returns(observation)["outputs"]
        return outputs

    whole = Step(question.operation, range(len(question.inputs)), question.arguments)
    steps = PROGRAMS.get(question.operation, [whole])
    return run_program(steps, question.inputs, question.arguments.get("factor", ""), called)


def _judge_below_strict(impl: Implementation, vector: Vector, result: Result) -> None:
    check, question, actual = result.check, result.question, result.found
    deterministic = impl.level == "deterministic"
    flushes = impl.arithmetic.flushes or not deterministic
    recognize(check, question, actual, result.frozen)
    if not _is_float(vector) or (deterministic and _has_one_answer(vector)):
        rounded = question.operation in ROUNDED_ONCE and _is_float(vector)
        why = f"{impl.level}: {'one rounding' if rounded else 'one right answer'}"
        if flushes and any(x.format.is_float for x in question.inputs):
            judge_flushing(result, why)
        else:
            check.bits(actual, result.frozen, why)
    elif deterministic and question.is_replayed:
        judge_declared(impl, check, question, actual)
    elif question.operation in OPERATIONS:
        judge_function(result, impl.arithmetic.accuracy(question.operation), flushes)
    else:
        _judge_bound(result)


def _judge_bound(result: Result) -> None:
    result.require_form()
    name = result.question.operation
    enclosures = bounds.enclose(name, result.question.inputs, result.question.arguments)
    rules = ", ".join(dict.fromkeys(enclosure.rule for enclosure in enclosures if enclosure is not None))
    why = f"{result.level}: within the bound ({rules or 'nothing is promised'})"
    result.check.enclosed(result.found, enclosures, why)
    if name in EXACT or name == "cast" or (result.level == "deterministic" and name in COMPOSED):
        judge_special(result, enclosures)


def _is_float(vector: Vector) -> bool:
    return any(answer.format.is_float for answer in vector.expected)


def _has_one_answer(vector: Vector) -> bool:
    """True if the reference arithmetic's bits, subnormals aside, are required at the level deterministic too."""
    question, is_complex = Question.of(vector), vector.expected[0].format.words > 1
    name = question.operation
    extreme = name == "all_reduce" and question.arguments.get("op") in ("max", "min")
    return extreme or name in EXACT or (name in ROUNDED_ONCE and not (is_complex and name == "multiply"))


# Golden vectors as cases of the suite: one test function for a topic, one case for each vector.


def golden(topic: str) -> Callable[[Any], Any]:
    """Parametrize a test over the vectors of a topic: clauses, features, levels and title come from each."""
    from tessera_conformance.marks import clause, feature, level, title  # registered with the plugin

    return pytest.mark.parametrize(
        "vector",
        [
            pytest.param(
                vector,
                id=vector.name,
                marks=[
                    clause(*vector.clauses),
                    feature(*vector.features),
                    level(*levels(vector)),
                    title(vector.comment),
                ],
            )
            for vector in load(topic)
        ],
    )
