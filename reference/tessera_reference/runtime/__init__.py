"""The runtime: every function of the host API on a simulated machine (runtime spec 2 to 18)."""

from .api import Runtime

__all__ = ["Runtime"]
