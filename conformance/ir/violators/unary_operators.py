"""Front ends that misread signs, which only signs of zeros show (language specification, 14.2)."""

from .language_syntax import rewrites

SIGNS = [
    rewrites("plus_adds_zero", "LANG-14.2-02", "adds +x to zero", r"(?<=return )\+(\w);", r"0 + \1;"),
    rewrites("minus_of_a_call", "LANG-14.2-02", "takes what a call returns off zero", r"(?<=return )-(\w+\(\w\));",
        r"0 - \1;"),
    rewrites("sign_of_a_product", "LANG-14.2-02", "puts the sign of a matrix before its product",
        r"(?<=return )-(\w) @ (\w);", r"-(\1 @ \2);"),
    rewrites("sign_of_a_sum", "LANG-14.2-02", "puts the sign of a group before the group behind it",
        r"(?<=return )-(\w) \+ \1;", r"-(\1 + \1);"),
    rewrites("literal_without_sign", "LANG-14.2-02", "reads -0.0 as zero", r"-0\.0", "0.0"),
    rewrites("two_signs", "LANG-14.2-02", "drops a plus and the minus behind it", r"\+-(\w)", r"\1"),
    rewrites("slice_first", "LANG-14.2-02", "takes a slice off zero", r"-(\w\[[^]]*\])", r"0 - \1"),
]  # fmt: skip
