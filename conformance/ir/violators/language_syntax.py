"""Front ends with one rule of the lexer, the grammar or the table of precedence changed (sections 2, 14.1 and 14.2).

Each is the reference behind a filter that knows one pattern of source text. `refuses` refuses what the rule allows;
`rewrites` reads it as another text: an illegal text as its legal twin, or a legal text as another one.
"""

import re

from tessera_conformance.adapter import Refusal
from tessera_conformance.dsl import DTYPES, RESERVED
from tessera_conformance.protocol import Diagnostic

from .changes import around, instead, wrapped

READERS = tuple(f"adapter.ReferenceAdapter.language_{name}" for name in ("parse", "verify", "lower", "execute"))


def filtered(clause, name, description, read):
    """Return a violation that reads its source through a filter."""
    reads = around(lambda usual, self, *, source, **request: usual(self, source=read(source), **request))
    return instead(clause, name, description, READERS, reads)


def rewrites(clause, name, description, pattern, by):
    """Return a violation that replaces the pattern in the source."""
    return filtered(clause, name, description, lambda source: re.sub(pattern, by, source))


def refuses(clause, name, description, pattern, category="syntax"):
    """Return a violation that refuses sources with the pattern, at its line."""

    def read(source):
        match = re.search(pattern, source)
        if match is None:
            return source
        line = source.count("\n", 0, match.start()) + 1
        phase = "parse" if category == "syntax" else "verify"
        raise Refusal(category, phase, description, [Diagnostic(category, description, line=line)])

    return filtered(clause, name, description, read)


WORDS = [
    rewrites(f"LANG-02.1-{number:02}", f"{word}_as_a_name", f"does not reserve the word {word}",
        rf"(\blet |\bfunc |\bmodule |\breturn |\()({word})(?![.\w])", r"\1\2_")
    for number, word in enumerate(RESERVED, start=8)
]  # fmt: skip


def of_length(length):
    """Return a lexer that cuts names to so many characters."""

    def tokens(usual, self):
        for token in usual(self):
            if token.type == "IDENT":
                token.value = token.value[:length]
            yield token

    return tokens


def of_few_digits(usual, text, negative, dtype):
    """Read at most 20 digits after the point."""
    whole, point, rest = text.partition(".")
    digits = re.match("[0-9]*", rest)[0]
    return usual(whole + point + digits[:20] + rest[len(digits) :], negative, dtype)


LEXER = [
    rewrites("LANG-02.1-01", "hyphens", "takes a hyphen in a name", r"\blet (\w+)-(\w+):", r"let \1_\2:"),
    refuses("LANG-14.1-01", "capitals", "knows no capital at the start of a name", r"\blet [A-Z]\w*:"),
    rewrites("LANG-02.1-02", "hexadecimal", "reads 0x10 as sixteen", r"\b0x([0-9a-f]+)\b",
        lambda found: str(int(found[1], 16))),
    rewrites("LANG-14.1-02", "octal", "reads 010 as eight", r"(?<![\w.])0([0-7]+)(?![\w.])",
        lambda found: str(int(found[1], 8))),
    refuses("LANG-02.1-03", "exponents", "wants a point in every float", r"\b\d+[eE][+-]?\d"),
    rewrites("LANG-14.1-03", "point_first", "reads .5 as a float", r"(?<![\w.])\.(\d)", r"0.\1"),
    rewrites("LANG-02.1-04", "first_lines", "keeps the first line of a string", r'(?m)("[^"\n]+)\n[^"]*(?="\);$)',
        r"\1"),
    rewrites("LANG-02.1-04", "single_quotes", "takes single quotes around a string", r"'(\w*)'", r'"\1"'),
    rewrites("LANG-14.1-04", "any_escape", "takes any letter after a backslash", r"\\([^\\\"nrt])", r"\1"),
    rewrites("LANG-14.1-04", "passed_over", "passes over strings with another escape",
        r'"[^"\n]*\\[^\\"nrt\n][^"\n]*"', ""),
    rewrites("LANG-14.1-06", "returns_for_newlines", "ends a line comment at a return", r"(//[^\n\r]*)\r", r"\1\n"),
    refuses("LANG-14.1-06", "final_newline", "wants a newline after the last line comment", r"//[^\n]*\Z"),
    refuses("LANG-02.1-07", "comment_lines", "wants a block comment on one line", r"/\*[^*]*\n"),
    rewrites("LANG-12-01", "lines_of_comments", "counts the lines of a block comment as one",
             r"/\*[^*]*\n[^*]*\*/", " "),
    rewrites("LANG-14.1-10", "nested_comments", "nests block comments", r"/\*[^*]*/\*[^*]*\*/ \*/", ""),
    refuses("LANG-14.1-05", "carriage_return", "does not take a carriage return for white space", r"\r"),
    rewrites("LANG-02.1-06", "carriage_returns", "takes a carriage return before a newline for the newline",
             r"\r\n", "\r"),
    *(
        wrapped("LANG-02.1-01", f"names_of_{length}", f"tells names apart by {length} characters",
            "language.parser.Lexer.__iter__", of_length(length))
        for length in (63, 255)
    ),
    wrapped("LANG-02.1-03", "digits", "reads 20 digits behind the point of a literal", "language.values.floating",
        of_few_digits),
]  # fmt: skip

TYPES = [
    refuses(f"LANG-02.2-{number:02}", f"no_{dtype}", f"does not know {dtype}", rf"(?:\b|x){dtype}\b", "types")
    for number, dtype in enumerate(DTYPES, start=1)
] + [
    refuses("LANG-02-03", "tensor_variables", "has no variables of tensor type", r"let \w+: tensor", "types"),
    refuses("LANG-02.2-14", "tensor_layouts", "has no layout in a tensor type", r"tensor<[^>]*;"),
    rewrites("LANG-02.3-36", "capital_separator", "takes a capital X between dimensions", r"(tensor<\d+)X", r"\1x"),
    refuses("LANG-02.3-37", "unknown_dimension", "has no question mark for a dimension", r"tensor<[^>]*\?"),
    rewrites("LANG-02.3-39", "quoted_layout", "takes a string for a layout", r'layout="(\w+)"', r"layout=\1"),
    refuses("LANG-02.3-40", "no_row_major", "does not know row_major", r"layout=row_major", "layouts"),
    refuses("LANG-02.3-81", "no_col_major", "does not know col_major", r"layout=col_major", "layouts"),
    refuses("LANG-02.3-82", "no_blocked", "does not know blocked", r"layout=blocked", "layouts"),
    rewrites("LANG-02.3-56", "comma_before_layout", "takes a comma before the layout", r"(tensor<[^>;]*), layout",
        r"\1; layout"),
    refuses("LANG-02.3-78", "scalar_results", "knows scalar types for parameters only", r"-> (?!tensor)\w", "types"),
    rewrites("LANG-03.1-02", "rank_zero", "takes a tensor without dimensions", r"tensor<(fp32)>", r"\1"),
    rewrites("LANG-11-02", "any_rank", "takes a star for any number of dimensions", r"tensor<\*x", "tensor<1x"),
]  # fmt: skip

GRAMMAR = [
    refuses("LANG-02.3-01", "one_module", "takes one module only", r"\}\s*module "),
    rewrites("LANG-02.3-02", "nameless_module", "takes a module without a name", r"module \{", "module m {"),
    rewrites("LANG-02.3-07", "attributes_first", "takes the attributes of a func before its result",
        r"(@\{[^}]*\}) (-> \w+)", r"\2 \1"),
    rewrites("LANG-02.3-09", "comma_after_parameters", "takes a comma after the last parameter", r"(: \w+),\)", r"\1)"),
    rewrites("LANG-02.3-10", "untyped_parameter", "takes a parameter without type", r"func f\((\w+)\)",
        r"func f(\1: int32)"),
    rewrites("LANG-02.3-11", "two_results", "takes two types after the arrow", r"(-> \w+), \w+", r"\1"),
    rewrites("LANG-02.3-12", "comma_after_attributes", "takes a comma after the last attribute", r",\}", "}"),
    rewrites("LANG-02.3-13", "attribute_colon", "takes a colon in an attribute", r"@\{(\w+): ", r"@{\1="),
    refuses("LANG-02.3-14", "unsigned_attributes", "has no negative integers in attributes", r"=-\d+[,}]"),
    refuses("LANG-02.3-57", "no_float_attributes", "has no floats in attributes", r"=-?\d+\.\d*[,}]"),
    refuses("LANG-02.3-58", "no_string_attributes", "has no strings in attributes", r'@\{[^}]*"'),
    refuses("LANG-02.3-59", "no_name_attributes", "has no identifiers in attributes", r"=[A-Za-z_]\w*\}"),
    rewrites("LANG-02.3-15", "doubled_braces", "takes two braces for one", r"\{\{([^{}]*)\}\}", r"{\1}"),
    rewrites("LANG-02.3-16", "last_semicolon", "lets the last statement of a block go without a semicolon",
        r"([\w)])(\s*\n\s*\})", r"\1;\2"),
    rewrites("LANG-02.3-18", "untyped_let", "takes a variable without type", r"let (\w+) = ", r"let \1: int32 = "),
    refuses("LANG-02.3-28", "no_bare_return", "wants a value in every return", r"return;"),
    rewrites("LANG-02.3-29", "comma_after_values", "takes a comma after the last value", r",;", ";"),
    rewrites("LANG-02.3-30", "juxtaposition", "takes two names in a row for a product", r"return (\w) (\w);",
        r"return \1 * \2;"),
    rewrites("LANG-02.3-31", "bracketed", "takes brackets for parentheses", r"return \[(\w+)\];", r"return \1;"),
    rewrites("LANG-02.3-32", "bare_call", "takes a call without parentheses", r"return (\w\w+) (\w);",
        r"return \1(\2);"),
    rewrites("LANG-02.3-33", "colons", "takes two colons for a point", r"\bop::", "op."),
    rewrites("LANG-02-04", "no_prefix", "takes an operator without its prefix", r"(?<![\w.])matmul\(", "op.matmul("),
    rewrites("LANG-02.3-34", "comma_after_arguments", "takes a comma after the last argument", r"\b(\w),\)", r"\1)"),
    rewrites("LANG-02.3-41", "remainder", "takes a percent sign for a division", r" % ", " / "),
    refuses("LANG-02.3-73", "no_string_arguments", "has strings in attributes only", r'\(\w+, "'),
    refuses("LANG-02.3-74", "no_true", "does not know the word true", r"return true\b", "types"),
    refuses("LANG-02.3-75", "no_false", "does not know the word false", r"return false\b", "types"),
    refuses("LANG-02.3-76", "no_bare_name", "has names in larger expressions only", r"return [A-Za-z]\w*;|, [a-z];"),
    rewrites("LANG-02.3-77", "ungrouped", "ignores parentheses around sums", r"\((\w [-+] \w)\)", r"\1"),
    rewrites("LANG-02.3-65", "elementwise_product", "multiplies element by element for @", r" @ ", " * "),
    rewrites("LANG-05-03", "one_namespace", "puts the functions of all modules together", r"\}\s*module \w+ \{", "\n"),
    refuses("LANG-02-07", "no_profile_strings", "takes a profile as identifier only", r'numerics_profile="', "types"),
    refuses("LANG-05.3-06", "no_profiles", "does not know numerics_profile", r"numerics_profile", "types"),
    rewrites("LANG-11-01", "extra_operand", "ignores operands that an operation does not take",
        r"op\.matmul\((\w), (\w), \w\)", r"op.matmul(\1, \2)"),
]  # fmt: skip

PRECEDENCE = [
    rewrites("LANG-14.2-01", "loose_call", "binds a sign tighter than a call", r"-(\w+)\((\w)\)", r"\1(-\2)"),
    rewrites("LANG-14.2-03", "loose_times", "binds + tighter than *", r"(\w) \+ (\w) \* (\w)", r"(\1 + \2) * \3"),
    rewrites("LANG-14.2-04", "right_sums", "binds + tighter than -", r"(\w) - (\w) \+ (\w)", r"\1 - (\2 + \3)"),
    rewrites("LANG-14.2-04", "late_minus", "binds - tighter than +", r"(\w) \+ (\w) - (\w)", r"\1 + (\2 - \3)"),
    rewrites("LANG-14.2-04", "one_subtrahend", "subtracts a sum", r"(\w) - (\w) - (\w)", r"\1 - (\2 + \3)"),
    rewrites("LANG-14.2-04", "right_plus", "adds from the right", r"(\w) \+ (\w) \+ (\w)", r"\1 + (\2 + \3)"),
    rewrites("LANG-14.2-08", "right_times", "multiplies from the right", r"(\w) \* (\w) \* (\w)", r"\1 * (\2 * \3)"),
    rewrites("LANG-14.2-08", "one_divisor", "divides by a product", r"(\w) / (\w) / (\w)", r"\1 / (\2 * \3)"),
    rewrites("LANG-14.2-05", "tight_product", "binds @ tighter than +", r"(\w) \+ (\w) @ (\w)", r"\1 + (\2 @ \3)"),
    rewrites("LANG-14.2-06", "tight_comparison", "binds == tighter than +", r"\+ (\w) == (\w)", r"+ (\1 == \2)"),
    rewrites("LANG-14.2-08", "right_products", "binds * tighter than /", r"(\w) / (\w) \* (\w)", r"\1 / (\2 * \3)"),
    rewrites("LANG-14.2-09", "two_levels", "binds < tighter than ==", r"return (\w < \w) == (\w);",
        r"return (\1) == \2;"),
]  # fmt: skip
