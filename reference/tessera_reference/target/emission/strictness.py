"""What must not stand in emitted LLVM IR: permission to compute otherwise than is written (section 10)."""

from __future__ import annotations

import re
from collections.abc import Iterator

_FLAGS = re.compile(r"\b(?:fast|contract|reassoc|nnan|ninf|nsz|arcp|afn|nsw|nuw|exact)\b")
_FUSED = re.compile(r"@llvm\.(?:fma|fmuladd|experimental\.constrained)\.")
_NAMES = re.compile(r"[%@][-\w.$]+")
_INSTRUCTION = re.compile(r"= (?:tail |musttail )?[a-z]+ ")
_ATTRIBUTES = re.compile(r'"(?:unsafe|no-nans|no-infs|approx-func)-fp-math"="true"|"fp-contract"')


def permissions(text: str) -> Iterator[str]:
    """Each line that permits a compiler to fuse, reassociate, approximate or assume."""
    for line in text.splitlines():
        flagged = _INSTRUCTION.search(line) and _FLAGS.search(_NAMES.sub("", line))
        if flagged or _FUSED.search(line) or _ATTRIBUTES.search(line):
            yield line.strip()
