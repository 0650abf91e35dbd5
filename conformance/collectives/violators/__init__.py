"""The violators of chapter collectives: mutants of the reference, each of one clause, which the suite must catch."""
