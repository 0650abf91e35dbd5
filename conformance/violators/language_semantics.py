"""Implementations that break one rule of types, shapes, layouts, Graph IR, profiles or evaluation."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from tessera_conformance.strength import Violation, replaced, violates
from tessera_reference.adapter import ReferenceAdapter, make, outcomes
from tessera_reference.adapter import language as adapter
from tessera_reference.graph import binding, elementwise
from tessera_reference.graph.constant import Constant
from tessera_reference.graph.machine import Machine
from tessera_reference.graph.matmul import MatMul
from tessera_reference.graph.softmax import Softmax
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import ROW_MAJOR, Tensor
from tessera_reference.language import (
    annotations,
    common_attributes,
    expressions,
    function_calls,
    literals,
    lower,
    scope,
)
from tessera_reference.numerics import arithmetic
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.numerics.trees import pairwise

# Operators that compute something else


def operator(name: str, number: int, description: str, owner: type, compute: Callable[..., Any]) -> Violation:
    """An elementwise operator that computes something else."""
    substitution = (owner, "compute", staticmethod(compute))
    return replaced(f"LANG-02.3-{number}", description, make, substitution, name=name)


OPERATORS = [
    operator("plus", 61, "takes + for -", elementwise.Add, arithmetic.subtract),
    operator("minus", 62, "subtracts the left operand", elementwise.Subtract, lambda a, b: arithmetic.subtract(b, a)),
    operator("times", 63, "takes * for +", elementwise.Multiply, arithmetic.add),
    operator("over", 64, "divides by the left operand", elementwise.Divide, lambda a, b: arithmetic.divide(b, a)),
    operator("equal", 66, "takes == for >=", elementwise.Equal, arithmetic.greater_equal),
    operator("not_equal", 67, "takes != for <", elementwise.NotEqual, arithmetic.less),
    operator("less", 68, "takes < for <=", elementwise.Less, arithmetic.less_equal),
    operator("greater", 69, "takes > for >=", elementwise.Greater, arithmetic.greater_equal),
    operator("less_equal", 70, "takes <= for <", elementwise.LessEqual, arithmetic.less),
    operator("greater_equal", 71, "takes >= for >", elementwise.GreaterEqual, arithmetic.greater),
]


# Names, dtypes and literals


def _zero_for_unknown(self: expressions.Expressions, name: Any, wanted: Any) -> Any:
    if self.scope.find(name.text) or name.text in self.around.constants:
        return _name(self, name, wanted)
    return self._one(self.scope.emit(Constant(value=0, dtype=dtype("int32")), (), name.span))


def _same_but_for_dtype(wanted: Any, given: Any, dims: Any) -> Any:
    return None if wanted.dtype != given.dtype else _mismatch(wanted, given, dims)


def _through_fp32(text: str) -> Fraction:
    return Fraction(struct.unpack("<f", struct.pack("<f", float(_exact(text))))[0])


_name, _mismatch, _exact = expressions.Expressions._name, scope._mismatch, literals.exact

unknown_names = replaced(
    "LANG-03.1-01",
    "takes an unknown name for zero",
    make,
    (expressions.Expressions, "_name", _zero_for_unknown),
)
implicit_casts = replaced(
    "LANG-03.1-05",
    "takes a value of any dtype where a type is declared",
    make,
    (scope, "_mismatch", _same_but_for_dtype),
)
unknown_dtypes = replaced(
    "LANG-02.3-38",
    "takes an unknown dtype for fp32",
    make,
    (annotations, "resolve_dtype", lambda name: DTYPES.get(name, DTYPES["fp32"])),
)
literals_through_fp32 = replaced(
    "LANG-02.3-72",
    "rounds every float literal to fp32 first",
    make,
    (literals, "exact", _through_fp32),
)


# Shapes


def forgiving(
    name: str, clause: str, description: str, owner: type, checks: str, instead: Callable[..., Any]
) -> Violation:
    """An operation whose type is `instead` where it should refuse by the clause `checks`."""
    infer = owner.infer

    def lenient(self: Any) -> Any:
        try:
            return infer(self)
        except Refusal as refusal:
            if refusal.clause != checks:
                raise
            return instead(self, refusal)

    return replaced(clause, description, make, (owner, "infer", lenient), name=name)


def changed(name: str, clause: str, description: str, owner: type, change: Callable[..., Any]) -> Violation:
    """An operation whose result type is changed."""
    infer = owner.infer
    return replaced(clause, description, make, (owner, "infer", lambda self: change(self, infer(self))), name=name)


def _product(self: MatMul, refusal: Refusal) -> Tensor:
    return Tensor((*self.a.shape[:-1], self.b.shape[-1]), self.a.dtype, self.a.layout)


def _product_stretching_ones(self: MatMul, refusal: Refusal) -> Tensor:
    if 1 not in (self.a.shape[-1], self.b.shape[-2]):
        raise refusal
    return _product(self, refusal)


def _batched_product(self: MatMul, refusal: Refusal) -> Tensor:
    batch = max(self.a.shape[:-2], self.b.shape[:-2], key=lambda shape: (len(shape), shape))
    return Tensor((*batch, self.a.shape[-2], self.b.shape[-1]), self.a.dtype, self.a.layout)


def _one_matrix_for_all(self: MatMul, refusal: Refusal) -> Tensor:
    if self.b.rank != 2:
        raise refusal
    return _batched_product(self, refusal)


SHAPES = [
    forgiving(
        "inner_dimensions",
        "LANG-05.4-01",
        "does not compare the inner dimensions of a product",
        MatMul,
        "LANG-05.4-01",
        _product,
    ),
    forgiving(
        "inner_ones",
        "LANG-15-01",
        "stretches an inner dimension of one",
        MatMul,
        "LANG-05.4-01",
        _product_stretching_ones,
    ),
    forgiving(
        "batches",
        "LANG-03.2-03",
        "broadcasts the batch dimensions of a product",
        MatMul,
        "LANG-03.2-03",
        _batched_product,
    ),
    forgiving(
        "one_matrix",
        "LANG-11-04",
        "multiplies every matrix of a batch by one matrix",
        MatMul,
        "LANG-03.2-03",
        _one_matrix_for_all,
    ),
    forgiving(
        "axis",
        "LANG-05.4-02",
        "does not look at the axis of a softmax",
        Softmax,
        "LANG-05.4-02",
        lambda self, refusal: self.x,
    ),
    replaced(
        "LANG-03.2-01",
        "takes the left shape where elementwise operands do not fit",
        make,
        (elementwise, "broadcast", lambda a, b: a or b),
        name="elementwise",
    ),
    replaced(
        "LANG-11-03",
        "takes the longer dimension where elementwise operands differ",
        make,
        (elementwise, "broadcast", lambda a, b: tuple(map(max, a, b)) if a and b else a or b),
        name="longer_dimension",
    ),
    changed(
        "transposed_product",
        "LANG-15-15",
        "swaps the dimensions of a product",
        MatMul,
        lambda self, type_: replace(type_, shape=(*type_.shape[:-2], type_.shape[-1], type_.shape[-2])),
    ),
    changed(
        "wide_product",
        "LANG-05.2-02",
        "leaves a product in the accumulator type",
        MatMul,
        lambda self, type_: replace(type_, dtype=type_.dtype.accumulator),
    ),
    changed(
        "wide_softmax",
        "LANG-05.2-03",
        "leaves a softmax in the accumulator type",
        Softmax,
        lambda self, type_: replace(type_, dtype=type_.dtype.accumulator),
    ),
    changed(
        "right_layout",
        "LANG-15-03",
        "gives a product the layout of its right operand",
        MatMul,
        lambda self, type_: replace(type_, layout=self.b.layout),
    ),
]


def _casts_first(self: MatMul) -> Tensor:
    if self.a.dtype == dtype("bf16"):
        raise Refusal("types", "bf16 operands do not accumulate in fp32", "fp32 operands", "LANG-03.1-06", "cast both")
    return _infer_product(self)


_infer_product = MatMul.infer

cast_before_accumulation = replaced(
    "LANG-03.1-06", "wants bf16 operands cast before a product", make, (MatMul, "infer", _casts_first)
)


def _bind_by_rank(function: Any, parameter: Any, array: Any, bound: dict[str, Any]) -> None:
    if array.dtype != parameter.type.dtype or len(array.shape) != len(parameter.type.shape):
        raise binding.InputMismatch(parameter.name, str(parameter.type), binding.describe(array))


sizes_of_names = replaced(
    "LANG-03.1-03", "does not compare sizes of equal names", make, (binding, "_bind_one", _bind_by_rank)
)


# Layouts


def _row_major_if_unknown(spec: Any) -> Any:
    try:
        return _resolve_layout(spec)
    except Refusal:
        return ROW_MAJOR


def _mismatch_of_rest(wanted: Any, given: Any, dims: Any) -> Any:
    problem = _mismatch(wanted, given, dims)
    return None if problem and problem[0] == "layouts" else problem


_resolve_layout, _tensor_text = annotations.resolve_layout, Tensor.__str__

lost_layouts = replaced(
    "LANG-03.3-01", "forgets the layout of a tensor", make, (annotations, "resolve_layout", lambda spec: ROW_MAJOR)
)
lost_blocks = replaced(
    "LANG-05.3-03",
    "takes every layout with parameters for row_major",
    make,
    (annotations, "resolve_layout", lambda spec: ROW_MAJOR if spec.parameters else _resolve_layout(spec)),
)
unknown_layouts = replaced(
    "LANG-15-02",
    "takes an unknown layout for row_major",
    make,
    (annotations, "resolve_layout", _row_major_if_unknown),
)
silent_casts = replaced(
    "LANG-03.3-02",
    "changes a layout silently where a type is declared",
    make,
    (scope, "_mismatch", _mismatch_of_rest),
)
types_without_layout = replaced(
    "LANG-05.1-01",
    "does not show the layout in a tensor type",
    make,
    (Tensor, "__str__", lambda self: _tensor_text(replace(self, layout=ROW_MAJOR))),
)


# Graph IR as it is shown


def shown(name: str, clause: str, description: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Violation:
    """A lowering whose operations are shown changed."""
    show = adapter._operation
    return replaced(clause, description, make, (adapter, "_operation", lambda each: change(show(each))), name=name)


def _renamed(operation: dict[str, Any]) -> dict[str, Any]:
    return operation | {"results": ["%0" for _ in operation["results"]]}


def _without_accumulator(operation: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in operation["attributes"].items() if name != "accum"}
    return operation | {"attributes": kept}


def _backwards(function: Any) -> dict[str, Any]:
    text = _show_function(function)
    return text | {"operations": text["operations"][::-1]}


_show_function = adapter._function

SHOWN = [
    shown("one_name", "LANG-01-03", "calls every value %0", _renamed),
    shown("no_attributes", "LANG-01-07", "shows no attributes", lambda operation: operation | {"attributes": {}}),
    shown("no_accumulator", "LANG-10-01", "does not state the accumulator", _without_accumulator),
    replaced(
        "LANG-05-01", "shows operations last to first", make, (adapter, "_function", _backwards), name="backwards"
    ),
]


@violates("LANG-02-01", "lowers only the first function")
class FirstFunctionOnly(ReferenceAdapter):
    """Loses the other functions of the module."""

    def language_lower(self, *, source: str, to: str) -> dict[str, Any]:
        """The IR of the first function."""
        lowered = super().language_lower(source=source, to=to)
        return lowered | {"functions": lowered["functions"][:1]}


# Diagnostics


def told(name: str, clause: str, description: str, **changes: Any) -> Violation:
    """Diagnostics that leave something out."""
    tell = outcomes.diagnostic
    substitutions = [
        (owner, "diagnostic", lambda entry: replace(tell(entry), **changes)) for owner in (outcomes, adapter)
    ]
    return replaced(clause, description, make, *substitutions, name=name)


DIAGNOSTICS = [
    told("no_location", "LANG-12-01", "names no line", line=None),
    told("first_line", "LANG-12-01", "names line 1 for everything", line=1),
    told("no_shapes", "LANG-12-02", "names no operands", message="the operands do not fit", operands=()),
    told("no_remedy", "LANG-12-03", "suggests no remedy", remedy=None),
]


# Profiles


def profiles(name: str, clause: str, description: str, *known: str) -> Violation:
    """A front end that knows other numerics profiles."""
    return replaced(
        clause, description, make, (common_attributes, "PROFILES", known), (lower, "PROFILES", known), name=name
    )


PROFILES = [
    profiles("faster", "LANG-10-04", "knows a profile called faster", "faster", "fast", "deterministic", "strict"),
    replaced(
        "LANG-11-16",
        "lets a strict function call a fast one",
        make,
        (function_calls, "_check_profiles", lambda module, expressions, call, name: None),
        name="looser_callee",
    ),
    profiles("no_fast", "LANG-10-08", "does not know the profile fast", "deterministic", "strict"),
    profiles("no_deterministic", "LANG-10-09", "does not know the profile deterministic", "fast", "strict"),
    profiles("no_strict", "LANG-10-10", "does not know the profile strict", "fast", "deterministic"),
    replaced(
        "LANG-11-13",
        "takes an accumulator that is narrower than the profile allows",
        make,
        (scope, "refuse_narrow_accumulation", lambda operation, profile: None),
        name="narrow_accumulation",
    ),
]


@violates("LANG-04-04", "lets the profile of the run win over the function's")
class ProfileOfTheRun(ReferenceAdapter):
    """Adds in another order in a run that is not strict, whatever the function says."""

    def language_execute(self, *, level: str = "strict", **request: Any) -> dict[str, Any]:
        """The results, along a tree unless the run is strict."""
        execute = MatMul.execute if level == "strict" else _along_a_tree
        with mock.patch.object(MatMul, "execute", execute):
            return super().language_execute(level=level, **request)


def _along_a_tree(self: MatMul, a: Array, b: Array, env: Any) -> Array:
    terms = a.values[..., :, None, :] * np.moveaxis(b.values, -1, -2)[..., None, :, :]
    return Array(a.dtype, pairwise(terms, -1))


# Evaluation


@violates("LANG-04-01", "gives the results of the first call for every input")
class Remembering(ReferenceAdapter):
    """Keeps results by program instead of by program and inputs."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def language_execute(self, *, source: str, function: str, **request: Any) -> dict[str, Any]:
        """The results of the first call of this function."""
        if (source, function) not in self._known:
            self._known[source, function] = super().language_execute(source=source, function=function, **request)
        return self._known[source, function]


def _drifting_softmax(self: Softmax, x: Any, env: Any) -> Any:
    _calls.append(x)
    result = _softmax(self, x, env)
    return result if len(_calls) % 2 else arithmetic.negate(result)


_calls: list[Any] = []
_softmax = Softmax.execute

drifting_softmax = replaced(
    "LANG-02.3-55", "negates every second softmax", make, (Softmax, "execute", _drifting_softmax)
)


def _last_to_first(self: Machine, block: Any, arguments: Any, frame: Any) -> Any:
    """Runs each operation before those that it takes values from, on zeros where the values are not there yet."""
    frame.update((value, _nothing_yet(value)) for each in block.instructions for value in each.results)
    return _block(self, replace(block, instructions=block.instructions[::-1]), arguments, frame)


def _nothing_yet(value: Any) -> Array:
    extents = [extent if isinstance(extent, int) else 1 for extent in getattr(value.type, "shape", ())]
    return Array(value.type.dtype, np.zeros(extents, value.type.dtype.carrier))


def _over_the_operand(self: Machine, block: Any, arguments: Any, frame: Any) -> Any:
    """Runs the block in one instruction at a time, so that each result can be written over its first operand."""
    frame.update(zip(block.arguments, arguments, strict=True))
    for instruction in block.instructions:
        single = replace(block, arguments=(), instructions=(instruction,), results=(), exit="yield")
        yield from _block(self, single, (), frame)
        frame.update((a, frame[b]) for a, b in zip(instruction.operands[:1], instruction.results, strict=False))
    return (yield from _block(self, replace(block, arguments=(), instructions=()), (), frame))


_block = Machine.block

last_to_first = replaced("LANG-04-03", "runs operations last to first", make, (Machine, "block", _last_to_first))

over_the_operand = replaced(
    "LANG-04-02",
    "writes the result of an operation over its first operand",
    make,
    (Machine, "block", _over_the_operand),
)
