"""The host API, every function under its own name (runtime spec 4).

A function with outputs gives a status and the output, None where it failed; the others give the status. Nothing raises.
"""

from __future__ import annotations

from .calls.extensions import ExtensionCalls

__all__ = ["Runtime"]


class Runtime(ExtensionCalls):
    """A runtime on a simulated machine of its own."""
