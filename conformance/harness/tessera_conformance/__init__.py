"""The conformance harness: it calls an implementation and writes a clause-coverage report.

The harness knows an implementation only through the protocol (`docs/protocol.md`) and never imports the reference.
"""

__version__ = "0.1.0"
