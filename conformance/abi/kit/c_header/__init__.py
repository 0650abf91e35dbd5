"""Reading a C header without a compiler: what it declares, in the words of the specification (runtime spec 4)."""

from .declarations import CHeader, Prototype, read_header
from .errors import UnreadableHeader

__all__ = ["CHeader", "Prototype", "UnreadableHeader", "read_header"]
