"""The runtime: contexts, numerics policies, determinism descriptors, status codes (runtime spec 4.1, 4.7, 7, 11)."""

from .context import Contexts
from .descriptor import Descriptor, StableMath
from .policy import NumericsPolicy
from .status import Failure, Status

__all__ = ["Contexts", "Descriptor", "Failure", "NumericsPolicy", "StableMath", "Status"]
