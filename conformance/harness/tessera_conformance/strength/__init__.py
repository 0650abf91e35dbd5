"""Evidence that the suite catches violations, which break one clause each, and passes legal variants."""

from tessera_conformance.strength.variants import Variant, altered, varies
from tessera_conformance.strength.violation import Around, Violation, replaced, violates, without_refusals

__all__ = ["Around", "Variant", "Violation", "altered", "replaced", "varies", "violates", "without_refusals"]
