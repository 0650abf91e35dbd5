"""The protocol's methods, declared once: `interface.toml` of each chapter, and `session.toml` here for what all share.

Generated from them are the JSON Schemas in `schemas/protocol/` and the tables of `docs/protocol.md`; read from them are
the prototypes and the lists of handles, pointers and outputs of the suite, and the adapter of the reference.
`docs/protocol.md`, "Methods", explains the notation.
"""

from tessera_conformance.interface.declarations import Interface, InterfaceError, Method, feature_of, interface

__all__ = ["Interface", "InterfaceError", "Method", "feature_of", "interface"]
