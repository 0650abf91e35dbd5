"""Proof that the suite bites, and no others: violators break one clause each, variants differ where they may."""

from tessera_conformance.strength.variants import Variant, altered, varies
from tessera_conformance.strength.violation import Violation, replaced, violates, without_refusals

__all__ = ["Variant", "Violation", "altered", "replaced", "varies", "violates", "without_refusals"]
