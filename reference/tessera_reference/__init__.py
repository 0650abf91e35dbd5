"""The reference implementation of the Tessera specifications: small, readable, bit-exact."""

__version__ = "0.1.0"
