"""The binding methods of the reference: the listing of section 5 of the runtime specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tessera_conformance.adapter import Refusal
from tessera_conformance.tensors import Tensor

from .. import binding as ts
from ..binding.meshes import numpy_dtype
from ..numerics.formats import dtype
from .messages import checked
from .session_state import SessionState


class BindingMethods(SessionState):
    """The methods of a program that uses the Python binding."""

    @checked
    def binding_listing(
        self,
        *,
        image: bytes,
        devices: Any,
        axes: Mapping[str, int],
        kernel: Any,
        tensors: Sequence[Tensor],
        integers: Any,
        scalars: Mapping[str, float],
        grid: Any,
        block: Any,
        grads: Any,
        op: Any,
        axis: Any,
        device_ids: Sequence[int] | None = None,
    ) -> dict[str, Any]:
        """Run RT-05-01 to -06, -09, -10, in the order of the listing."""
        arrays, gradients = [_array(tensor) for tensor in tensors], _array(grads)
        with _refusals(), ts.init(environment={}) as context:
            mesh = ts.mesh(devices=range(devices) if device_ids is None else device_ids, axes=axes)
            module = ts.module.load(image)
            launched = module.kernel[kernel]
            arguments = ts.pack_args(*arrays, *integers, **scalars)
            stream = ts.default_stream()
            buffer = arguments.bytes_for(mesh, launched.entry)
            ts.launch(launched, mesh, grid=grid, block=block, args=arguments, stream=stream)
            ts.collectives.all_reduce(mesh, gradients, op=op, axis=axis)
            ts.synchronize()
            return {
                "context": bool(context),
                "mesh_size": mesh.size,
                "kernels": list(module.kernel),
                "argument_bytes": buffer.hex(),
                "default_stream": bool(stream),
                "outputs": [_tensor(declared, array) for declared, array in zip(tensors, arrays, strict=True)],
                "reduced": _tensor(grads, gradients),
            }


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn errors of the binding into refusals, with their status."""
    try:
        yield
    except ts.TesseraError as error:
        raise Refusal(error.status.name, "call", error.message) from None


def _array(value: Tensor) -> np.ndarray[Any, Any]:
    """Return a writable array of the application."""
    return np.frombuffer(value.data, numpy_dtype(dtype(value.dtype))).reshape(value.shape).copy()


def _tensor(declared: Tensor, array: np.ndarray[Any, Any]) -> Tensor:
    return Tensor(declared.dtype, declared.shape, array.tobytes())
