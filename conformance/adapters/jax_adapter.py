"""JAX on the CPU behind the protocol: `--impl=py:conformance.adapters.jax_adapter:make`.

Operations are compiled, as JAX programs are; collectives run over eight virtual devices.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

RANKS = 8
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    flag = f"--xla_force_host_platform_device_count={RANKS}"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from conformance.adapters.collective_requests import Request  # noqa: E402
from conformance.adapters.engine_adapter import EngineAdapter  # noqa: E402
from conformance.adapters.exchange import (  # noqa: E402
    UNARY,
    array_of,
    refuse_trees,
    result_type,
    tensor_of,
)
from conformance.adapters.jax_collectives import carried_out  # noqa: E402

from tessera_conformance.adapter import NotSupported  # noqa: E402
from tessera_conformance.tensors import Tensor  # noqa: E402

jax.config.update("jax_enable_x64", True)

REDUCTIONS = {"sum": jnp.sum, "prod": jnp.prod, "mean": jnp.mean, "max": jnp.max, "min": jnp.min}


class JaxAdapter(EngineAdapter):
    """Single operations, as XLA compiles them for the CPU, and collectives."""

    def __init__(self) -> None:
        super().__init__("jax", jax.__version__, RANKS)

    def numerics_evaluate(
        self, *, operation: str, inputs: list[Tensor], attributes: dict[str, Any], level: str = "fast", **rest: Any
    ) -> dict[str, Any]:
        """One operation; what is not in this file is unsupported."""
        refuse_trees(attributes)
        arrays = [array_of(tensor) for tensor in inputs]
        if operation == "matmul" and len(arrays) == 2:
            out = np.dtype(result_type(attributes, inputs[0].dtype)).name
            return {"outputs": [tensor_of(_matmul(out)(*arrays))]}
        if operation in REDUCTIONS:
            compiled = _reduction(operation, attributes["axis"], attributes.get("keepdims", False))
            return {"outputs": [tensor_of(compiled(arrays[0]))]}
        if operation in (*UNARY, "pow"):
            return {"outputs": [tensor_of(_elementary(operation)(*arrays))]}
        raise NotSupported(f"numerics.evaluate {operation}")

    def require(self, request: Request, dtype: str) -> None:
        """The virtual devices; its ppermute sends what a rank has to one other at most."""
        senders = [source for source, _ in request.pairs]
        if len(set(senders)) < len(senders):
            raise NotSupported(
                "send_recv in JAX where a rank sends to several: the pairs of ppermute are a permutation"
            )
        if len(jax.devices()) < RANKS:  # JAX was started before this file could ask for them
            raise NotSupported(f"collectives in a process whose JAX has {len(jax.devices())} devices, {RANKS} needed")

    def carry_out(self, request: Request, arrays: list[Any]) -> list[Any]:
        """A `psum`, `pmax`, `pmin` or another collective over as many virtual devices as there are inputs."""
        return carried_out(request, arrays)


@cache
def _matmul(out: str) -> Any:
    return jax.jit(lambda a, b: jnp.matmul(a, b, preferred_element_type=out))


@cache
def _reduction(operation: str, axis: int, keepdims: bool) -> Any:
    return jax.jit(lambda x: REDUCTIONS[operation](x, axis=axis, keepdims=keepdims))


@cache
def _elementary(operation: str) -> Any:
    return jax.jit(jnp.power if operation == "pow" else getattr(jnp, operation))


def make() -> JaxAdapter:
    """The adapter."""
    return JaxAdapter()
