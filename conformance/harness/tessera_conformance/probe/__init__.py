"""Revealing the order and the arithmetic of an implementation's sums, by calls alone."""

from __future__ import annotations

from tessera_conformance.probe.calls import CannotProbe, Subject
from tessera_conformance.probe.reveal import NotATree
from tessera_conformance.probe.run import Finding, probe

__all__ = ["CannotProbe", "Finding", "NotATree", "Subject", "probe"]
