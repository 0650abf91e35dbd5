"""JAX on the CPU behind the protocol: `--impl=py:conformance.adapters.jax_adapter:make`.

Operations are compiled, as JAX programs are; all-reduce is a `psum` over eight virtual devices.
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
from conformance.adapters.exchange import (  # noqa: E402
    UNARY,
    array_of,
    hello,
    refuse_trees,
    result_type,
    tensor_of,
)
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

from tessera_conformance.adapter import NotSupported  # noqa: E402
from tessera_conformance.tensors import Tensor  # noqa: E402

jax.config.update("jax_enable_x64", True)

REDUCTIONS = {"sum": jnp.sum, "prod": jnp.prod, "mean": jnp.mean, "max": jnp.max, "min": jnp.min}


class JaxAdapter:
    """Single operations, as XLA compiles them for the CPU."""

    def hello(self) -> dict[str, Any]:
        """Identity."""
        return hello("jax", jax.__version__)

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

    def collectives_all_reduce(
        self, *, inputs: list[Tensor], op: str, level: str = "fast", **rest: Any
    ) -> dict[str, Any]:
        """The sum over eight virtual devices."""
        if op != "sum" or len(inputs) != RANKS:
            raise NotSupported(f"all_reduce {op} over {len(inputs)} ranks")
        if len(jax.devices()) < RANKS:  # JAX was started before this file could ask for them
            raise NotSupported(f"all_reduce in a process whose JAX has {len(jax.devices())} devices, {RANKS} needed")
        compiled, sharding = _sum_over_ranks()
        ranks = jax.device_put(np.stack([array_of(tensor) for tensor in inputs]), sharding)
        return {"outputs": [tensor_of(row) for row in np.asarray(compiled(ranks))]}


@cache
def _matmul(out: str) -> Any:
    return jax.jit(lambda a, b: jnp.matmul(a, b, preferred_element_type=out))


@cache
def _reduction(operation: str, axis: int, keepdims: bool) -> Any:
    return jax.jit(lambda x: REDUCTIONS[operation](x, axis=axis, keepdims=keepdims))


@cache
def _elementary(operation: str) -> Any:
    return jax.jit(jnp.power if operation == "pow" else getattr(jnp, operation))


@cache
def _sum_over_ranks() -> tuple[Any, Any]:
    mesh = Mesh(np.array(jax.devices()[:RANKS]), ("rank",))
    across = PartitionSpec("rank")
    summed = jax.shard_map(lambda x: jax.lax.psum(x, "rank"), mesh=mesh, in_specs=across, out_specs=across)
    return jax.jit(summed), NamedSharding(mesh, across)


def make() -> JaxAdapter:
    """The adapter."""
    return JaxAdapter()
