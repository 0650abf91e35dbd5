"""Front ends that accept or refuse the worked examples differently (language spec, section 13)."""

from .changes import wrapped
from .language_syntax import refuses, rewrites


def twice(usual, self, **request):
    lowered = usual(self, **request)
    for function in lowered["functions"]:
        products = [entry for entry in function["operations"] if entry["name"].endswith("matmul")]
        function["operations"] = products + function["operations"]
    return lowered


EXAMPLES = [
    rewrites("LANG-13.1-01", "rounded_extents", "rounds an extent up to a multiple of four", r"\b1023x", "1024x"),
    rewrites("LANG-13.1-02", "product_as_declared", "gives a product the type that its variable declares",
        r"let C: tensor<1024x1024xfp32>", "let C: tensor<1024x1024xbf16>"),
    rewrites("LANG-13.2-02", "shape_with_commas", "takes a comma between dimensions", r"(tensor<\?),", r"\1x"),
    refuses("LANG-13.2-04", "results_annotated", "wants the result annotated", r"func \w+\([^)]*\) \{\s*\w", "types"),
    rewrites("LANG-13.2-05", "unknown_is_named", "takes ? for the dimension beside it", r"<\?x([A-Z])x", r"<\1x\1x"),
    wrapped("LANG-13.1-03", "TwoProducts", "computes a product twice", "adapter.ReferenceAdapter.language_lower",
        twice),
]  # fmt: skip
