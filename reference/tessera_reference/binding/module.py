"""`ts.module.load`, as section 5 of the runtime spec writes it."""

from __future__ import annotations

from .contexts import Context
from .launches import Module


def load(image: bytes, context: Context | None = None) -> Module:
    """tessModuleLoad: the module in the bytes of a fatbin (RT-05-03). Raises `TesseraError`."""
    return Module(image, context)
