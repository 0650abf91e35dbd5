"""What the modules of the chapters declare: violators in their folders `violators`, variants in `variants`."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from tessera_conformance import chapters
from tessera_conformance.locations import rooms


def load_whole(implementation: object) -> None:
    """Let an implementation that imports its parts late, and can import all of them by `load_whole`, do so.

    What is imported while something of it is replaced would keep the substitute afterwards.
    """
    load = getattr(implementation, "load_whole", None)
    if load is not None:
        load()


class Declared(Protocol):
    """A frozen dataclass with a name, which is empty until its module is read."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """Of it alone, or of its file and it once it is loaded."""
        ...


Found = TypeVar("Found", bound=Declared)


def load_declared(kind: type[Found], folder: str, mark: str, directory: Path | None = None) -> list[Found]:
    """Every value of a kind in the files of a directory, or of that folder of every chapter, by file and place.

    A class bears its own under the attribute `mark`. Those of chapters are called like `runtime/streams.null_stream`.

    Raises:
        ValueError: two share a name.
    """
    if directory is None:
        declared = [(f"{name}/", _chapter_package(name, folder)) for name in rooms(folder)]
    else:
        declared = [("", _package_of(directory, f"tessera_{folder}"))]
    found: dict[str, Found] = {}
    for prefix, package in declared:
        for path in sorted(Path(package.__path__[0]).glob("*.py")):
            module = importlib.import_module(f"{package.__name__}.{path.stem}")
            for own, entry in _declared_in(module, kind, mark):
                name = f"{prefix}{path.stem}.{own}"
                if name in found:
                    raise ValueError(f"{path.name}: two {folder} are called {own}")
                found[name] = replace(entry, name=name)
    return list(found.values())


def _chapter_package(chapter: str, folder: str) -> types.ModuleType:
    return importlib.import_module(f"{chapters.__name__}.{chapter.replace('/', '.')}.{folder}")


def _package_of(directory: Path, name: str) -> types.ModuleType:
    package = types.ModuleType(name)
    package.__path__ = [str(directory)]
    sys.modules[name] = package
    return package


def _declared_in(module: types.ModuleType, kind: type[Found], mark: str) -> Iterator[tuple[str, Found]]:
    for name, value in vars(module).items():
        values = value if isinstance(value, list | tuple) else [value]
        for entry in values:
            if isinstance(entry, kind):
                yield entry.name or name, entry
            elif isinstance(entry, type) and entry.__module__ == module.__name__ and mark in vars(entry):
                own = vars(entry)[mark]
                yield own.name, own
