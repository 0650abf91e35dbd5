"""The agreements between programs, modules and the runtime: status codes, policies, descriptors, buffers, fatbins."""

from .parameters import (
    BUFFER_ALIGNMENT,
    Parameter,
    ParameterLayout,
    ParameterValue,
    Signature,
    layout_of,
    pack,
    parse_signature,
    unpack,
)
from .policy import Descriptor, NumericsPolicy, StableMath
from .status import ABI_VERSION, ADDRESS_SPACES, RUNTIME_VERSION, AbiVersion, AddressSpace, Failure, Status

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
