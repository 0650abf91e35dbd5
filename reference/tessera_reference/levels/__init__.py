"""The levels of IR together: lowering between them, execution at each, texts, comparison (language spec, 5 to 8)."""
