"""What is fixed between programs, modules and the runtime: status codes, policies, descriptors, buffers, fatbins."""

from .descriptor import Descriptor, StableMath
from .policy import NumericsPolicy
from .status import Failure, Status

__all__ = ["Descriptor", "Failure", "NumericsPolicy", "StableMath", "Status"]
