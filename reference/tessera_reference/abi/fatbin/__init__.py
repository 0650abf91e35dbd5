"""Fatbins: the container of a compiled module, its metadata, its signature (runtime spec 8.1, 15, 16)."""

from .image import Fatbin, Section, public_key, read, verify, write
from .metadata import (
    CollectivePlan,
    Explanation,
    FusionGroup,
    KernelEntry,
    KernelParameter,
    Metadata,
    TileShape,
    metadata_of_bytes,
    metadata_to_bytes,
)

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
