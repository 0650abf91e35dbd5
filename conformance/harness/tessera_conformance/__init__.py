"""The conformance harness: an implementation goes in, a clause-coverage report comes out.

The harness knows an implementation only through the protocol (`docs/protocol.md`) and never imports the reference.
"""

__version__ = "0.1.0"
