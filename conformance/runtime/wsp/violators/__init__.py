"""The violators of the WSP runtime: mutants of the reference, each of one clause, which the suite must catch."""
