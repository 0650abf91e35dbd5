"""Front ends with one rule of the lexer, the grammar or the table of precedence changed (sections 2, 14.1 and 14.2).

Each is the reference behind a filter that knows one pattern of source text. `refuses` refuses what the rule allows;
`rewrites` reads it as another text: an illegal text as its legal twin, or a legal text as another one.
"""

import re

from tessera_conformance.adapter import Refusal
from tessera_conformance.dsl import DTYPES, RESERVED
from tessera_conformance.protocol import Diagnostic

from .changes import around, instead

READERS = tuple(f"adapter.ReferenceAdapter.language_{name}" for name in ("parse", "verify", "lower", "execute"))


def filtered(name, clause, description, read):
    """Return a violation that reads its source through a filter."""
    reads = around(lambda usual, self, *, source, **request: usual(self, source=read(source), **request))
    return instead(name, clause, description, READERS, reads)


def rewrites(name, clause, description, pattern, by):
    """Return a violation that replaces the pattern in the source."""
    return filtered(name, clause, description, lambda source: re.sub(pattern, by, source))


def refuses(name, clause, description, pattern, category="syntax"):
    """Return a violation that refuses sources with the pattern, at its line."""

    def read(source):
        match = re.search(pattern, source)
        if match is None:
            return source
        line = source.count("\n", 0, match.start()) + 1
        phase = "parse" if category == "syntax" else "verify"
        raise Refusal(category, phase, description, [Diagnostic(category, description, line=line)])

    return filtered(name, clause, description, read)


WORDS = [
    rewrites(f"{word}_as_a_name", f"LANG-02.1-{number:02}", f"does not reserve the word {word}",
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
    rewrites("hyphens", "LANG-02.1-01", "takes a hyphen in a name", r"\blet (\w+)-(\w+):", r"let \1_\2:"),
    refuses("capitals", "LANG-14.1-01", "knows no capital at the start of a name", r"\blet [A-Z]\w*:"),
    rewrites("hexadecimal", "LANG-02.1-02", "reads 0x10 as sixteen", r"\b0x([0-9a-f]+)\b",
        lambda found: str(int(found[1], 16))),
    rewrites("octal", "LANG-14.1-02", "reads 010 as eight", r"(?<![\w.])0([0-7]+)(?![\w.])",
        lambda found: str(int(found[1], 8))),
    refuses("exponents", "LANG-02.1-03", "wants a point in every float", r"\b\d+[eE][+-]?\d"),
    rewrites("point_first", "LANG-14.1-03", "reads .5 as a float", r"(?<![\w.])\.(\d)", r"0.\1"),
    rewrites("first_lines", "LANG-02.1-04", "keeps the first line of a string", r'(?m)("[^"\n]+)\n[^"]*(?="\);$)',
        r"\1"),
    rewrites("single_quotes", "LANG-02.1-04", "takes single quotes around a string", r"'(\w*)'", r'"\1"'),
    rewrites("any_escape", "LANG-14.1-04", "takes any letter after a backslash", r"\\([^\\\"nrt])", r"\1"),
    rewrites("returns_for_newlines", "LANG-14.1-06", "ends a line comment at a return", r"(//[^\n\r]*)\r", r"\1\n"),
    refuses("final_newline", "LANG-14.1-06", "wants a newline after the last line comment", r"//[^\n]*\Z"),
    refuses("comment_lines", "LANG-02.1-07", "wants a block comment on one line", r"/\*[^*]*\n"),
    rewrites("lines_of_comments", "LANG-12-01", "counts the lines of a block comment as one",
             r"/\*[^*]*\n[^*]*\*/", " "),
    rewrites("nested_comments", "LANG-14.1-10", "nests block comments", r"/\*[^*]*/\*[^*]*\*/ \*/", ""),
    refuses("carriage_return", "LANG-14.1-05", "does not take a carriage return for white space", r"\r"),
    rewrites("carriage_returns", "LANG-02.1-06", "takes a carriage return before a newline for the newline",
             r"\r\n", "\r"),
    *(
        instead(f"names_of_{length}", "LANG-02.1-01", f"tells names apart by {length} characters",
            "language.parser.Lexer.__iter__", around(of_length(length)))
        for length in (63, 255)
    ),
    instead("digits", "LANG-02.1-03", "reads 20 digits behind the point of a literal", "language.values.floating",
        around(of_few_digits)),
]  # fmt: skip

TYPES = [
    refuses(f"no_{dtype}", f"LANG-02.2-{number:02}", f"does not know {dtype}", rf"(?:\b|x){dtype}\b", "types")
    for number, dtype in enumerate(DTYPES, start=1)
] + [
    refuses("tensor_variables", "LANG-02-03", "has no variables of tensor type", r"let \w+: tensor", "types"),
    refuses("tensor_layouts", "LANG-02.2-14", "has no layout in a tensor type", r"tensor<[^>]*;"),
    rewrites("capital_separator", "LANG-02.3-36", "takes a capital X between dimensions", r"(tensor<\d+)X", r"\1x"),
    refuses("unknown_dimension", "LANG-02.3-37", "has no question mark for a dimension", r"tensor<[^>]*\?"),
    rewrites("quoted_layout", "LANG-02.3-39", "takes a string for a layout", r'layout="(\w+)"', r"layout=\1"),
    refuses("no_row_major", "LANG-02.3-40", "does not know row_major", r"layout=row_major", "layouts"),
    refuses("no_col_major", "LANG-02.3-81", "does not know col_major", r"layout=col_major", "layouts"),
    refuses("no_blocked", "LANG-02.3-82", "does not know blocked", r"layout=blocked", "layouts"),
    rewrites("comma_before_layout", "LANG-02.3-56", "takes a comma before the layout", r"(tensor<[^>;]*), layout",
        r"\1; layout"),
    refuses("scalar_results", "LANG-02.3-78", "knows scalar types for parameters only", r"-> (?!tensor)\w", "types"),
    rewrites("rank_zero", "LANG-03.1-02", "takes a tensor without dimensions", r"tensor<(fp32)>", r"\1"),
    rewrites("any_rank", "LANG-11-02", "takes a star for any number of dimensions", r"tensor<\*x", "tensor<1x"),
]  # fmt: skip

GRAMMAR = [
    refuses("one_module", "LANG-02.3-01", "takes one module only", r"\}\s*module "),
    rewrites("nameless_module", "LANG-02.3-02", "takes a module without a name", r"module \{", "module m {"),
    rewrites("attributes_first", "LANG-02.3-07", "takes the attributes of a func before its result",
        r"(@\{[^}]*\}) (-> \w+)", r"\2 \1"),
    rewrites("comma_after_parameters", "LANG-02.3-09", "takes a comma after the last parameter", r"(: \w+),\)", r"\1)"),
    rewrites("untyped_parameter", "LANG-02.3-10", "takes a parameter without type", r"func f\((\w+)\)",
        r"func f(\1: int32)"),
    rewrites("two_results", "LANG-02.3-11", "takes two types after the arrow", r"(-> \w+), \w+", r"\1"),
    rewrites("comma_after_attributes", "LANG-02.3-12", "takes a comma after the last attribute", r",\}", "}"),
    rewrites("attribute_colon", "LANG-02.3-13", "takes a colon in an attribute", r"@\{(\w+): ", r"@{\1="),
    refuses("unsigned_attributes", "LANG-02.3-14", "has no negative integers in attributes", r"=-\d+[,}]"),
    refuses("no_float_attributes", "LANG-02.3-57", "has no floats in attributes", r"=-?\d+\.\d*[,}]"),
    refuses("no_string_attributes", "LANG-02.3-58", "has no strings in attributes", r'@\{[^}]*"'),
    refuses("no_name_attributes", "LANG-02.3-59", "has no identifiers in attributes", r"=[A-Za-z_]\w*\}"),
    rewrites("doubled_braces", "LANG-02.3-15", "takes two braces for one", r"\{\{([^{}]*)\}\}", r"{\1}"),
    rewrites("last_semicolon", "LANG-02.3-16", "lets the last statement of a block go without a semicolon",
        r"([\w)])(\s*\n\s*\})", r"\1;\2"),
    rewrites("untyped_let", "LANG-02.3-18", "takes a variable without type", r"let (\w+) = ", r"let \1: int32 = "),
    refuses("no_bare_return", "LANG-02.3-28", "wants a value in every return", r"return;"),
    rewrites("comma_after_values", "LANG-02.3-29", "takes a comma after the last value", r",;", ";"),
    rewrites("juxtaposition", "LANG-02.3-30", "takes two names in a row for a product", r"return (\w) (\w);",
        r"return \1 * \2;"),
    rewrites("bracketed", "LANG-02.3-31", "takes brackets for parentheses", r"return \[(\w+)\];", r"return \1;"),
    rewrites("bare_call", "LANG-02.3-32", "takes a call without parentheses", r"return (\w\w+) (\w);",
        r"return \1(\2);"),
    rewrites("colons", "LANG-02.3-33", "takes two colons for a point", r"\bop::", "op."),
    rewrites("no_prefix", "LANG-02-04", "takes an operator without its prefix", r"(?<![\w.])matmul\(", "op.matmul("),
    rewrites("comma_after_arguments", "LANG-02.3-34", "takes a comma after the last argument", r"\b(\w),\)", r"\1)"),
    rewrites("remainder", "LANG-02.3-41", "takes a percent sign for a division", r" % ", " / "),
    refuses("no_string_arguments", "LANG-02.3-73", "has strings in attributes only", r'\(\w+, "'),
    refuses("no_true", "LANG-02.3-74", "does not know the word true", r"return true\b", "types"),
    refuses("no_false", "LANG-02.3-75", "does not know the word false", r"return false\b", "types"),
    refuses("no_bare_name", "LANG-02.3-76", "has names in larger expressions only", r"return [A-Za-z]\w*;|, [a-z];"),
    rewrites("ungrouped", "LANG-02.3-77", "ignores parentheses around sums", r"\((\w [-+] \w)\)", r"\1"),
    rewrites("elementwise_product", "LANG-02.3-65", "multiplies element by element for @", r" @ ", " * "),
    rewrites("one_namespace", "LANG-05-03", "puts the functions of all modules together", r"\}\s*module \w+ \{", "\n"),
    refuses("no_profile_strings", "LANG-02-07", "takes a profile as identifier only", r'numerics_profile="', "types"),
    refuses("no_profiles", "LANG-05.3-06", "does not know numerics_profile", r"numerics_profile", "types"),
    rewrites("extra_operand", "LANG-11-01", "ignores operands that an operation does not take",
        r"op\.matmul\((\w), (\w), \w\)", r"op.matmul(\1, \2)"),
]  # fmt: skip

PRECEDENCE = [
    rewrites("loose_call", "LANG-14.2-01", "binds a sign tighter than a call", r"-(\w+)\((\w)\)", r"\1(-\2)"),
    rewrites("loose_times", "LANG-14.2-03", "binds + tighter than *", r"(\w) \+ (\w) \* (\w)", r"(\1 + \2) * \3"),
    rewrites("right_sums", "LANG-14.2-04", "binds + tighter than -", r"(\w) - (\w) \+ (\w)", r"\1 - (\2 + \3)"),
    rewrites("late_minus", "LANG-14.2-04", "binds - tighter than +", r"(\w) \+ (\w) - (\w)", r"\1 + (\2 - \3)"),
    rewrites("one_subtrahend", "LANG-14.2-04", "subtracts a sum", r"(\w) - (\w) - (\w)", r"\1 - (\2 + \3)"),
    rewrites("right_plus", "LANG-14.2-04", "adds from the right", r"(\w) \+ (\w) \+ (\w)", r"\1 + (\2 + \3)"),
    rewrites("right_times", "LANG-14.2-08", "multiplies from the right", r"(\w) \* (\w) \* (\w)", r"\1 * (\2 * \3)"),
    rewrites("one_divisor", "LANG-14.2-08", "divides by a product", r"(\w) / (\w) / (\w)", r"\1 / (\2 * \3)"),
    rewrites("tight_product", "LANG-14.2-05", "binds @ tighter than +", r"(\w) \+ (\w) @ (\w)", r"\1 + (\2 @ \3)"),
    rewrites("tight_comparison", "LANG-14.2-06", "binds == tighter than +", r"\+ (\w) == (\w)", r"+ (\1 == \2)"),
    rewrites("right_products", "LANG-14.2-08", "binds * tighter than /", r"(\w) / (\w) \* (\w)", r"\1 / (\2 * \3)"),
    rewrites("two_levels", "LANG-14.2-09", "binds < tighter than ==", r"return (\w < \w) == (\w);",
        r"return (\1) == \2;"),
]  # fmt: skip
