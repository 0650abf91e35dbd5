"""Diagnostics, and JSON documents from outside, bounded before they are read."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from itertools import islice
from typing import Any, Literal, NamedTuple, NoReturn

from ..numerics.formats import shown

# Words of diagnostics: the nearest known spelling of a name, and counts of things.


LONGEST = 100
"""The longest name, in characters, for which a near spelling is searched."""
MOST_KNOWN = 1000
"""The most names among which a near spelling is searched."""


def did_you_mean(word: str, candidates: Iterable[str], template: str = "{}") -> str:
    """Return a remedy that names the nearest spelling, or ""; of spellings that are as near, the first candidate."""
    names = list(islice(candidates, MOST_KNOWN))
    near = [name for name in names if name == word.lower()]
    if not near and len(word) <= LONGEST:
        nearest = get_close_matches(word, names, len(names) or 1, 0.6)
        ratio = SequenceMatcher(None, nearest[0], word).ratio() if nearest else 0
        near = sorted((name for name in nearest if SequenceMatcher(None, name, word).ratio() == ratio), key=names.index)
    return f"did you mean {template.format(near[0])}?" if near else ""


def listed(names: Sequence[str], value: object) -> str:
    """Return the allowed names, and the one that `value` probably means, if it is near one."""
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    return ", ".join(names) + (f": {hint}" if hint else "")


def counted(number: int, noun: str) -> str:
    """Return a count such as `1 operand` or `2 operands`."""
    return f"{number} {noun}{'s' * (number != 1)}"


# The error where an optional package is required and not installed.


class MissingTool(Exception):
    """A required tool is not installed; `install` says how to get it."""

    def __init__(self, tool: str, install: str) -> None:
        super().__init__(tool, install)
        self.tool = tool
        self.install = install

    def __str__(self) -> str:
        return f"{self.tool} is not installed: {self.install}"


# The findings of a front end or a verifier about a program: where, what, why, and what now (spec sections 11 and 12).
#
# A `Diagnostic` is data; `render` makes its text where it is shown. `Rejection` answers an illegal program,
# `UnsupportedConstruct` a legal one that this reference does not implement: the two are always distinct.


Category = Literal["syntax", "types", "shapes", "layouts", "schedule", "tile", "distributed", "numerics"]
Phase = Literal["lex", "parse", "verify", "lower", "execute"]
Severity = Literal["error", "warning"]

TAB = "\t"


class Span(NamedTuple):
    """A stretch of source text. Lines and columns count from 1; the end column is the first one outside."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Location:
    """A span and its file."""

    filename: str
    span: Span

    def __str__(self) -> str:
        return f"{self.filename}:{self.span.line}:{self.span.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One finding, with its category from section 11 and the parts that section 12 asks for (LANG-12-01 to -03)."""

    category: Category
    phase: Phase
    message: str
    span: Span
    filename: str = "<source>"
    operands: tuple[str, ...] = ()
    requirement: str = ""
    clause: str = ""
    remedy: str = ""
    severity: Severity = "error"


class Rejection(Exception):
    """The program is illegal, or failed while it ran; its errors give the reasons in source order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda diagnostic: diagnostic.span))
        super().__init__("; ".join(diagnostic.message for diagnostic in self.diagnostics))


class UnsupportedConstruct(Exception):
    """A legal construct that this reference does not implement; it never reads as a rejection."""

    def __init__(self, feature: str, location: Location) -> None:
        self.feature = feature
        self.location = location
        self.reason = _reason(feature)
        super().__init__(f"{location}: {self.reason}")


_LIMITS = {
    "deep_calls": "calls nest more deeply than they can be executed here: call fewer functions from within others",
    "deep_nesting": "this nests more deeply than it can be read here: split it into functions",
    "deep_regions": "branches and loops nest more deeply than they can be executed here: split the kernel",
    "more_memory": "this needs more memory than there is: use smaller tensors",
    "complex_constant": "no IR holds complex constants: make it a parameter",
}
_INSTEAD = {
    "execute": "it is no tensor or scalar, which alone are given from outside and returned",
    "lower": "kernels count elements in 32 bits: run the function at Graph or Schedule IR",
    "target": "Target IR does not express it: run the function at Tile IR or above",
}


def _reason(feature: str) -> str:
    """Return what this reference cannot do, and what to do instead, with the name of the feature."""
    area, _, construct = feature.partition(".")
    if construct in _LIMITS:
        return f"{_LIMITS[construct]} ({feature})"
    return f"{feature} is not supported" + (f": {_INSTEAD[area]}" if area in _INSTEAD else "")


HIDDEN = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Control and format characters except the tab, which would move the cursor or reverse the displayed text."""


def _shown(line: str) -> str:
    """Return a line with a replacement of one column for each hidden character."""
    return HIDDEN.sub("\ufffd", line)


MOST_COLUMNS = 160
"""The longest part of a source line that is quoted."""
CUT = "..."
BEFORE = 60
"""The columns quoted before a place in a longer line."""


def _excerpt(text: str, column: int, width: int) -> tuple[str, int, int]:
    """Return an excerpt of a line, and the column and width of a place in it."""
    if len(text) <= MOST_COLUMNS:
        return text, column, width
    first = min(max(column - 1 - BEFORE, 0), len(text) - MOST_COLUMNS)
    shown = text[first : first + MOST_COLUMNS]
    shown = (CUT if first else shown[: len(CUT)]) + shown[len(CUT) :]
    if first + MOST_COLUMNS < len(text):
        shown = shown[: -len(CUT)] + CUT
    return shown, column - first, min(width, MOST_COLUMNS - (column - first) + 1)


def render(diagnostic: Diagnostic, source: str) -> str:
    """Return a diagnostic as text for people: the line, a caret under the place, the requirement and the remedy."""
    span = diagnostic.span
    label = f"{span.line:>4} | "
    gutter = " " * (len(label) - 2) + "| "
    lines = source.split("\n")
    text = _shown(lines[span.line - 1].rstrip("\r")) if span.line <= len(lines) else ""
    end = span.end_column if span.end_line == span.line else len(text) + 1
    text, column, width = _excerpt(text, span.column, max(1, end - span.column))
    carets = "^" * width
    margin = "".join(TAB if character == TAB else " " for character in text[: column - 1].ljust(column - 1))
    out = [
        f"{diagnostic.severity}[{diagnostic.category}]: {diagnostic.message}",
        f"  --> {diagnostic.filename}:{span.line}:{span.column}",
        f"{label}{text}",
        f"{gutter}{margin}{carets} {', '.join(diagnostic.operands)}".rstrip(),
    ]
    if diagnostic.requirement:
        clause = f"   ({diagnostic.clause})" if diagnostic.clause else ""
        out.append(f"   = requires {diagnostic.requirement}{clause}")
    if diagnostic.remedy:
        out.append(f"   = {diagnostic.remedy}")
    return "\n".join([*(_shown(line) for line in out[:2]), *out[2:4], *(_shown(line) for line in out[4:])])


# JSON texts from outside, such as packages, topologies and the metadata of images: bounded before they are read.


MOST_BYTES = 32 << 20
MOST_VALUES = 2_000_000
DEEPEST = 400
"""The levels of nesting; the statements of a package need two or three for each level of their own."""


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text without NaN and infinities, and with unique member names in each object.

    Raises `ValueError` for every fault. Each value follows a comma, a bracket or a brace: counting these bounds the
    memory before it is taken.
    """
    signs: tuple[Any, ...] = (b",", b"[", b"{") if isinstance(text, bytes) else (",", "[", "{")
    if len(text) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes")
    if len(text) > MOST_VALUES and sum(map(text.count, signs)) > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES} values")
    try:
        value = json.loads(text.decode() if isinstance(text, bytes) else text, **STRICT)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [value]
    for _ in range(DEEPEST):
        level = [part for holder in level for part in _parts(holder)]
        if not level:
            return value
    raise ValueError("nested too deeply")


def members_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises `ValueError` for two of one name."""
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise ValueError(f"two members {shown(next(name for name in counts if counts[name] > 1))}")
    return members


def no_constant(name: str) -> NoReturn:
    """Raise `ValueError` for NaN, Infinity or -Infinity, which are not numbers of JSON."""
    raise ValueError(f"{name} is no number of JSON")


STRICT: Mapping[str, Any] = {"object_pairs_hook": members_once, "parse_constant": no_constant}
"""The hooks of Python's `json` that enforce both."""


def _parts(value: Any) -> list[Any]:
    """Return the lists and objects directly within a value."""
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in values if isinstance(part, dict | list)]
