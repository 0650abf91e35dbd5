"""What an implementation declares of a reducing operation, and the bits that its declaration gives (AMB-LANG-44)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tessera_conformance.arithmetic import NodeArithmetic, Tree, TreeError, canonical, replay
from tessera_conformance.arithmetic.model import ModelError
from tessera_conformance.check import Check
from tessera_conformance.differences import are_nan
from tessera_conformance.observations import Unsupported
from tessera_conformance.oracle.formats import Format, IntegerFormat
from tessera_conformance.session import Implementation
from tessera_conformance.tensors import Tensor
from tessera_conformance.transports import Lacking

LONGEST_TREE = 60
"""Of longer trees only the beginning is shown."""

Replay = Callable[[Sequence[Tensor], Mapping[str, Any], Tree, NodeArithmetic], Tensor]

REPLAYED: Mapping[str, Replay] = {
    "matmul": lambda inputs, given, tree, model: replay.matmul(inputs[0], inputs[1], tree, model, given.get("out")),
    "sum": lambda inputs, given, tree, model: replay.sum(
        inputs[0], given.get("axis", -1), tree, model, keepdims=given.get("keepdims", False)
    ),
    "all_reduce": lambda inputs, given, tree, model: replay.all_reduce(inputs, tree, model),
}
"""The reductions whose bits follow from a declared tree and arithmetic alone."""


@dataclass(frozen=True)
class Question:
    """A reducing operation, its operands and the other arguments."""

    operation: str
    inputs: Sequence[Tensor]
    arguments: Mapping[str, Any]

    @property
    def is_replayed(self) -> bool:
        """Whether a declaration gives its bits; those of complex numbers may come about in several ways."""
        adds = self.operation in REPLAYED and self.arguments.get("op", "sum") == "sum"
        return adds and self.inputs[0].format.words == 1


@dataclass(frozen=True)
class Declaration:
    """In which order an element is reduced, and how a node computes."""

    tree: Tree
    model: NodeArithmetic

    def __str__(self) -> str:
        """The rule, for a verdict."""
        text = self.tree.to_text()
        shown = text if len(text) <= LONGEST_TREE else f"{text[: LONGEST_TREE - 3]}..."
        parts = [f"products {self.model.product}", f"in {self.model.accumulator}"]
        parts += [self.model.rounding] if self.model.is_float else []
        parts += [f"aligned to {self.model.alignment_bits} bits"] if self.model.alignment_bits is not None else []
        parts += ["subnormals flushed"] if self.model.subnormals == "flushed" else []
        parts += ["from the first term"] if self.model.start == "none" else []
        return f"the declared tree {shown} ({', '.join(parts)})"


def judge_declared(impl: Implementation, check: Check, question: Question, found: Any) -> None:
    """The result has the bits that the declaration gives, replayed; elements may be declared to differ in order."""
    declared = declaration(impl, check, question)
    expected = replayed(check, question, declared)
    if isinstance(found, Tensor) and (found.dtype, found.shape) == (expected.dtype, expected.shape):
        expected = _by_element(impl, check, question, found, declared, expected)
    check.bits(found, expected, f"{impl.level}: {declared}, replayed")


def declaration(impl: Implementation, check: Check, question: Question, element: int = 0) -> Declaration:
    """What is declared of one element of the result: by `numerics.declared`, else once and for all in the Hello."""
    operation, dtype = question.operation, question.inputs[0].dtype
    observation = impl.numerics.declared(
        operation=operation,
        dtype=dtype,
        shapes=[list(each.shape) for each in question.inputs],
        attributes=dict(question.arguments),
        element=element,
    )
    try:
        if isinstance(observation, Unsupported) and operation in impl.arithmetic.trees:
            subnormals = "flushed" if impl.arithmetic.flushes else "kept"
            tree = Tree.from_text(impl.arithmetic.trees[operation])
            return Declaration(tree, canonical(dtype).but(subnormals=subnormals))
        if isinstance(observation, Unsupported) and impl.door == "operations":
            raise Lacking(f"the implementation lacks {observation.feature}")
        said = check.returns(observation, f"the order of {operation} is declared")
        declared = Declaration(Tree.from_json(said["tree"]), NodeArithmetic.from_json(said["arithmetic"]))
    except (TreeError, ModelError) as error:
        check.true(False, f"the declared order of {operation} can be read: {error}")
        raise
    _require_wide_accumulator(check, question, declared.model)
    return declared


def _require_wide_accumulator(check: Check, question: Question, model: NodeArithmetic) -> None:
    """Nothing is summed in a narrower accumulator than the canon's (AMB-LANG-137), but over ranks (AMB-LANG-109)."""
    if question.operation == "all_reduce":
        return
    own = canonical(question.inputs[0].dtype)
    check.true(
        _holds(model.format, own.format),
        f"the declared accumulator of {question.operation}, {model.accumulator}, is no narrower than the canon's, "
        f"{own.accumulator}",
    )


def _holds(wide: Format, narrow: Format) -> bool:
    """Whether a format has at least the bits of another one of its kind, field by field."""
    if isinstance(wide, IntegerFormat):
        return isinstance(narrow, IntegerFormat) and wide.bits >= narrow.bits
    if isinstance(narrow, IntegerFormat):
        return False
    return wide.fraction_bits >= narrow.fraction_bits and wide.exponent_bits >= narrow.exponent_bits


def replayed(check: Check, question: Question, declared: Declaration) -> Tensor:
    """The bits of a declaration that fits the question."""
    try:
        replay_of = REPLAYED[question.operation]
        return replay_of(question.inputs, question.arguments, declared.tree, declared.model)
    except (TreeError, replay.ReplayError) as error:
        check.true(False, f"the declared order of {question.operation} fits the operands: {error}")
        raise


def _by_element(
    impl: Implementation, check: Check, question: Question, found: Tensor, first: Declaration, expected: Tensor
) -> Tensor:
    """`expected`, an element that differs replaced by what its own declaration gives.

    Stops at the first element that is declared as element 0 is: that one differs from its declaration.
    """
    words = expected.words().copy()
    known = {first: expected}
    both_nan = are_nan(found) & are_nan(expected)
    for place in np.flatnonzero((found.words() != words) & ~both_nan).tolist():
        own = declaration(impl, check, question, place)
        if own == first:
            break
        if own not in known:
            known[own] = replayed(check, question, own)
        words[place] = known[own].words()[place]
    return Tensor(expected.dtype, expected.shape, words.tobytes())
