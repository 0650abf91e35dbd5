"""A library behind `cabi:`: its header, its description by the vendor, and the options of its loading."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tessera_conformance.documents import NoDocument
from tessera_conformance.schemas import read_valid
from tessera_conformance.terminal import meant
from tessera_conformance.transports import ImplementationUnavailable

# A vendor's description of a library that cannot describe itself: a TOML file laid over the Hello (`docs/cabi.md`).


def read_description(path: str) -> dict[str, Any]:
    """Return the members of the Hello, and `devices`, from a file. Raises `NoDocument`."""
    description: dict[str, Any] = read_valid(Path(path), "tessera:cabi-description", "description")
    return description


def laid_over(hello: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Hello with the changes of a description: objects are merged by member, other values replaced."""
    merged = dict(hello)
    for name, value in table.items():
        under = merged.get(name)
        merged[name] = {**under, **value} if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


# The C header that comes with a library: its path, and the values of its enumerators and macros.


NAME = "tessera.h"
PLACES = (".", "../include", "include")
"""The folders in which a header is searched, relative to the library's."""
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(TESS_\w+)[ \t]+(\S[^\n]*)$", re.M)
ENUMERATION = re.compile(r"\benum\b[^{;]*\{([^}]*)\}", re.S)


def constants(text: str) -> dict[str, int]:
    """Return the enumerators and macros `TESS_...` that are whole numbers, without those that cannot be evaluated."""
    from cffi import FFI, CDefError, FFIError  # takes half a second, and few processes need it

    plain = COMMENT.sub(" ", text.replace("\\\n", " "))
    macros = [f"{name} = {value}" for name, value in MACRO.findall(plain)]
    ffi = FFI()
    for enumerators in (*macros, *ENUMERATION.findall(plain)):
        with suppress(CDefError, FFIError, NotImplementedError, ValueError):
            ffi.cdef(f"enum {{ {enumerators} }};")
    library = ffi.dlopen(None)
    return {name: getattr(library, name) for name in dir(library)}


# The value of `cabi:`: a library, and the options of its loading.


NAMES = ("header", "description")
OPTION = re.compile(rf",({'|'.join(NAMES)})=")
USAGE = "use cabi:/path/lib.so, with ,header=FILE ,description=FILE behind it where wanted"


@dataclass(frozen=True)
class CabiOptions:
    """A library, the text of its header, and its description."""

    library: str
    header: str | None = None
    description: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the file, without `.so` and what follows."""
        return re.sub(r"\.(so|dylib|dll)(\.\d+)*$", "", Path(self.library).name) or "library"


def read_options(place: str, label: str) -> CabiOptions:
    """Return the options of `cabi:PLACE`. Raises `ImplementationUnavailable`."""
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
    try:
        description = read_description(stated["description"]) if "description" in stated else {}
    except NoDocument as problem:
        raise ImplementationUnavailable(label, str(problem), "correct the description; docs/cabi.md has one") from None
    header = _header(stated.get("header"), library, label)
    return CabiOptions(str(Path(library).resolve()), header, description)


def _header(stated: str | None, library: str, label: str) -> str | None:
    folder = Path(library).resolve().parent
    beside = [folder / place / NAME for place in PLACES if (folder / place / NAME).is_file()]
    path = Path(stated) if stated is not None else next(iter(beside), None)
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ImplementationUnavailable(
            label, f"header {path}: {error.strerror}", "name the header that is installed with the library"
        ) from None
