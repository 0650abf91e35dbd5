"""Whether every call of a kernel fits it: as many arguments, of the right kinds, with the right dtypes and counts."""

from __future__ import annotations

from collections.abc import Iterator

from .errors import ProgramRefused
from .kernels import check_call
from .package import Package
from .statements import Body, Cond, Consume, Repeat, RunKernel, Scope, Statement, Task, TensorArgument

__all__ = ["check_calls", "walk"]


def walk(body: Body, path: str) -> Iterator[tuple[str, Statement]]:
    """Every statement of a body and of the bodies within, with its path."""
    for place, each in enumerate(body):
        at = f"{path}/{place}"
        yield at, each
        if isinstance(each, Scope | Consume | Repeat):
            yield from walk(each.body, f"{at}/body")
        elif isinstance(each, Cond):
            yield from walk(each.then, f"{at}/then")
            yield from walk(each.otherwise, f"{at}/otherwise")


def check_calls(package: Package, path: str) -> None:
    """Raises `ProgramRefused` for the first call that does not fit."""
    checked: set[tuple[object, ...]] = set()
    for place, process in enumerate(package.processes):
        for at, each in walk(process.body, f"{path}/{place}/body"):
            if isinstance(each, RunKernel | Task):
                form = (each.kernel, *(getattr(argument, "tensor", None) for argument in each.arguments))
                if form not in checked:
                    _check_call(package, each, f"{at}/arguments")
                    checked.add(form)


def _check_call(package: Package, call: RunKernel | Task, path: str) -> None:
    kernel = package.kernels[call.kernel]
    if len(call.arguments) != len(kernel.parameters):
        raise ProgramRefused(path, f"are {len(call.arguments)}, and {kernel.name} takes {len(kernel.parameters)}")
    tensors = {}
    for (parameter, kind), given in zip(kernel.parameters.items(), call.arguments, strict=True):
        if (kind == "tensor") != isinstance(given, TensorArgument):
            raise ProgramRefused(path, f"for {parameter} of {kernel.name} there has to be a {kind}")
        if isinstance(given, TensorArgument):
            tensor = package.tensors[given.tensor]
            tensors[parameter] = tensor.dtype, tensor.count
    check_call(kernel, tensors, path)
