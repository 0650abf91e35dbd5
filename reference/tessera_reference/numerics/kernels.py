"""Loops compiled for this machine by LLVM, where llvmlite is installed; each is beside its definition in numpy.

Compiling takes a twentieth of a second, once in a process; nothing is kept on disk. No instruction has fast-math flags,
so that each is rounded as written. TESSERA_PLAIN_NUMERICS=1 disables it. Elementary functions are not written twice:
`compiled_elements` makes the loop from the definition in numpy.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from math import prod
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Values: TypeAlias = npt.NDArray[Any]
Number = TypeVar("Number", bound=np.generic)


def wanted() -> bool:
    """True unless the environment requests the definitions alone."""
    return os.environ.get("TESSERA_PLAIN_NUMERICS", "") in ("", "0")


def compile_loops(name: str, instructions: Callable[[Any], Any]) -> tuple[int, Any] | None:
    """Return the address of a compiled function, and its engine; `instructions` makes its module of `llvmlite.ir`.

    The code lives as long as the engine. Return None without llvmlite.
    """
    try:
        llvm, ir = (importlib.import_module(f"llvmlite.{part}") for part in ("binding", "ir"))
    except ImportError:
        return None
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    names = features.flatten() + (",-prefer-256-bit" if features.get("avx512f") else "")  # whole registers
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=names, opt=3, jit=True
    )
    module = llvm.parse_assembly(str(instructions(ir)))
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine.get_function_address(name), engine


@contextmanager
def loop(build: Any, first: Any, end: Any, step: int) -> Iterator[Any]:
    """Build instructions that run for an index from `first` to below `end`."""
    before, (head, body, after) = build.block, (build.append_basic_block() for _ in range(3))
    build.branch(head)
    build.position_at_end(head)
    index = build.phi(first.type)
    index.add_incoming(first, before)
    build.cbranch(build.icmp_signed("<", index, end), body, after)
    build.position_at_end(body)
    yield index
    index.add_incoming(build.add(index, first.type(step)), build.block)
    build.branch(head)
    build.position_at_end(after)


# A definition in numpy as a loop over its elements: it runs once on an element that turns operations into instructions.


_WORTHWHILE = {np.dtype(np.float32): 1 << 21, np.dtype(np.float64): 1 << 19}
"""The number of elements from which a process compiles a function: numpy takes as long for them as compiling."""

_elements: Counter[Callable[..., Any]] = Counter()
"""The number of elements requested so far in this process, by function."""


def compiled_elements(function: Callable[..., Any], operands: Sequence[Values]) -> Callable[..., Any] | None:
    """Return the function compiled for operands of one float type; None while that is not worthwhile, or impossible.

    The function takes arrays and returns a result of their type and a mask, by operations of numpy on elements alone.
    """
    _elements[function] += operands[0].size
    worthwhile = wanted() and _elements[function] >= _WORTHWHILE[operands[0].dtype]
    return _compiled_elements(function, len(operands), operands[0].dtype) if worthwhile else None


@cache
def _compiled_elements(function: Callable[..., Any], count: int, kind: Any) -> Callable[..., Any] | None:
    columns: list[Values] = [np.empty(0, np.int64)]
    compiled = compile_loops("elements", lambda ir: _element_instructions(ir, function, count, kind, columns))
    if compiled is None:
        return None
    address, engine = compiled
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 3), ctypes.c_int64)(address)
    table = np.concatenate([column.view(np.int64) for column in columns])

    def loops(*operands: Values, result: Values, mask: Values, _code: Any = engine) -> None:
        call(*(array.ctypes.data for array in (*operands, result, mask, table)), result.size)

    return loops


def _element_instructions(ir: Any, function: Callable[..., Any], count: int, kind: Any, columns: list[Values]) -> Any:
    """Return the module with elements(operand..., result, mask, table, size); the table is made of `columns`."""
    byte, whole = ir.IntType(8), ir.IntType(64)
    types = dict(zip(_KINDS, (ir.IntType(1), whole, whole, ir.FloatType(), ir.DoubleType()), strict=True))
    module = ir.Module()
    pointers = [types[kind].as_pointer()] * (count + 1) + [byte.as_pointer(), whole.as_pointer()]
    code = ir.Function(module, ir.FunctionType(ir.VoidType(), [*pointers, whole]), "elements")
    for pointer in code.args[:-1]:
        pointer.add_attribute("noalias")
    *operands, result, mask, table, size = code.args
    build = ir.IRBuilder(code.append_basic_block())
    with loop(build, whole(0), size, 1) as i:
        trace = _Trace(ir, build, types, table, columns)
        value, certain = function(*(_Element(trace, kind, build.load(build.gep(x, [i]))) for x in operands))
        build.store(value.value, build.gep(result, [i]))
        build.store(build.zext(certain.value, byte), build.gep(mask, [i]))
    build.ret_void()
    return module


def take(column: npt.NDArray[Number], places: Any) -> npt.NDArray[Number]:
    """Return the elements of a column at these places."""
    elements: npt.NDArray[Number] = places.taken(column) if isinstance(places, _Element) else column.take(places)
    return elements


_KINDS = [np.dtype(kind) for kind in (np.bool_, np.int64, np.uint64, np.float32, np.float64)]
"""The types of elements; operands of different types are converted to the later one."""

_INSTRUCTIONS = {
    "b": {"bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor", "invert": "not_"},
    "i": {"add": "add", "subtract": "sub", "multiply": "mul", "left_shift": "shl", "right_shift": "ashr"},
    "f": {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv", "negative": "fneg"},
}
_INSTRUCTIONS["i"] |= {"negative": "neg", **_INSTRUCTIONS["b"]}
_INSTRUCTIONS["u"] = {**_INSTRUCTIONS["i"], "right_shift": "lshr"}
_INTRINSICS = {"absolute": "fabs", "rint": "rint", "sqrt": "sqrt", "copysign": "copysign"}
_COMPARISONS = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
_CONVERSIONS = {"if": "sitofp", "uf": "uitofp", "fi": "fptosi", "fu": "fptoui"}


class _Trace(NamedTuple):
    """The loop that an element belongs to."""

    ir: Any
    build: Any
    types: dict[Any, Any]
    table: Any
    columns: list[Values]


class _Element(np.lib.mixins.NDArrayOperatorsMixin):
    """An element of an array. `all` and `any` answer for other elements too, so that a branch omits none."""

    def __init__(self, trace: _Trace, dtype: Any, value: Any) -> None:
        self.trace, self.dtype, self.value = trace, dtype, value

    def __array_ufunc__(self, operation: Any, _method: str, *operands: Any) -> Any:
        return self._operation(operation.__name__, *operands)

    def __array_function__(self, function: Any, _types: Any, operands: Any, _keywords: Any) -> Any:
        if function is not np.where:
            return self._operation(function.__name__, *operands)
        kind, choices = self._meeting(operands[1:])
        return _Element(self.trace, kind, self.trace.build.select(operands[0].value, *choices))

    def _operation(self, name: str, *operands: Any) -> Any:
        if name in _COMPOSED:
            return _COMPOSED[name](*operands)
        build, (kind, values) = self.trace.build, self._meeting(operands)
        if name in _COMPARISONS:
            order = {"f": "fcmp_ordered", "u": "icmp_unsigned"}.get(kind.kind, "icmp_signed")
            compare = getattr(build, "fcmp_unordered" if (name, kind.kind) == ("not_equal", "f") else order)
            return _Element(self.trace, _KINDS[0], compare(_COMPARISONS[name], *values))
        if name in _INTRINSICS:
            of_type = self.trace.types[kind]
            signature = self.trace.ir.FunctionType(of_type, [of_type] * len(values))
            intrinsic = build.module.declare_intrinsic(f"llvm.{_INTRINSICS[name]}", [of_type], signature)
            return _Element(self.trace, kind, build.call(intrinsic, values))
        return _Element(self.trace, kind, getattr(build, _INSTRUCTIONS[kind.kind][name])(*values))

    def _meeting(self, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return the common type of operands, and their values in it; Python's numbers are int64 or float64."""
        elements = [operand if isinstance(operand, _Element) else np.asarray(operand) for operand in operands]
        kind = max((element.dtype for element in elements), key=_KINDS.index)
        convert: Any = float if kind.kind == "f" else int
        return kind, [
            x.astype(kind).value if isinstance(x, _Element) else self.trace.types[kind](convert(x)) for x in elements
        ]

    def taken(self, column: Values) -> Any:
        _, build, _, table, columns = self.trace
        if not any(column is other for other in columns):
            columns.append(column)
        offset = sum(other.size for other in takewhile(lambda other: other is not column, columns))
        code = build.load(build.gep(table, [(self + offset).value]))
        return _Element(self.trace, np.dtype(np.int64), code).view(column.dtype)

    def astype(self, dtype: Any) -> _Element:
        kind = np.dtype(dtype)
        if self.dtype == kind or (self.dtype.kind in "iu" and kind.kind in "iu"):
            return _Element(self.trace, kind, self.value)
        wider = "fpext" if kind.itemsize == 8 else "fptrunc"
        convert = getattr(self.trace.build, _CONVERSIONS.get(self.dtype.kind + kind.kind, wider))
        return _Element(self.trace, kind, convert(self.value, self.trace.types[kind]))

    def view(self, dtype: Any) -> _Element:
        kind = np.dtype(dtype)
        return _Element(self.trace, kind, self.trace.build.bitcast(self.value, self.trace.types[kind]))

    def all(self) -> bool:
        return False

    def any(self) -> bool:
        return True


def _frexp(x: Any) -> tuple[Any, Any]:
    small, fixed = np.abs(x) < 2.0**-1022, (x == 0.0) | ~(np.abs(x) < np.inf)
    code = np.where(small, x * 2.0**54, x).view(np.int64)
    exponent = ((code >> 52) & 2047) - np.where(small, 1076, 1022)
    fraction = ((code & ~(2047 << 52)) | (1022 << 52)).view(np.float64)
    return np.where(fixed, x, fraction), np.where(fixed, 0, exponent)


def _ldexp(x: Any, exponent: Any) -> Any:
    """Scale in two steps, of which the first is exact unless x is tiny already and the exponent below -1."""
    half = exponent >> 1
    return x * ((half + 1023) << 52).view(np.float64) * ((exponent - half + 1023) << 52).view(np.float64)


_COMPOSED: dict[str, Callable[..., Any]] = {
    "isnan": lambda x: x != x,
    "isfinite": lambda x: np.abs(x) < np.inf,
    "signbit": lambda x: x.view(np.int64) < 0,
    "maximum": lambda a, b: np.where(a > b, a, b),  # integers
    "minimum": lambda a, b: np.where(a < b, a, b),  # integers
    "frexp": _frexp,
    "ldexp": _ldexp,
}


# The left fold of matmul, with the bits of the plain fold in numpy, which stays its definition.
#
# Every product and every sum is an instruction of its own, so that each is rounded as written.


Fold: TypeAlias = Callable[[Values, Values, Values], None]

_CARRIERS = frozenset(np.dtype(name) for name in ("float32", "float64", "int32", "int64"))

_WORTHWHILE_PRODUCTS = 1 << 22
"""The number of products from which a process compiles the kernel: the plain fold takes as long as compiling."""

_WIDTH, _HEIGHT, _DEPTH = 512, 128, 8
"""The columns and rows of the result, and the terms, handled at once: a panel of B stays in the first cache, and the
block of the result in the second. A row of the block is read and written once for all terms of a panel, in order."""

_products = 0
"""The number of products requested so far in this process."""


def left_fold_product(a: Values, b: Values, start: Values) -> Values | None:
    """Return ((start + a[0] b[0]) + a[1] b[1]) + ... over ascending k, every product and every sum rounded.

    `a` is (..., M, K), `b` (..., K, N), `start` and the result (..., M, N), all of one accumulator's carrier. Return
    None where the compiled fold is not available: llvmlite is missing or unwanted, the carrier is complex, or the
    products of this process are too few.
    """
    global _products
    if a.dtype not in _CARRIERS or not wanted():
        return None
    _products += start.size * a.shape[-1]
    if _products < _WORTHWHILE_PRODUCTS:
        return None
    compiled = _compiled_fold(a.dtype)
    if compiled is None:
        return None
    matrices = prod(start.shape[:-2])
    total = np.array(start, order="C").reshape(matrices, *start.shape[-2:])
    left = np.ascontiguousarray(a).reshape(matrices, *a.shape[-2:])
    right = np.ascontiguousarray(b).reshape(matrices, *b.shape[-2:])
    compiled(left, right, total)
    return total.reshape(start.shape)


@cache
def _compiled_fold(carrier: np.dtype[Any]) -> Fold | None:
    """Compile the fold; None without llvmlite, or if a check shows that products are not rounded."""
    compiled = compile_loops("fold", lambda ir: _fold_instructions(ir, carrier))
    if compiled is None:
        return None
    address, engine = compiled
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, *[ctypes.c_int64] * 4)(address)

    def fold(left: Values, right: Values, total: Values, _code: Any = engine) -> None:
        panel = np.empty(_DEPTH * _WIDTH, carrier)
        call(*(array.ctypes.data for array in (total, left, right, panel)), *left.shape, right.shape[2])

    return fold if carrier.kind == "i" or _rounds_products(fold, carrier) else None


def _fold_instructions(ir: Any, carrier: np.dtype[Any]) -> Any:
    """Return the module with fold(total, left, right, panel, matrices, M, K, N).

    It adds the products of (matrices, M, K) and (matrices, K, N) onto `total`, (matrices, M, N), k ascending.
    """
    whole = ir.IntType(64)
    element = {"float32": ir.FloatType(), "float64": ir.DoubleType()}.get(
        carrier.name, ir.IntType(8 * carrier.itemsize)
    )
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [element.as_pointer()] * 4 + [whole] * 4), "fold")
    for pointer in function.args[:4]:
        pointer.add_attribute("noalias")
    bases, (matrices, rows, terms, columns) = function.args[:4], function.args[4:]
    build = ir.IRBuilder(function.append_basic_block())
    add, multiply = (build.fadd, build.fmul) if carrier.kind == "f" else (build.add, build.mul)

    def smaller(a: Any, b: Any) -> Any:
        return build.select(build.icmp_signed("<", a, b), a, b)

    zero = whole(0)
    whole_panels = build.and_(terms, whole(-_DEPTH))
    with loop(build, zero, matrices, 1) as matrix:
        sizes = ((rows, columns), (rows, terms), (terms, columns))
        total, left, right = (
            build.gep(base, [build.mul(matrix, build.mul(*size))]) for base, size in zip(bases, sizes, strict=False)
        )
        panels = [build.gep(bases[3], [whole(i * _WIDTH)]) for i in range(_DEPTH)]
        with loop(build, zero, columns, _WIDTH) as column:
            width = smaller(whole(_WIDTH), build.sub(columns, column))
            with loop(build, zero, rows, _HEIGHT) as top:
                bottom = smaller(rows, build.add(top, whole(_HEIGHT)))
                for first, end, depth in ((zero, whole_panels, _DEPTH), (whole_panels, terms, 1)):
                    with loop(build, first, end, depth) as k:
                        with loop(build, zero, whole(depth), 1) as i:
                            source = build.gep(right, [build.add(build.mul(build.add(k, i), columns), column)])
                            panel = build.gep(bases[3], [build.mul(i, whole(_WIDTH))])
                            with loop(build, zero, width, 1) as j:
                                build.store(build.load(build.gep(source, [j])), build.gep(panel, [j]))
                        with loop(build, top, bottom, 1) as row:
                            factor = build.gep(left, [build.add(build.mul(row, terms), k)])
                            factors = [build.load(build.gep(factor, [whole(i)])) for i in range(depth)]
                            target = build.gep(total, [build.add(build.mul(row, columns), column)])
                            with loop(build, zero, width, 1) as j:
                                place = build.gep(target, [j])
                                accumulator = build.load(place)
                                for panel, a_k in zip(panels, factors, strict=False):
                                    accumulator = add(accumulator, multiply(a_k, build.load(build.gep(panel, [j]))))
                                build.store(accumulator, place)
    build.ret_void()
    return module


def _rounds_products(fold: Fold, carrier: np.dtype[Any]) -> bool:
    """True if (1 + e)**2 - (1 + 2e) is 0, as it is when the product is rounded; a fused multiply-add gives e**2."""
    e = 2.0 ** -(12 if carrier == np.float32 else 27)
    for terms in (1, _DEPTH):  # only the last product is not 0
        factors = np.zeros((1, 1, terms), carrier)
        factors[..., -1] = 1 + e
        total = np.full((1, 1, 64), -(1 + 2 * e), carrier)
        fold(factors, np.full((1, terms, 64), 1 + e, carrier), total)
        if total.any():
            return False
    return True
