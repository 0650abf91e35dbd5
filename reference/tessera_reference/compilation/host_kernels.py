"""A kernel made of a function, so that a host can launch it (runtime spec 4.5; RT-02-01)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir.diagnostics import Rejection
from ..ir.module import Block, Function, Module, Value
from ..ir.types import Tensor, Type
from ..ir.verifier import verify
from .refusals import refusal_at

__all__ = ["as_kernel"]


def as_kernel(module: Module, function: Function) -> tuple[Module, Function]:
    """The module in which a function is a kernel that takes a tensor more for each result: r0, r1, ...

    A kernel stays as it is. Raises `Rejection` for results that are no tensors, and for a function that returns from
    within a branch or loop.
    """
    if function.kernel:
        return module, function
    others = [each for each in function.results if not isinstance(each, Tensor)]
    if others or any(block.exit == "return" for block in _inner(function.body)):
        problem = f"a result is {others[0]}" if others else "it returns from within a branch or loop"
        message = f"@{function.name} cannot be made a kernel: {problem}"
        remedy = "declare what the host launches as kernel, not as func"
        raise Rejection(
            [refusal_at(function.location, "types", message, "results that are tensors", "RT-02-01", remedy)]
        )
    made = _kernel(function)
    with_kernel = replace(module, functions={**module.functions, function.name: made})
    verify(with_kernel)
    return with_kernel, made


def _kernel(function: Function) -> Function:
    """A function whose results are left in parameters."""
    names = {each.name for each in function.parameters}
    outputs = tuple(Value(_free(f"r{place}", names), type_) for place, type_ in enumerate(function.results))
    tensors = tuple(each for each in function.parameters if isinstance(each.type, Tensor))
    results = (*tensors, *function.body.results)
    body = replace(function.body, arguments=(*function.parameters, *outputs), results=results)
    types: tuple[Type, ...] = tuple(each.type for each in (*tensors, *outputs))
    return replace(function, body=body, results=types, kernel=True)


def _free(name: str, taken: set[str]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)


def _inner(block: Block) -> Iterator[Block]:
    """The blocks within a block."""
    for instruction in block.walk():
        yield from instruction.regions
