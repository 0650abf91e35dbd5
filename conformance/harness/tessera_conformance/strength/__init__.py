"""Proof that the suite bites: violators, implementations that break one clause each, and the kill matrix."""

from tessera_conformance.strength.violation import Violation, replaced, violates

__all__ = ["Violation", "replaced", "violates"]
