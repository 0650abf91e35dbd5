"""Front ends that accept or refuse the worked examples differently (language spec, section 13)."""

from .changes import answers
from .language_syntax import refuses, rewrites


def twice(usual, self, **request):
    lowered = usual(self, **request)
    for function in lowered["functions"]:
        products = [entry for entry in function["operations"] if entry["name"].endswith("matmul")]
        function["operations"] = products + function["operations"]
    return lowered


EXAMPLES = [
    rewrites("rounded_extents", "LANG-13.1-01", "rounds an extent up to a multiple of four", r"\b1023x", "1024x"),
    rewrites("product_as_declared", "LANG-13.1-02", "gives a product the type that its variable declares",
        r"let C: tensor<1024x1024xfp32>", "let C: tensor<1024x1024xbf16>"),
    rewrites("shape_with_commas", "LANG-13.2-02", "takes a comma between dimensions", r"(tensor<\?),", r"\1x"),
    refuses("results_annotated", "LANG-13.2-04", "wants the result annotated", r"func \w+\([^)]*\) \{\s*\w", "types"),
    rewrites("unknown_is_named", "LANG-13.2-05", "takes ? for the dimension beside it", r"<\?x([A-Z])x", r"<\1x\1x"),
    answers("TwoProducts", "LANG-13.1-03", "computes a product twice", "language_lower", twice),
]  # fmt: skip
