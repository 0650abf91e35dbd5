"""The calls of kernels in a package as C: a `Site` each, and a function for each kernel and choice of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..expressions import Expression
from ..package import Package
from ..statements import RunKernel, Task, TensorArgument
from .c_kernels import effect
from .c_text import NUMBER, array, text

__all__ = ["Sites"]


class Sites:
    """The definitions so far, whose names begin with `prefix`."""

    def __init__(self, package: Package, prefix: str) -> None:
        self.package = package
        self.prefix = prefix
        self.lines: list[str] = []
        self.most_scalars = 1  # what a load has
        self.most_reads = 0
        self._effects: dict[tuple[int, ...], str] = {}
        self._count = 0

    def add(self, call: RunKernel | Task, path: str, produces: Sequence[int]) -> tuple[str, Sequence[Expression]]:
        """The name of the site of a call, and the scalars that are its operands."""
        name = f"{self.prefix}site{self._count}"
        self._count += 1
        kernel = self.package.kernels[call.kernel]
        given = dict(zip(kernel.parameters, call.arguments, strict=True))
        tensors = {each: value.tensor for each, value in given.items() if isinstance(value, TensorArgument)}
        scalars = [value for value in given.values() if not isinstance(value, TensorArgument)]
        writes = list(dict.fromkeys(tensors[each] for each in kernel.written))
        reads = list(dict.fromkeys(each for each in tensors.values() if each not in writes))
        waits, signals = (call.waits, call.signals) if isinstance(call, Task) else ((), ())
        places = [produces.index(each) for each in signals]
        declared = self.package.tensors
        self.most_scalars = max(self.most_scalars, len(scalars))
        self.most_reads = max(self.most_reads, len(reads))
        members = [
            str(call.kernel),
            f"UINT64_C({kernel.cycles([declared[each].count for each in tensors.values()])})",
            self._effect(call.kernel, tensors),
            str(len(scalars)),
            *self._listed(f"{name}_reads", reads),
            *self._listed(f"{name}_writes", writes),
            f"UINT64_C({sum(declared[each].nbytes for each in writes)})",
            text(path),
            *self._listed(f"{name}_waits", waits),
            *self._listed(f"{name}_signals", signals),
            self._listed(f"{name}_places", places)[1],
        ]
        self.lines.append(f"static const Site {name} = {{{', '.join(members)}}};")
        return name, scalars

    def _listed(self, name: str, values: Sequence[int]) -> tuple[str, str]:
        lines, reference = array(NUMBER, name, values)
        self.lines += lines
        return str(len(values)), reference

    def _effect(self, number: int, tensors: Mapping[str, int]) -> str:
        form = (number, *tensors.values())
        if form not in self._effects:
            name = self._effects[form] = f"{self.prefix}effect{len(self._effects)}"
            self.lines += effect(name, self.package.kernels[number], tensors, self.package.tensors)
        return self._effects[form]
