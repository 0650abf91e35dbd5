"""JAX on the CPU: operations as `ops:conformance.adapters.jax_adapter:TABLE`, collectives as `py:...:make`.

Operations are compiled, as JAX programs are; collectives run over eight virtual devices.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache, wraps
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
from conformance.adapters.jax_collectives import carried_out  # noqa: E402
from jax import lax  # noqa: E402

from tessera_conformance.adapter import NotSupported  # noqa: E402
from tessera_conformance.operations import calls  # noqa: E402

NAME, VERSION = "jax", jax.__version__
jax.config.update("jax_enable_x64", True)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is compiled for the attributes, dtypes and shapes that it is called with."""

    @wraps(function)
    def called(*arrays: Any, **attributes: Any) -> Any:
        return _compiled(function, _frozen(attributes))(*arrays)

    return called


@cache
def _compiled(function: Callable[..., Any], attributes: Any) -> Any:
    return jax.jit(lambda *arrays: function(*arrays, **{name: _thawed(value) for name, value in attributes}))


def _frozen(value: Any) -> Any:
    """Attributes that can be looked up: lists as tuples."""
    if isinstance(value, dict):
        return tuple((name, _frozen(element)) for name, element in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _thawed(value: Any) -> Any:
    return list(map(_thawed, value)) if isinstance(value, tuple) else value


TABLE = calls("jax", {"jax": jax, "jnp": jnp, "lax": lax, "np": np}, compiled)


class JaxAdapter(EngineAdapter):
    """Collectives over virtual devices, and the operations of the table."""

    features = ("bf16-collectives",)

    def __init__(self) -> None:
        super().__init__("jax", jax.__version__, RANKS, operations=sys.modules[__name__])

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


def make() -> JaxAdapter:
    """The adapter."""
    return JaxAdapter()
