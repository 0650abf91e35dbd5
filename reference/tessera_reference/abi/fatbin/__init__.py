"""Fatbins: the container of a compiled module, its metadata, its signature (runtime spec 8.1, 15, 16)."""

from .collective_plans import CollectivePlan
from .entries import Explanation, FusionGroup, KernelEntry, KernelParameter, Metadata, TileShape
from .metadata_json import metadata_of_bytes, metadata_to_bytes
from .model import Fatbin, Section
from .reader import read
from .signing import public_key
from .verification import verify
from .writer import write

__all__ = [
    "CollectivePlan",
    "Explanation",
    "Fatbin",
    "FusionGroup",
    "KernelEntry",
    "KernelParameter",
    "Metadata",
    "Section",
    "TileShape",
    "metadata_of_bytes",
    "metadata_to_bytes",
    "public_key",
    "read",
    "verify",
    "write",
]
