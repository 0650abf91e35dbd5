"""The violators of chapter ir: mutants of the reference, each of one clause, which the suite must catch."""
