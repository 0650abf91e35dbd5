"""The text of modules that an image carries and its hash is of (runtime spec 8.1)."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.module import Module
from ..ir.text import print_module

__all__ = ["canonical_text"]


def canonical_text(modules: Sequence[Module]) -> str:
    """IR in the one spelling that the hash of a module is of: generic form, without locations."""
    return "".join(print_module(module) for module in modules)
