"""Optimizers that know the algebra of real numbers, not that of floats (language specification, 2.3, 8.2 and 10)."""

from .language_syntax import rewrites

REWRITES = [
    rewrites("LANG-02.3-63", "times_zero", "takes x * 0 for 0", r"\w \* 0\.0", "0.0"),
    rewrites("LANG-02.3-61", "plus_zero", "takes x + 0 for x", r"(\w) \+ 0\.0", r"\1"),
    rewrites("LANG-02.3-61", "plus_two", "adds two numbers first", r"\+ (\d\.0) \+ (\d\.0)", r"+ (\1 + \2)"),
    rewrites("LANG-02.3-61", "factor", "takes a common factor out", r"(\w) \* (\w) \+ \1 \* (\w)", r"\1 * (\2 + \3)"),
    rewrites("LANG-02.3-62", "from_zero", "takes 0 - x for -x", r"0\.0 - (\w)", r"-\1"),
    rewrites("LANG-02.3-62", "minus_itself", "takes x - x for 0", r"(\w) - \1;", "0.0;"),
    rewrites("LANG-02.3-64", "over_itself", "takes x / x for 1", r"(\w) / \1;", "1.0;"),
    rewrites("LANG-02.3-64", "over_a_number", "multiplies by the reciprocal", r"/ (\d\.0)", r"* (1.0 / \1)"),
    rewrites("LANG-14.2-02", "difference", "takes -(x - y) for y - x", r"-\((\w) - (\w)\)", r"\2 - \1"),
    rewrites("LANG-02.3-66", "equal", "takes x == x for true", r"(\w) == \1;", "true;"),
    rewrites("LANG-02.3-67", "unequal", "takes x != x for false", r"(\w) != \1;", "false;"),
    rewrites("LANG-02.3-70", "at_most", "takes x <= x for true", r"(\w) <= \1;", "true;"),
    rewrites("LANG-02.3-71", "at_least", "takes x >= x for true", r"(\w) >= \1;", "true;"),
    rewrites("LANG-10-11", "inverse", "takes log(exp(x)) for x", r"op\.log\(op\.exp\((\w)\)\)", r"\1"),
    rewrites("LANG-10-11", "square", "takes a root times itself away", r"op\.sqrt\((\w)\);(\s+return) s \* s",
        r"\1;\2 s"),
    rewrites("LANG-02-04", "cast_once", "casts once", r"op\.cast\(op\.cast\((\w), \w+=\w+\), (\w+=\w+)\)",
        r"op.cast(\1, \2)"),
    rewrites("LANG-02-04", "least", "takes a choice for a minimum", r"op\.select\((\w) < (\w), \1, \2\)",
        r"op.minimum(\1, \2)"),
    rewrites("LANG-02-04", "one_call", "makes code of the first of two calls", r"(op\.(\w+)\([^)]*\)), op\.\2\([^)]*\)",
        r"\1, \1"),
    rewrites("LANG-10-06", "last_two", "multiplies the last matrices first", r"(\w) @ (\w) @ (\w)", r"\1 @ (\2 @ \3)"),
    rewrites("LANG-10-06", "multiple", "multiplies where equal numbers are added",
        r"op\.sum\(op\.broadcast\((\w), shape=\[(\d+)\]\), axis=0\)", r"\2 * \1[0]"),
    rewrites("LANG-02.3-46", "unread", "drops a call with an unread value", r"let b: \w+ = \w+\(\w\);(?!\s+let)", ""),
    rewrites("LANG-02-10", "hoisted", "divides before a loop", r"((?:for|while) \(.*?\)) \{ (\w) = 1 / (\w); \}",
        r"let q: int32 = 1 / \3; \1 { \2 = q; }"),
]  # fmt: skip
