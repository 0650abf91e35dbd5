"""The violators of chapter runtime: mutants of the reference, each of one clause, which the suite has to catch."""

from tessera_reference.adapter import load_areas

load_areas()
