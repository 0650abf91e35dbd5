"""The front door of the levels: lower, execute, emit, read texts, compare (language spec, sections 5 to 8)."""
