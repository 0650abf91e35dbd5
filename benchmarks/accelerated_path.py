"""The reference with and without its accelerated path."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager

KERNELS_INSTALL = "pip install llvmlite, or 'tessera-conformance[kernels]'"


def has_kernels() -> bool:
    """True if the dependency of the accelerated path is there."""
    return importlib.util.find_spec("llvmlite") is not None


@contextmanager
def numerics(plain: bool) -> Iterator[None]:
    """Compute by the plain definitions, or as installed."""
    before = os.environ.pop("TESSERA_PLAIN_NUMERICS", None)
    if plain:
        os.environ["TESSERA_PLAIN_NUMERICS"] = "1"
    try:
        yield
    finally:
        os.environ.pop("TESSERA_PLAIN_NUMERICS", None)
        if before is not None:
            os.environ["TESSERA_PLAIN_NUMERICS"] = before
