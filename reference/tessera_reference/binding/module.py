"""The function `ts.module.load` of section 5 of the runtime spec."""

from __future__ import annotations

from .contexts import Context
from .launches import Module


def load(image: bytes, context: Context | None = None) -> Module:
    """Call tessModuleLoad with the bytes of a fatbin, and return the module (RT-05-03). Raises `TesseraError`."""
    return Module(image, context)
