"""The part of the C preprocessor that headers of declarations need.

Comments, conditions, and macros without parameters. Included files are not read: `declarations` knows the names of the
standard headers. Macros with parameters are not expanded; for a header that declares by them, a vendor gives the output
of the C preprocessor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from .constants import evaluate_text
from .errors import UnreadableHeader

__all__ = ["Preprocessed", "expanded", "expanded_code", "preprocess"]

PREDEFINED = {"__STDC__": "1", "__STDC_VERSION__": "201112L"}
"""The macros of a C11 compiler, without those of C++."""

DEEPEST = 16
"""The longest chain of macros that expand to one another."""

_COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.DOTALL)
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*(.*)", re.DOTALL)
_OBJECT = re.compile(r"([A-Za-z_]\w*)(?:\s+(.*))?$", re.DOTALL)
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_EXTENSION = re.compile(r"\b__(?:attribute(?:__)?|declspec)\s*(?=\()")
_WORDS = re.compile(r"\b(?:__extension__|__restrict(?:__)?|__cdecl|__stdcall|__const)\b")


@dataclass(frozen=True)
class Preprocessed:
    """The remaining code, and the macros that are defined at its end."""

    code: str
    macros: dict[str, str]


@dataclass
class _Conditions:
    """The nested conditions: for each, True if it holds, and True if a branch of it was taken."""

    nested: list[tuple[bool, bool]] = field(default_factory=list)

    @property
    def hold(self) -> bool:
        return all(holds for holds, _ in self.nested)

    @property
    def may_be_otherwise(self) -> bool:
        """True if an #else or #elif of the innermost condition may be taken."""
        return all(holds for holds, _ in self.nested[:-1]) and not any(taken for _, taken in self.nested[-1:])

    def begin(self, holds: bool) -> None:
        self.nested.append((holds, holds))

    def otherwise(self, holds: bool) -> None:
        _, taken = self.end()
        self.nested.append((holds and not taken, taken or holds))

    def end(self) -> tuple[bool, bool]:
        if not self.nested:
            raise UnreadableHeader("an #else, #elif or #endif without its #if")
        return self.nested.pop()


def preprocess(text: str) -> Preprocessed:
    """Return the code of a header. Raises `UnreadableHeader` for malformed conditions."""
    macros = dict(PREDEFINED)
    return Preprocessed(_without_extensions(_obeyed(text, macros)), macros)


def expanded_code(text: str, predefined: Mapping[str, str]) -> str:
    """Return the code under other macros, without compilers' extensions of the language. Raises as `preprocess`."""
    return _obeyed(text, dict(predefined))


def _obeyed(text: str, macros: dict[str, str]) -> str:
    """Return the code without directives, all carried out; defined macros are added to `macros`."""
    conditions, kept = _Conditions(), []
    joined = text.replace("\r\n", "\n").replace("\\\n", "")
    for line in _COMMENT.sub(lambda found: found[1] or " ", joined).split("\n"):
        directive = _DIRECTIVE.match(line)
        if directive is None:
            kept.append(expanded(line, macros) if conditions.hold else "")
        else:
            kept.append("")
            _obey(directive[1], directive[2].strip(), macros, conditions)
    if conditions.nested:
        raise UnreadableHeader("an #if without its #endif")
    return "\n".join(kept)


def _obey(word: str, rest: str, macros: dict[str, str], conditions: _Conditions) -> None:
    match word:
        case "ifdef":
            conditions.begin(rest in macros)
        case "ifndef":
            conditions.begin(rest not in macros)
        case "if":
            conditions.begin(conditions.hold and _holds(rest, macros))
        case "elif":
            conditions.otherwise(conditions.may_be_otherwise and _holds(rest, macros))
        case "else":
            conditions.otherwise(True)
        case "endif":
            conditions.end()
        case "define" if conditions.hold:
            if found := _OBJECT.match(rest):  # one with parameters has a bracket directly after its name
                macros[found[1]] = (found[2] or "").strip()
        case "undef" if conditions.hold:
            macros.pop(rest, None)


def _holds(expression: str, macros: dict[str, str]) -> bool:
    replaced = _DEFINED.sub(lambda found: str(int((found[1] or found[2]) in macros)), expression)
    return bool(evaluate_text(_NAME.sub("0", expanded(replaced, macros)), {}))


def expanded(line: str, macros: Mapping[str, str]) -> str:
    """Return the text with its macros replaced, to a depth."""
    for _ in range(DEEPEST):
        replaced = _NAME.sub(lambda found: macros.get(found[0], found[0]), line)
        if replaced == line:
            return line
        line = replaced
    return line


def _without_extensions(code: str) -> str:
    """Return the code without compilers' extensions of the language, such as attributes."""
    while found := _EXTENSION.search(code):
        end, depth = found.end(), 0
        while end < len(code):
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
            if depth == 0:
                break
        code = code[: found.start()] + code[end:]
    return _WORDS.sub(" ", code)
