"""What stands behind `cabi:`: a library, and how it is to be loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tessera_conformance.terminal.near_names import meant
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.cabi.description import BadDescription, read_description
from tessera_conformance.transports.cabi.header import found_header

__all__ = ["CabiOptions", "read_options"]

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
        """As one line, for the process that loads the library."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, line: str) -> CabiOptions:
        """What `written` wrote."""
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
    except BadDescription as problem:
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
