"""Reading a C header without a compiler: its declarations, in the terms of the specification (runtime spec 4)."""

from .declarations import CHeader, Prototype, read_header
from .errors import UnreadableHeader
from .linkage import Linkage, linkages

__all__ = ["CHeader", "Linkage", "Prototype", "UnreadableHeader", "linkages", "read_header"]
