"""From parsed TOML to typed rows, judging the form of every field on the way.

The forms below say what the JSON Schemas under `schemas/registry` say; they are repeated here because loading the
registry must not wait for a schema library, and a test holds both equal over mutated files. What relates one row to
another is `consistency`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tessera_conformance.registry.errors import RegistryError, SchemaViolation
from tessera_conformance.registry.model import (
    AREAS,
    DOCUMENTS,
    LEVELS,
    VERIFICATIONS,
    Chapter,
    Clause,
    Document,
    Interpretation,
)

FORMAT = 1

CLAUSE_ID = re.compile(r"(RT|LANG|HIO|COLL|WSP)-[A-Za-z0-9]+(\.[A-Z0-9]+)*-[0-9]{2}")
INTERPRETATION_ID = re.compile(r"AMB-(RT|LANG|HIO|COLL|WSP)-[0-9]{2,3}")


@dataclass(frozen=True)
class Form:
    """What a field may hold, in words and as a predicate."""

    required: str
    accepts: Callable[[Any], bool]
    optional: bool = False


def _matching(pattern: str | re.Pattern[str], required: str, optional: bool = False) -> Form:
    compiled = re.compile(pattern)
    return Form(required, lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None, optional)


def _one_of(*values: str) -> Form:
    return Form(f"one of {', '.join(values)}", lambda value: isinstance(value, str) and value in values)


def _list_of(item: Form, at_least: int = 0, distinct: bool = True, optional: bool = False) -> Form:
    def accepts(value: Any) -> bool:
        return (
            isinstance(value, list)
            and len(value) >= at_least
            and all(map(item.accepts, value))
            and (not distinct or len(set(value)) == len(value))
        )

    return Form(f"a list of at least {at_least}, each {item.required}, none twice", accepts, optional)


def _is_natural(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_span(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_natural, value))


def _text(optional: bool = False) -> Form:
    return _matching(r"\S(.*\S)?", "one line of text without blanks around it", optional)


def _slug(optional: bool = False) -> Form:
    return _matching(r"[a-z0-9]+(-[a-z0-9]+)*", "lower-case words joined by hyphens", optional)


_SECTION = r"[A-Za-z0-9]+(\.[A-Z0-9]+)*"
_SINCE = _matching(r"[0-9]+\.[0-9]+\.[0-9]+", 'a version such as "0.1.0"')
_STATUS = _one_of("active", "withdrawn")
_DIGEST = _matching(r"sha256:[0-9a-f]{64}", "sha256: and 64 lower-case hexadecimal digits")

DOCUMENT_FORMS: Mapping[str, Form] = {
    "key": _one_of(*DOCUMENTS),
    "title": _text(),
    "prefix": _one_of("RT", "LANG", "HIO", "COLL", "WSP"),
    "file": _matching(r"[A-Za-z0-9_.-]+\.txt", "the name of a text file, without folders"),
    "lines": Form("a positive integer", _is_natural),
    "sha256": _matching(r"[0-9a-f]{64}", "64 lower-case hexadecimal digits"),
}

CLAUSE_FORMS: Mapping[str, Form] = {
    "id": _matching(CLAUSE_ID, "a clause id such as RT-10.1-04"),
    "section": _matching(_SECTION, "a section number or heading such as 10.1"),
    "lines": Form("the first and the last line, positive integers", _is_span),
    "source": _DIGEST,
    "level": _one_of(*LEVELS),
    "kind": _one_of("requirement", "declaration", "note", "permission", "impl_defined"),
    "summary": _text(),
    "verify": _one_of(*VERIFICATIONS),
    "reason": _text(optional=True),
    "area": _one_of(*AREAS),
    "topic": _slug(),
    "feature": _slug(),
    "profile": _one_of("core", "extended"),
    "duplicate_of": _matching(CLAUSE_ID, "the id of another clause", optional=True),
    "interpretations": _list_of(_matching(INTERPRETATION_ID, "an interpretation id"), at_least=1, optional=True),
    "since": _SINCE,
    "status": _STATUS,
}

INTERPRETATION_FORMS: Mapping[str, Form] = {
    "id": _matching(INTERPRETATION_ID, "an interpretation id such as AMB-RT-16"),
    "document": _one_of(*DOCUMENTS),
    "sections": _list_of(
        _matching(
            rf"(RT|LANG|HIO|COLL|WSP) {_SECTION}(-{_SECTION})?",
            "a prefix and a section, or a range of them, such as RT 10.1",
        ),
        at_least=1,
    ),
    "issue": _text(),
    "decision": _text(),
    "why": _text(),
    "alternatives": _list_of(_text()),
    "affects": _list_of(_matching(CLAUSE_ID, "a clause id")),
    "asserted": _text(),
    "feature": _slug(optional=True),
    "since": _SINCE,
    "status": _STATUS,
}

CHAPTER_FORMS: Mapping[str, Form] = {
    "document": _one_of(*DOCUMENTS),
    "section": _matching(_SECTION, "a section number or heading such as 10.1", optional=True),
    "topics": _list_of(_slug(), at_least=1, optional=True),
}


@dataclass(frozen=True)
class Table:
    """What a file of the registry holds: its arrays of tables and their rows' forms, and its header's."""

    rows: str
    forms: Mapping[str, Form]
    header: Mapping[str, Form] | None = None


CLAUSE_FILE = Table("clause", CLAUSE_FORMS, DOCUMENT_FORMS)
INTERPRETATION_FILE = Table("interpretation", INTERPRETATION_FORMS)
CHAPTER_FILE = Table("enforced", CHAPTER_FORMS)


def violations(content: Mapping[str, Any], table: Table, file: str) -> Iterator[RegistryError]:
    """Everything in a parsed file that is not of the form its table asks for."""
    header = {"document"} if table.header else set()
    for name in sorted(content.keys() - header - {"format", table.rows}):
        yield SchemaViolation(file, "top level", name, "unknown", "no such key")
    if type(content.get("format")) is not int or content["format"] != FORMAT:
        yield SchemaViolation(file, "top level", "format", _found(content, "format"), f"the integer {FORMAT}")
    if table.header:
        yield from _violations_of_row(content.get("document"), table.header, file, "[document]")
    rows = content.get(table.rows, [])
    if not isinstance(rows, list):
        yield SchemaViolation(file, "top level", table.rows, _found(content, table.rows), f"[[{table.rows}]] tables")
        return
    for index, row in enumerate(rows, start=1):
        yield from _violations_of_row(row, table.forms, file, _name(row, table.rows, index))


def _violations_of_row(row: Any, forms: Mapping[str, Form], file: str, name: str) -> Iterator[RegistryError]:
    if not isinstance(row, dict):
        yield SchemaViolation(file, name, "(the row)", "missing or not a table", f"a table with {', '.join(forms)}")
        return
    for field, form in forms.items():
        if field in row:
            if not form.accepts(row[field]):
                yield SchemaViolation(file, name, field, _found(row, field), form.required)
        elif not form.optional:
            yield SchemaViolation(file, name, field, "missing", form.required)
    for field in sorted(row.keys() - forms.keys()):
        yield SchemaViolation(file, name, field, "unknown", f"one of {', '.join(forms)}")
    if "verify" in forms and row.get("verify") == "untestable" and "reason" not in row:
        yield SchemaViolation(file, name, "reason", "missing", "the reason why the clause is untestable")


def _name(row: Any, kind: str, index: int) -> str:
    named = isinstance(row, dict) and isinstance(row.get("id"), str)
    return str(row["id"]) if named else f"[[{kind}]] number {index}"


def _found(row: Mapping[str, Any], field: str) -> str:
    return repr(row[field]) if field in row else "missing"


def document(header: Mapping[str, Any]) -> Document:
    """The document a valid header describes."""
    return Document(**header)


def clause(row: Mapping[str, Any], document_key: str) -> Clause:
    """The clause of a valid row."""
    first, last = row["lines"]
    optional: dict[str, Any] = {"reason": None, "duplicate_of": None, "interpretations": ()}
    fields = {**optional, **row, "lines": (first, last), "interpretations": tuple(row.get("interpretations", ()))}
    return Clause(document=document_key, **fields)


def interpretation(row: Mapping[str, Any]) -> Interpretation:
    """The interpretation of a valid row."""
    lists = {field: tuple(row[field]) for field in ("sections", "alternatives", "affects")}
    return Interpretation(**{**row, **lists})


def chapter(row: Mapping[str, Any]) -> Chapter:
    """The chapter of a valid row."""
    return Chapter(row["document"], row.get("section"), tuple(row.get("topics", ())))
