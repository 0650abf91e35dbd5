"""Front ends and printers that read escapes one kind after another, cut strings, or print them unescaped (2.1)."""

from functools import partial

from tessera_reference.language import parser

from .changes import instead
from .printed_ir import printing


def unescaped(clause, name, description, read):
    """Return a violation that reads the text between quotes differently."""

    def string_of(token):
        return None if token is None else read(token.value[1:-1])

    return instead(clause, name, description, "language.parser._string", string_of)


def in_turn(order, text):
    for letter in order:
        text = text.replace(f"\\{letter}", parser.ESCAPES[letter])
    return text


VIOLATIONS = [
    unescaped("LANG-14.1-07", "quotes_last", "reads backslashes before quotes and letters", partial(in_turn, '\\nrt"')),
    unescaped("LANG-02.1-05", "stripped", "strips escaped quotes from the ends of a string",
        lambda text: in_turn('"nrt\\', text).strip('"')),
    unescaped("LANG-02.1-05", "cut", "ends the value of a string at its second quote",
        lambda text: '"'.join(in_turn('nrt"', text).split('"')[:2])),
    unescaped("LANG-14.1-08", "return_as_newline", "reads an escaped carriage return as a newline",
        lambda text: in_turn('nt"', text).replace("\\r", "\n")),
    unescaped("LANG-14.1-09", "tab_as_blanks", "reads an escaped tab as blanks",
        lambda text: in_turn('nr"', text).replace("\\t", "    ")),
    printing("LANG-02.1-05", "printed_bare", "prints quotes of strings without a backslash", r'message = ".*"',
        lambda found: str(found[0]).replace('\\"', '"')),
    printing("LANG-02.1-05", "printed_in_ascii", "prints signs beyond ASCII as question marks", r"[^\x00-\x7f]",
        lambda found: "?"),
    printing("LANG-02.1-35", "printed_newlines", "prints newlines of strings as blanks", r"\\0A", lambda found: " "),
]  # fmt: skip
