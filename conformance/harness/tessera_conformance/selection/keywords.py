"""`-k` answered from the index of cases, before anything is collected: which cases it may mean, or what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from _pytest.mark.expression import Expression

from tessera_conformance.locations import suite_directory
from tessera_conformance.registry.case_index import CaseIndex
from tessera_conformance.selection.choice import NothingChosen
from tessera_conformance.terminal.errors import error_text
from tessera_conformance.terminal.near_names import meant

UNINDEXED = (
    "clause",
    "feature",
    "judges",
    "title",
    "level",
    "parametrize",
    "usefixtures",
    "filterwarnings",
    "hypothesis",
)
"""Names of marks, which pytest matches too and which the index does not have."""
_NAME = re.compile(r"[^\s()]+")
_WORD = re.compile(r"[a-z0-9.]+")


def matching(expression: str, index: CaseIndex) -> CaseIndex | None:
    """The cases that `-k` means; None where that cannot be told from the index.

    Raises:
        NothingChosen: it means no case.
    """
    words = _words(expression)
    if any(word in name for word in words for name in (*UNINDEXED, suite_directory().name)):
        return None
    try:
        compiled = Expression.compile(expression)
    except SyntaxError:
        return None  # pytest says what is wrong
    kept = {identifier: case for identifier, case in index.items() if compiled.evaluate(_Names(names_of(case.node)))}
    if not kept:
        raise NothingChosen(nothing(expression, [case.node for case in index.values()]))
    return kept


class _Names:
    """The names of a case, of which `-k` gives parts."""

    def __init__(self, names: Iterable[str]) -> None:
        self._text = "\n".join(names).lower()

    def __call__(self, part: str, /, **arguments: str | int | bool | None) -> bool:
        return part.lower() in self._text


def names_of(node: str) -> list[str]:
    """What pytest calls the folders, the file, the class and the test of a node id, parameters and all."""
    path, *inside = node.split("::")
    return [*PurePosixPath(path).parts, *inside]


def _words(expression: str) -> list[str]:
    return [word for word in _NAME.findall(expression.lower()) if word not in ("and", "or", "not")]


def nothing(expression: str, nodes: Sequence[str]) -> str:
    """Say which word of an expression that means none of the cases none has, and what may have been meant."""
    text = "\n".join(nodes).lower()
    absent = next((word for word in _words(expression) if word not in text), None)
    if absent is None:
        return error_text(f"-k {expression}", "no case has all of these names", do="leave out one of them")
    known = {*_WORD.findall(text), *(PurePosixPath(node.partition("::")[0]).stem[5:] for node in nodes)}
    hint = meant(absent, known).removeprefix("; ")
    return error_text(f"-k {expression}", f"no case has {absent} in its name", do=hint or "`--list` shows the cases")
