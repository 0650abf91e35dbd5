"""The protocol's methods, declared once: `interface.toml` of each chapter, and `session.toml` here for shared ones.

The JSON Schemas in `schemas/protocol/` and the tables of `docs/protocol.md` are generated from them. They also give the
suite its prototypes and its lists of handles, pointers and outputs, and the reference its adapter. `docs/protocol.md`,
"Methods", explains the notation.
"""

from tessera_conformance.interface.declarations import Interface, InterfaceError, Method, feature_of, interface

__all__ = ["Interface", "InterfaceError", "Method", "feature_of", "interface"]
