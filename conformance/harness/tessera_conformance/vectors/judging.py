"""What a vector's answer is held to at each numerics level (AMB-LANG-44).

strict: the frozen bits. deterministic: the bits of the implementation's own declaration, replayed, and the same bits
when asked again; what follows from no declaration lies within its bound. fast: a rigorous bound around the exact
result. Integers and booleans have one right answer at every level. What a check says names the rule that accepted or
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tessera_conformance.check import Check
from tessera_conformance.observations import Unsupported
from tessera_conformance.oracle import bounds
from tessera_conformance.oracle.functions import OPERATIONS
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports import Lacking
from tessera_conformance.vectors import allowances
from tessera_conformance.vectors.allowances import Result
from tessera_conformance.vectors.answers import outputs_of
from tessera_conformance.vectors.declared import Question, judge_declared
from tessera_conformance.vectors.model import Vector
from tessera_conformance.vectors.operation_calls import Step, run_steps
from tessera_conformance.vectors.readings import recognize, recognize_saturation
from tessera_conformance.verdicts import LEVELS

STRICT_ONLY = frozenset({"uniform", "normal", "dropout"})
"""Random numbers have no meaning but their bits; the other levels judge their properties elsewhere."""

ROUNDED_ONCE = frozenset({"add", "subtract", "multiply", "divide", "scale", "cast"})
"""Operators that round every result once, but for products of complex numbers."""

EXACT = frozenset({"negate", "relu", "max", "min"}) | allowances.MOVED
"""Operators that round nothing, but for a literal."""

COMPOSED = frozenset({"softmax", "logsumexp", "mean", "prod", "sum", "fft", "ifft", "gelu", "silu", "sigmoid"})
"""Functions of several steps whose special values do not depend on their order."""

MESSAGES = frozenset({"top_k"})
"""What carries the bits of its sender at every level."""

WITHOUT_LEVEL = frozenset({"collectives.compress", "collectives.sparsify"})
"""Methods that take no level."""

MOST_ENCLOSED = 4096
"""Results of more elements are held to bits only: an enclosure of every 16-bit value takes seconds."""


def levels(vector: Vector) -> tuple[str, ...]:
    """The levels at which a vector can be judged."""
    if not _is_float(vector):
        return LEVELS
    name = _name(vector)
    if name in STRICT_ONLY or name not in bounds.ENCLOSED:
        return ("strict",)
    if vector.expected[0].size > MOST_ENCLOSED:
        return ("deterministic", "strict") if _has_one_answer(vector) else ("strict",)
    return LEVELS


def judge(impl: Implementation, check: Check, vector: Vector) -> None:
    """Ask the vector's question and judge the answer at the level of the run."""
    outputs = evaluate(impl, check, vector)
    oracle = vector.provenance.check
    if oracle.function == "oracle.matmul":
        recognize_saturation(check, _inputs(vector), outputs[0], vector.expected[0])
    if impl.level == "strict" or _name(vector) in MESSAGES:
        for found, expected in zip(outputs, vector.expected, strict=True):
            check.bits(found, expected, f"{impl.level}: the frozen bits")
        return
    for found, expected in zip(outputs, vector.expected, strict=True):
        _judge_below_strict(impl, check, vector, found, expected)
    if impl.level == "deterministic":
        for found, again in zip(outputs, evaluate(impl, check, vector), strict=True):
            check.bits(again, found, "deterministic: the same bits when asked again")


def evaluate(impl: Implementation, check: Check, vector: Vector) -> list[Any]:
    """The outputs, as many as are expected."""
    if vector.call.method == "language.execute" and impl.door == "operations":
        outputs = list(run_steps(vector, lambda step, operands: _operation(impl, check, step, operands)))
        check.equal(len(outputs), len(vector.expected), "the number of results")
        return outputs
    area, _, method = vector.call.method.partition(".")
    level = {} if area == "abi" or vector.call.method in WITHOUT_LEVEL else {"level": impl.level}
    value = check.returns(getattr(getattr(impl, area), method)(**vector.call.params, **level))
    outputs = outputs_of(vector.call.method, vector.call.params, value)
    check.equal(len(outputs), len(vector.expected), "the number of results")
    return outputs


def _operation(impl: Implementation, check: Check, step: Step, operands: Sequence[Tensor]) -> Sequence[Tensor]:
    """The results of one operation, tensors as the protocol has it. Raises `Lacking` where it is not supported."""
    observation = impl.numerics.evaluate(
        operation=step.operation, inputs=list(operands), attributes=dict(step.attributes), level=impl.level
    )
    if isinstance(observation, Unsupported):
        raise Lacking(f"the implementation lacks {observation.feature}")
    outputs: Sequence[Tensor] = check.returns(observation)["outputs"]
    return outputs


def _judge_below_strict(impl: Implementation, check: Check, vector: Vector, found: Any, expected: Tensor) -> None:
    oracle = vector.provenance.check
    result = Result(check, impl.level, oracle.function, _inputs(vector), oracle.arguments, found, expected)
    deterministic = impl.level == "deterministic"
    flushes = impl.arithmetic.flushes or not deterministic
    one_answer = not _is_float(vector) or (deterministic and _has_one_answer(vector))
    question = Question(result.name, result.inputs, result.arguments)
    recognize(check, oracle.function, result.inputs, oracle.arguments, found, expected)
    if one_answer:
        rounded = result.name in ROUNDED_ONCE and _is_float(vector)
        why = f"{impl.level}: {'one rounding' if rounded else 'one right answer'}"
        if flushes and any(x.format.is_float for x in result.inputs):
            allowances.judge_flushing(result, why)
        else:
            check.bits(found, expected, why)
    elif deterministic and question.is_replayed:
        judge_declared(impl, check, question, found)
    elif result.name in OPERATIONS:
        _judge_function(result, impl.arithmetic.accuracy(result.name), flushes)
    else:
        _judge_bound(result)


def _judge_function(result: Result, ulps: float, flushes: bool) -> None:
    if result.level == "deterministic" and ulps == 0.5 and not flushes:
        why = f"deterministic: {result.name} correctly rounded, as declared"
        result.check.bits(result.found, result.frozen, why)
        return
    _require_form(result)
    allowances.judge_function(result, min(ulps, bounds.FUNCTION_ULPS), flushes)


def _judge_bound(result: Result) -> None:
    _require_form(result)
    enclosures = bounds.enclose(result.function, result.inputs, result.arguments)
    rules = ", ".join(dict.fromkeys(each.rule for each in enclosures if each is not None))
    why = f"{result.level}: within the bound ({rules or 'nothing is promised'})"
    result.check.enclosed(result.found, enclosures, why)
    name = result.name
    if name in EXACT or name == "cast" or (result.level == "deterministic" and name in COMPOSED):
        allowances.judge_special(result, enclosures)


def _require_form(result: Result) -> None:
    found, frozen = result.found, result.frozen
    form = (found.dtype, found.shape) if isinstance(found, Tensor) else None
    result.check.equal(form, (frozen.dtype, frozen.shape), "dtype and shape")


def _name(vector: Vector) -> str:
    return vector.provenance.check.function.removeprefix("oracle.")


def _is_float(vector: Vector) -> bool:
    return any(answer.format.is_float for answer in vector.expected)


def _has_one_answer(vector: Vector) -> bool:
    """Whether the canon's bits are the only ones, but for subnormals, at the level deterministic too."""
    name, is_complex = _name(vector), vector.expected[0].format.words > 1
    extreme = name == "all_reduce" and vector.provenance.check.arguments.get("op") in ("max", "min")
    return extreme or name in EXACT or (name in ROUNDED_ONCE and not (is_complex and name == "multiply"))


def _inputs(vector: Vector) -> Sequence[Tensor]:
    return [vector.call.inputs[name] for name in vector.provenance.check.operands]
