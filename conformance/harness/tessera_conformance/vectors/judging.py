"""What a vector's answer is held to at each numerics level (AMB-LANG-44).

strict: the frozen bits. deterministic: the bits of the implementation's own declaration, replayed, and the same bits
when asked again. fast: a rigorous bound around the exact result. Integers and booleans have one right answer at every
level. What a check says names the rule that accepted or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tessera_conformance.arithmetic import NodeArithmetic, Tree, TreeError, canonical, replay
from tessera_conformance.arithmetic.model import ModelError
from tessera_conformance.check import Check
from tessera_conformance.observations import Unsupported
from tessera_conformance.oracle import bounds
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.model import Vector
from tessera_conformance.verdicts import LEVELS

STRICT_ONLY = frozenset({"oracle.uniform", "oracle.normal", "oracle.dropout"})
"""Random numbers have no meaning but their bits; the other levels judge their properties elsewhere."""

ROUNDED_ONCE = frozenset(
    f"oracle.{name}"
    for name in (
        "add",
        "subtract",
        "multiply",
        "divide",
        "negate",
        "scale",
        "multiply_add",
        "cast",
        "relu",
        "transpose",
    )
) | {"oracle.max", "oracle.min"}
"""Operators that round every result once, or not at all, whatever the level, unless subnormals are flushed."""

MOST_ENCLOSED = 4096
"""Results of more elements are held to bits only: an enclosure of every 16-bit value takes seconds."""

Replay = Callable[[Sequence[Tensor], Mapping[str, Any], Tree, NodeArithmetic], Tensor]

REPLAYED: Mapping[str, Replay] = {
    "oracle.matmul": lambda inputs, given, tree, model: replay.matmul(
        inputs[0], inputs[1], tree, model, given.get("out")
    ),
    "oracle.sum": lambda inputs, given, tree, model: replay.sum(
        inputs[0], given.get("axis", -1), tree, model, keepdims=given.get("keepdims", False)
    ),
    "oracle.all_reduce": lambda inputs, given, tree, model: replay.all_reduce(inputs, tree, model),
}
"""The reductions whose bits follow from a declared tree and arithmetic alone."""


def levels(vector: Vector) -> tuple[str, ...]:
    """The levels at which a vector can be judged."""
    if all(not answer.format.is_float for answer in vector.expected):
        return LEVELS
    function = vector.provenance.check.function
    if function in STRICT_ONLY or function.removeprefix("oracle.") not in bounds.ENCLOSED:
        return ("strict",)
    if vector.expected[0].size > MOST_ENCLOSED:
        return ("deterministic", "strict") if function in ROUNDED_ONCE else ("strict",)
    return LEVELS


def judge(impl: Implementation, check: Check, vector: Vector) -> None:
    """Ask the vector's question and hold the answer to the level of the run."""
    outputs = ask(impl, check, vector)
    if impl.level == "strict" or all(not answer.format.is_float for answer in vector.expected):
        for found, expected in zip(outputs, vector.expected, strict=True):
            check.bits(found, expected, "strict: the frozen bits")
    elif impl.level == "deterministic":
        _judge_declared(impl, check, vector, outputs)
    else:
        _judge_bound(impl, check, vector, outputs[0])


def ask(impl: Implementation, check: Check, vector: Vector) -> list[Any]:
    """The outputs, as many as are expected."""
    area, _, method = vector.call.method.partition(".")
    params = {**vector.call.params, "level": impl.level}
    value = check.returns(getattr(getattr(impl, area), method)(**params))
    check.equal(len(value["outputs"]), len(vector.expected), "the number of results")
    return list(value["outputs"])


def _judge_declared(impl: Implementation, check: Check, vector: Vector, outputs: Sequence[Any]) -> None:
    """The declared bits where they follow from the declaration, else the bound; and the same bits again."""
    function = vector.provenance.check.function
    if function in REPLAYED and vector.expected[0].format.words == 1:
        tree, model = declaration(impl, check, vector)
        expected = REPLAYED[function](_inputs(vector), vector.provenance.check.arguments, tree, model)
        check.bits(outputs[0], expected, f"deterministic: the declared tree {_short(tree)}, replayed")
    elif not impl.arithmetic.flushes and _rounds_once(impl, function):
        check.bits(outputs[0], vector.expected[0], "deterministic: one rounding of the exact result")
    else:
        _judge_bound(impl, check, vector, outputs[0])
    for found, again in zip(outputs, ask(impl, check, vector), strict=True):
        check.bits(again, found, "deterministic: the same bits when asked again")


def declaration(impl: Implementation, check: Check, vector: Vector) -> tuple[Tree, NodeArithmetic]:
    """The tree and arithmetic that the implementation declares for a reducing vector's question."""
    operation = vector.provenance.check.function.removeprefix("oracle.")
    inputs = _inputs(vector)
    observation = impl.numerics.declared(
        operation=operation,
        dtype=inputs[0].dtype,
        shapes=[list(each.shape) for each in inputs],
        attributes=dict(vector.provenance.check.arguments),
    )
    if isinstance(observation, Unsupported) and operation in impl.arithmetic.trees:
        return Tree.from_text(impl.arithmetic.trees[operation]), canonical(inputs[0].dtype)
    declared = check.returns(observation, f"the order of {operation} is declared")
    try:
        return Tree.from_json(declared["tree"]), NodeArithmetic.from_json(declared["arithmetic"])
    except (TreeError, ModelError) as error:
        check.true(False, f"the declared order of {operation} can be read: {error}", declared)
        raise


def _rounds_once(impl: Implementation, function: str) -> bool:
    return function in ROUNDED_ONCE or impl.arithmetic.accuracy(function.removeprefix("oracle.")) == 0.5


def _judge_bound(impl: Implementation, check: Check, vector: Vector, found: Any) -> None:
    expected = vector.expected[0]
    form = (found.dtype, found.shape) if isinstance(found, Tensor) else None
    check.equal(form, (expected.dtype, expected.shape), "dtype and shape")
    oracle = vector.provenance.check
    enclosures = bounds.enclose(oracle.function, _inputs(vector), oracle.arguments)
    rules = dict.fromkeys(each.rule for each in enclosures if each is not None)
    check.enclosed(found, enclosures, f"{impl.level}: within the bound ({', '.join(rules) or 'nothing is promised'})")


def _inputs(vector: Vector) -> list[Tensor]:
    return [vector.call.inputs[name] for name in vector.provenance.check.operands]


def _short(tree: Tree) -> str:
    text = tree.to_text()
    return text if len(text) <= 60 else f"{text[:57]}..."
