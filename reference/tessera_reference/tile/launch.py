"""`tessera.tile.launch`: a host function runs a grid of blocks and gets what they wrote (spec section 8.1)."""

from __future__ import annotations

from typing import Any, Protocol

from ..ir.module import Module
from ..ir.operation import (
    Attribute,
    Environment,
    Hidden,
    Operands,
    Operation,
    Refusal,
    Shown,
    Signature,
    operation,
    require,
)
from ..ir.spelling import did_you_mean
from ..ir.targets import target_of
from ..ir.types import LAYOUTS, Memref, Numeric, Pointer, Scalar, Tensor, Type
from ..numerics.array import Array
from .interpreter import Uninitialised, run_kernel


class LaunchEnvironment(Environment, Protocol):
    """What a launch needs of its environment beyond what every operation does."""

    @property
    def module(self) -> Module:
        """The module that is being run, which holds the kernel."""


@operation("tessera.tile.launch", clauses=("LANG-08.1-01", "LANG-08.2-03"))
class Launch(Operation):
    """Runs `kernel` on the arguments: buffers in the order of its parameters, then scalars.

    The last buffers of the kernel, as many as there are results, are allocated here uninitialised, and are the results.
    """

    arguments: Operands[Tensor | Scalar]
    kernel: Attribute[str]
    returns: Hidden[tuple[Type, ...]]

    layouts = frozenset(LAYOUTS)
    calls = "kernel"

    def infer(self) -> tuple[Type, ...]:
        """The stated result types, checked against the kernel."""
        return self.returns

    @classmethod
    def hidden(cls, shown: Shown) -> dict[str, Any]:
        """The results are what the kernel's last buffers hold; the arguments are the other parameters'."""
        name = str(shown.attributes.get("kernel"))
        kernel = shown.functions.get(name)
        if kernel is None or not kernel.device:
            known = [each for each, function in shown.functions.items() if function.device]
            remedy = did_you_mean(name, known, "@{}")
            raise Refusal("types", f"there is no kernel @{name}", "a kernel of this module", "LANG-05-03", remedy)
        buffers = _buffers(kernel)
        count = len(kernel.parameters) - len(shown.operands)
        require(
            0 <= count <= len(buffers),
            "types",
            f"{len(shown.operands)} arguments given",
            f"those of @{name}: buffers but the ones it returns, then scalars",
            "LANG-16-02",
        )
        taken = buffers[: len(buffers) - count] + [each.type for each in kernel.parameters[len(buffers) :]]
        for given, wanted in zip(shown.operands, taken, strict=True):
            require(_passes(given, wanted), "types", f"an argument is {given}", f"what fits {wanted}", "LANG-08.1-01")
        made = buffers[len(buffers) - count :]
        results = shown.results or tuple(_held(each) for each in made if isinstance(each, Memref))
        require(
            len(results) == count and all(_passes(given, wanted) for given, wanted in zip(results, made, strict=True)),
            "types",
            f"the results are ({', '.join(map(str, results))})",
            f"what @{name} leaves in ({', '.join(map(str, made))})",
            "LANG-08.1-01",
        )
        return {"returns": results}

    def execute(self, *arguments: Array, env: LaunchEnvironment) -> tuple[Array, ...]:
        """Run the grid. Raises `Rejection`."""
        kernel = env.module.functions[self.kernel]
        inputs = len(_buffers(kernel)) - len(self.returns)
        made = [_uninitialised(each) for each in self.returns]
        buffers: list[Array | Uninitialised] = [*arguments[:inputs], *made, *arguments[inputs:]]
        return run_kernel(kernel, buffers, target_of(str(kernel.attributes["target"])))[inputs:]


def _buffers(kernel: Signature) -> list[Type]:
    return [each.type for each in kernel.parameters if isinstance(each.type, Memref | Pointer)]


def _uninitialised(result: Type) -> Uninitialised:
    """The buffer for a result, whose extents are known where a kernel is launched."""
    assert isinstance(result, Tensor | Scalar)
    return Uninitialised(result.dtype, tuple(int(dim) for dim in result.shape))


def _held(buffer: Memref) -> Numeric:
    """The value of the host that a buffer holds."""
    return Tensor(buffer.shape, buffer.dtype) if buffer.shape else Scalar(buffer.dtype)


def _passes(given: Type, wanted: Type) -> bool:
    """Whether a value of the host can be passed for a parameter of a kernel, whatever its layout."""
    if isinstance(given, Tensor | Scalar) and isinstance(wanted, Memref):
        return (given.shape, given.dtype) == (wanted.shape, wanted.dtype)
    return isinstance(wanted, Pointer) or given == wanted
