"""Vendors' adapters: some do what pytest may take offence at, but answer rightly; others are wrong."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from typing import Any

import numpy as np

from tessera_conformance.adapter import NotSupported
from tessera_conformance.tensors import Tensor
from tessera_reference.adapter import ReferenceAdapter

# Vendors' adapters that do what pytest may take offence at, but answer rightly; and two that do not.


class Warns(ReferenceAdapter):
    """Warnings of numpy and of the interpreter, of each sort."""

    def language_execute(self, **params: Any) -> dict[str, Any]:
        np.divide(np.float32(1), np.float32(0))
        np.sqrt(np.float32(-1))
        for category in (DeprecationWarning, FutureWarning, UserWarning, PendingDeprecationWarning):
            warnings.warn("of the vendor", category, stacklevel=2)
        return super().language_execute(**params)


class Untidy(Warns):
    """Warnings, files left open, threads and finalizers that fail, and prints."""

    def language_execute(self, **params: Any) -> dict[str, Any]:
        open(__file__)  # noqa: SIM115

        def fail() -> None:
            raise RuntimeError("in a thread")

        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        Failing()
        gc.collect()
        print("to standard output")
        print("to standard error", file=sys.stderr)
        return super().language_execute(**params)


class Failing:
    def __del__(self) -> None:
        raise RuntimeError("in a finalizer")


class Partial(ReferenceAdapter):
    """Implements no execution."""

    def language_execute(self, **params: Any) -> dict[str, Any]:
        raise NotSupported("language.execute")


class Wrong(ReferenceAdapter):
    """Computes something else, and crashes over some."""

    def language_execute(self, **params: Any) -> dict[str, Any]:
        if "bf16" in params["source"]:
            raise RuntimeError("no such luck")
        return {"outputs": list(params["inputs"].values())}


# The reference, but products in fp32 come out one and a half times too large, as no order of summation explains.


class CarelessProducts(ReferenceAdapter):
    def language_execute(self, **params: Any) -> dict[str, Any]:
        result = super().language_execute(**params)
        if "matmul" in params["source"] or "@" in params["source"]:
            result["outputs"] = [_enlarged(output) for output in result["outputs"]]
        return result


def _enlarged(tensor: Tensor) -> Tensor:
    if tensor.dtype != "fp32":
        return tensor
    values = np.frombuffer(tensor.data, "<f4") * np.float32(1.5)
    return Tensor(tensor.dtype, tensor.shape, values.astype("<f4").tobytes())
