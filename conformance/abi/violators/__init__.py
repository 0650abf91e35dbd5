"""The violators of chapter abi: mutants of the reference, each of one clause, which the suite must catch."""
