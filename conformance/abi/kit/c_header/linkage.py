"""The linkage and calling conventions of a header's functions, as a C++ compiler reads them.

Without `extern "C"` C++ mangles their names; a keyword or an attribute may require another calling convention than that
of the platform's C. A header that does not distinguish C++ from C, or that the preprocessor of C has processed, is one
of C, whose functions are C's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .preprocessing import expanded_code

__all__ = ["Linkage", "linkages"]

CPLUSPLUS = {"__cplusplus": "201703L"}

CONVENTIONS = frozenset(
    f"{before}{name}{after}"
    for name in ("stdcall", "fastcall", "thiscall", "vectorcall", "regcall", "pascal", "ms_abi", "sysv_abi", "regparm")
    for before, after in (("", ""), ("_", ""), ("__", ""), ("__", "__"))
) | {"pcs", "preserve_all", "preserve_most", "aarch64_vector_pcs"}
"""Keywords of compilers, and names of attributes, that change the calling convention of a function."""

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\S')


@dataclass(frozen=True)
class Linkage:
    """A declaration's linkage: true for C linkage in C++, and the words that require another calling convention."""

    is_c: bool
    conventions: tuple[str, ...] = ()


def linkages(text: str) -> Mapping[str, Linkage]:
    """Return the linkage of each function that a header declares. Raises `UnreadableHeader`."""
    linkages: dict[str, Linkage] = {}
    is_of_c = "__cplusplus" not in text
    for statement, within_c in _statements(_TOKEN.findall(expanded_code(text, CPLUSPLUS))):
        name = _function(statement)
        if name is not None:
            conventions = tuple(word for word in statement if word in CONVENTIONS)
            linkages[name] = Linkage(is_of_c or within_c or statement[:2] == ["extern", '"C"'], conventions)
    return linkages


def _statements(tokens: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Yield each statement up to its semicolon, without bodies of structures, and True within `extern "C"`."""
    blocks: list[bool] = []
    statement: list[str] = []
    inside = 0
    for token in tokens:
        begins_linkage = token == "{" and len(statement) == 2 and statement[0] == "extern"
        if inside or (token == "{" and not begins_linkage):
            inside += {"{": 1, "}": -1}.get(token, 0)
        elif begins_linkage:
            blocks.append(statement[1] == '"C"')
            statement = []
        elif token == "}":
            blocks = blocks[:-1]
            statement = []
        elif token == ";":
            yield statement, blocks[-1:] == [True]
            statement = []
        else:
            statement.append(token)


def _function(statement: list[str]) -> str | None:
    """Return the function that a statement declares: the last name before a bracket that is not an attribute's."""
    if statement[:1] == ["typedef"]:
        return None
    depth = 0
    for token, following in zip(statement, [*statement[1:], ""], strict=True):
        if depth == 0 and following == "(" and re.match(r"tess\w+$", token):
            return token
        depth += {"(": 1, ")": -1}.get(token, 0)
    return None
