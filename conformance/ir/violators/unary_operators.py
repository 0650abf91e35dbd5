"""Front ends that misread signs, which only signs of zeros show (language specification, 14.2)."""

from .language_syntax import rewrites

SIGNS = [
    rewrites("LANG-14.2-02", "plus_adds_zero", "adds +x to zero", r"(?<=return )\+(\w);", r"0 + \1;"),
    rewrites("LANG-14.2-02", "minus_of_a_call", "takes what a call returns off zero", r"(?<=return )-(\w+\(\w\));",
        r"0 - \1;"),
    rewrites("LANG-14.2-02", "sign_of_a_product", "puts the sign of a matrix before its product",
        r"(?<=return )-(\w) @ (\w);", r"-(\1 @ \2);"),
    rewrites("LANG-14.2-02", "sign_of_a_sum", "puts the sign of a group before the group behind it",
        r"(?<=return )-(\w) \+ \1;", r"-(\1 + \1);"),
    rewrites("LANG-14.2-02", "literal_without_sign", "reads -0.0 as zero", r"-0\.0", "0.0"),
    rewrites("LANG-14.2-02", "two_signs", "drops a plus and the minus behind it", r"\+-(\w)", r"\1"),
    rewrites("LANG-14.2-02", "slice_first", "takes a slice off zero", r"-(\w\[[^]]*\])", r"0 - \1"),
]  # fmt: skip
