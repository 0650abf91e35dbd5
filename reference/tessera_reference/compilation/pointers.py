"""Opaque pointers of kernels of Target IR: what is stored through them, and which dtype lies behind (AMB-LANG-35).

A pointer of Target IR says nothing of what it points to; the accesses do.
"""

from __future__ import annotations

from ..ir.module import Function, Value
from ..ir.types import Pointer
from ..numerics.formats import DTYPES, DType
from ..target.operations.pointers import SHARED, GetElementPtr, Load, Store

__all__ = ["BYTE", "accessed_dtypes", "stored_to"]

BYTE = DTYPES["int8"]
"""What memory holds of which nothing is known."""


def stored_to(kernel: Function) -> set[Value]:
    """The pointer parameters that a kernel may write: all of them where a store goes to what cannot be followed."""
    bases = _bases(kernel)
    pointers = {each for each in kernel.parameters if isinstance(each.type, Pointer)}
    places = [each.operands[1] for each in kernel.body.walk() if isinstance(each.operation, Store)]
    outside = [place for place in places if isinstance(place.type, Pointer) and place.type.space != SHARED]
    if any(place not in bases for place in outside):
        return pointers
    return {bases[place] for place in outside}


def accessed_dtypes(kernel: Function) -> dict[Value, DType]:
    """The dtype that each pointer parameter is accessed as: by its first load or store, else as it is counted in."""
    bases = _bases(kernel)
    found: dict[Value, DType] = {}
    counted: dict[Value, DType] = {}
    for instruction in kernel.body.walk():
        operation = instruction.operation
        if isinstance(operation, Load):
            place, dtype, where = instruction.operands[0], operation.returns.dtype, found
        elif isinstance(operation, Store):
            place, dtype, where = instruction.operands[1], operation.value.dtype, found
        elif isinstance(operation, GetElementPtr):
            place, dtype, where = instruction.operands[0], operation.elem_type, counted
        else:
            continue
        if place in bases:
            where.setdefault(bases[place], dtype)
    return counted | found


def _bases(kernel: Function) -> dict[Value, Value]:
    """The parameter behind each pointer that is a parameter, or so many elements on from one."""
    bases = {each: each for each in kernel.parameters if isinstance(each.type, Pointer)}
    for instruction in kernel.body.walk():
        if isinstance(instruction.operation, GetElementPtr) and instruction.operands[0] in bases:
            bases[instruction.results[0]] = bases[instruction.operands[0]]
    return bases
