"""The commands that connect an implementation: `new-adapter` and `serve`."""

from __future__ import annotations

import argparse
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tessera_conformance.cases import c_header
from tessera_conformance.server import serve
from tessera_conformance.terminal import error_text, print_error
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import COMPILERS, TABLES, PassingAdapter, load_adapter

# `tessera-conformance new-adapter`: the skeleton of an implementation that the harness can call.
#
# The skeletons are plain files in `adapter_templates`; `templates.toml` there lists the files of each.


TEMPLATES = Path(__file__).with_name("adapter_templates")
HEADER = "tessera.h"
KINDS = ("runtime", "language", "operations", "collectives")
LANGUAGES = ("python", "c", "cpp", "rust", "go", "node")


@dataclass(frozen=True)
class Skeleton:
    """A skeleton: its files, its build command, and the commands to try first."""

    files: Mapping[Path, Path]
    build: str
    impl: str
    first: Sequence[str]
    needs: Sequence[str]

    @property
    def commands(self) -> Sequence[Sequence[str]]:
        """Return the commands to run once it is built."""
        via = [option for option in self.first if option.startswith("--via")]
        arguments = {"smoke": via, "run": self.first}
        return [["tessera-conformance", name, f"--impl={self.impl}", *rest] for name, rest in arguments.items()]

    def write(self) -> None:
        """Write the files. Raises `OSError`: one exists already, so that none is written, or writing fails."""
        for path in self.files:
            if path.exists():
                raise FileExistsError(17, "File exists", str(path))
        for path, template in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(template.read_text(encoding="utf-8"), encoding="utf-8")


def skeleton(language: str, kind: str, path: Path | None = None) -> Skeleton:
    """Return the skeleton of an adapter of a kind in a language, for a path or the language's default path."""
    row = _table()[language]
    row = {**row, **row.get(kind, {})}
    place = path or Path(row["path"])
    names = {"kind": kind, "path": str(place), "stem": place.stem}
    first = _table()["first"][kind]
    if row["impl"].startswith(TABLES):  # which goes by operations anyway
        first = [option for option in first if not option.startswith("--via")]
    files = {
        Path(written.format(**names)): c_header() if template == HEADER else TEMPLATES / template.format(**names)
        for written, template in row["files"].items()
    }
    return Skeleton(files, row.get("build", "").format(**names), row["impl"].format(**names), first, row["needs"])


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((TEMPLATES / "templates.toml").read_text(encoding="utf-8"))


def configure_new_adapter(parser: argparse.ArgumentParser) -> None:
    """The command `new-adapter`."""
    parser.description = "Write the skeleton of an implementation: it runs as it is and answers a method or two."
    parser.add_argument("path", nargs="?", type=Path, help="default: my_adapter.py, or the folder my_adapter")
    parser.add_argument("--kind", choices=KINDS, default="language", help="what it is (default: a compiler)")
    parser.add_argument("--language", choices=LANGUAGES, default="python", help="what it is written in")
    parser.set_defaults(handler=new_adapter)


def new_adapter(arguments: argparse.Namespace) -> int:
    """Write the skeleton; never overwrite a file."""
    adapter_skeleton = skeleton(arguments.language, arguments.kind, arguments.path)
    try:
        adapter_skeleton.write()
    except OSError as error:
        remedy = "name a new file in a folder that can be written"
        print_error(error_text(str(error.filename), str(error.strerror), do=remedy))
        return 2
    print(f"{', '.join(map(str, adapter_skeleton.files))}: written; now try")
    if adapter_skeleton.build:
        print(f"  {adapter_skeleton.build}")
    for command in adapter_skeleton.commands:
        print(f"  {shlex.join(command)}")
    return 0


# `tessera-conformance serve`: any Python adapter, or a C library, as a process that speaks the line protocol.


def configure_serve(parser: argparse.ArgumentParser) -> None:
    """The command `serve`."""
    parser.add_argument("implementation", metavar="IMPL", help="reference, py:module:factory or cabi:/path/lib.so")
    parser.add_argument("--compiler", default=None, metavar="COMPILER", help=COMPILERS)
    parser.set_defaults(handler=serve_implementation)


def serve_implementation(arguments: argparse.Namespace) -> int:
    """Serve until the harness closes the session."""
    try:
        adapter = load_adapter(arguments.implementation, arguments.compiler)
    except ImplementationUnavailable as error:
        print_error(error)
        return 2
    with closing(adapter) if isinstance(adapter, PassingAdapter) else nullcontext():
        return serve(adapter)
