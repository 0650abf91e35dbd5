"""Implementations that find what they keep by a part of its key, or read memory in its own order (2.1, 4 and 5.1)."""

import unicodedata

from tessera_reference.numerics.array import Array

from .changes import instead, wrapped
from .language_syntax import filtered, rewrites
from .printed_ir import printing
from .verifiers_of_text import misreads

PROGRAMS = {}

CACHES = [
    filtered("LANG-04-01", "lower_case", "finds a program by its letters in lower case",
        lambda source: PROGRAMS.setdefault(source.lower(), source)),
    filtered("LANG-02.3-46", "composed", "composes accents", lambda source: unicodedata.normalize("NFC", source)),
    rewrites("LANG-02.1-06", "continued", "continues a comment behind a backslash", r"(//[^\n]*\\)\n", r"\1 "),
    wrapped("LANG-11-13", "first_profile", "takes the profile of the first function",
        "language.modules.ModuleLowering.profile", lambda usual, self, name: usual(self, next(iter(self.declared)))),
    rewrites("LANG-10-04", "next_branch", "keeps the profile of a branch for the next",
        r'(numerics\.profile\("strict"\);)(.*?) else \{', r"\1\2 else { \1"),
    instead("LANG-02-04", "memory_order", "reshapes in the order of memory", "numerics.movement.reshaped",
        lambda x, shape: Array(x.dtype, x.values.reshape(shape, order="A"))),
    wrapped("LANG-04-06", "short_blocks", "counts blocks of numbers in 32 bits", "numerics.random._blocks",
        lambda usual, seed, stream, blocks: usual(seed, stream, blocks & 0xFFFFFFFF)),
    misreads("LANG-05-01", "short_names", "reads 30 letters of a value's name", r"%(\w{30})\w+", r"%\1"),
    printing("LANG-05.1-02", "one_mesh", "prints one mesh", r'^ *"tessera.graph.mesh".*sym_name = "h".*\n',
        lambda found: ""),
]  # fmt: skip
