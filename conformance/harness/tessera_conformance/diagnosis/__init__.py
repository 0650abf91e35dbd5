"""Diagnosis of wrong numbers by hypothesis: plausible implementations whose answers have exactly the observed bits."""

from __future__ import annotations

from tessera_conformance.diagnosis.search import Diagnosis, diagnose

__all__ = ["Diagnosis", "diagnose"]
