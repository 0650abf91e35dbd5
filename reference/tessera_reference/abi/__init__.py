"""What is fixed between programs, modules and the runtime: status codes, policies, descriptors, buffers, fatbins."""

from .address_spaces import ADDRESS_SPACES, AddressSpace
from .descriptor import Descriptor, StableMath
from .parameter_types import Parameter, ParameterValue
from .parameters import BUFFER_ALIGNMENT, ParameterLayout, layout_of, pack, unpack
from .policy import NumericsPolicy
from .signatures import Signature, parse_signature
from .status import Failure, Status
from .version import ABI_VERSION, RUNTIME_VERSION, AbiVersion

__all__ = [
    "ABI_VERSION",
    "ADDRESS_SPACES",
    "BUFFER_ALIGNMENT",
    "RUNTIME_VERSION",
    "AbiVersion",
    "AddressSpace",
    "Descriptor",
    "Failure",
    "NumericsPolicy",
    "Parameter",
    "ParameterLayout",
    "ParameterValue",
    "Signature",
    "StableMath",
    "Status",
    "layout_of",
    "pack",
    "parse_signature",
    "unpack",
]
