"""A library behind `cabi:`: its header, its description by the vendor, and how it is to be loaded."""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tessera_conformance.documents import NoDocument
from tessera_conformance.schemas import read_valid
from tessera_conformance.terminal import meant
from tessera_conformance.transports import ImplementationUnavailable

# What a vendor says of a library that cannot say it itself: a TOML file laid over the Hello (`docs/cabi.md`).


def read_description(path: str) -> dict[str, Any]:
    """The members of the Hello, and `devices`, that a file gives. Raises `NoDocument`."""
    description: dict[str, Any] = read_valid(Path(path), "tessera:cabi-description", "description")
    return description


def laid_over(hello: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """A Hello with the changes of a description: objects member by member, anything else instead of what was there."""
    merged = dict(hello)
    for name, value in table.items():
        under = merged.get(name)
        merged[name] = {**under, **value} if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


# The C header that comes with a library: where it lies, and the values of its enumerators and macros.


NAME = "tessera.h"
PLACES = (".", "../include", "include")
"""The folders in which a header is looked for, from that of the library."""
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(TESS_\w+)[ \t]+(\S[^\n]*)$", re.M)
ENUMERATION = re.compile(r"\benum\b[^{;]*\{([^}]*)\}", re.S)
NUMBER = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}


def found_header(library: str) -> Path | None:
    """The header beside a library, in `../include` or in `include`."""
    folder = Path(library).resolve().parent
    return next((path for place in PLACES if (path := folder / place / NAME).is_file()), None)


def constants(text: str) -> dict[str, int]:
    """The enumerators and macros `TESS_...` that are whole numbers; what cannot be read is left out."""
    plain = COMMENT.sub(" ", text.replace("\\\n", " "))
    defined: dict[str, int] = {}
    for name, value in MACRO.findall(plain):
        _define(defined, name, value)
    for body in ENUMERATION.findall(plain):
        for name, value in _enumerators(body, defined):
            defined[name] = value
    return defined


def _enumerators(body: str, names: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Each enumerator with its value: one more than the one before, where none is given."""
    following = 0
    for entry in body.split(","):
        name, _, stated = (part.strip() for part in entry.partition("="))
        if not name:
            continue
        value = _value(stated, names) if stated else following
        if value is None:
            return
        yield name, value
        following = value + 1


def _define(names: dict[str, int], name: str, text: str) -> None:
    value = _value(text, names)
    if value is not None:
        names[name] = value


def _value(text: str, names: Mapping[str, int]) -> int | None:
    """The value of a constant expression of whole numbers, None where it is none."""
    try:
        return _evaluated(ast.parse(NUMBER.sub(r"\1", text).strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, KeyError, TypeError):
        return None


def _evaluated(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_evaluated(operand, names)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ~_evaluated(operand, names)
        case ast.BinOp(left=left, op=op, right=right):
            return int(OPERATORS[type(op)](_evaluated(left, names), _evaluated(right, names)))
    raise ValueError("no constant")


# What stands behind `cabi:`: a library, and how it is to be loaded.


NAMES = ("header", "description", "fresh")
OPTION = re.compile(rf",({'|'.join(NAMES)})=")
USAGE = "use cabi:/path/lib.so, with ,header=FILE ,description=FILE ,fresh=1 behind it where wanted"


@dataclass(frozen=True)
class CabiOptions:
    """A library, the text of its header, what its vendor says of it; `fresh`: every case has a process of its own."""

    library: str
    header: str | None = None
    description: Mapping[str, Any] = field(default_factory=dict)
    fresh: bool = False

    @property
    def name(self) -> str:
        """The name of the file, without `.so` and what follows."""
        return re.sub(r"\.(so|dylib|dll)(\.\d+)*$", "", Path(self.library).name) or "library"

    def written(self) -> str:
        """Return the options as one line, for the process that loads the library."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, line: str) -> CabiOptions:
        """Return the options that `written` wrote."""
        return cls(**json.loads(line))


def read_options(place: str, label: str) -> CabiOptions:
    """The options of `cabi:PLACE`. Raises `ImplementationUnavailable`."""
    library, *pairs = OPTION.split(place)
    stated = dict(zip(pairs[::2], pairs[1::2], strict=True))
    if not library:
        raise ImplementationUnavailable(label, "no library is named", USAGE)
    for word in library.split(",")[1:]:
        name = word.partition("=")[0]
        if "=" in word and not Path(library).is_file():
            hint = meant(name, NAMES).removeprefix("; ")
            raise ImplementationUnavailable(label, f"there is no option {name}", hint or USAGE)
    if not Path(library).is_file():
        raise ImplementationUnavailable(label, f"there is no file {library}", "name the shared library that was built")
    if stated.get("fresh", "0") not in ("0", "1"):
        raise ImplementationUnavailable(label, f"fresh={stated['fresh']}", "use fresh=1, or leave it out")
    try:
        description = read_description(stated["description"]) if "description" in stated else {}
    except NoDocument as problem:
        raise ImplementationUnavailable(label, str(problem), "correct the description; docs/cabi.md has one") from None
    header = _header(stated.get("header"), library, label)
    return CabiOptions(str(Path(library).resolve()), header, description, stated.get("fresh") == "1")


def _header(stated: str | None, library: str, label: str) -> str | None:
    path = Path(stated) if stated is not None else found_header(library)
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ImplementationUnavailable(
            label, f"header {path}: {error.strerror}", "name the header that is installed with the library"
        ) from None
