"""The runtime: contexts (runtime spec 4.1, 4.7)."""

from .context import Contexts

__all__ = ["Contexts"]
