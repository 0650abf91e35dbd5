"""Kernel libraries over the reference: they have `numerics.evaluate` and nothing else, no parser before all."""

from __future__ import annotations

from typing import Any

from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter


class KernelLibrary:
    """Every operation that the reference has, one at a time."""

    def __init__(self) -> None:
        self._reference = ReferenceAdapter()

    def hello(self) -> dict[str, Any]:
        """The claims of the reference, but for the documents that ask for more."""
        return {**self._reference.hello(), "documents": ["language_ir", "runtime_abi"]}

    def numerics_evaluate(self, *, operation: str, **asked: Any) -> dict[str, Any]:
        """One operation."""
        return self._reference.numerics_evaluate(operation=operation, **asked)


class WrongProduct(KernelLibrary):
    """Products are a unit in the last place off."""

    def numerics_evaluate(self, *, operation: str, **asked: Any) -> dict[str, Any]:
        """One operation; of `multiply` every word has its last bit flipped."""
        answer = super().numerics_evaluate(operation=operation, **asked)
        if operation == "multiply":
            answer["outputs"] = [Tensor(x.dtype, x.shape, _flipped(x)) for x in answer["outputs"]]
        return answer


class FewKernels(KernelLibrary):
    """Of all operations it has the sum alone."""

    def numerics_evaluate(self, *, operation: str, **asked: Any) -> dict[str, Any]:
        """A sum."""
        if operation != "sum":
            raise NotSupported(f"numerics.evaluate {operation}")
        return super().numerics_evaluate(operation=operation, **asked)


def _flipped(tensor: Tensor) -> bytes:
    data, width = bytearray(tensor.data), tensor.format.word_bytes
    for place in range(0, len(data), width):
        data[place] ^= 1
    return bytes(data)
