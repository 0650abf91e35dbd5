"""`tessera-conformance new-adapter` and `serve`: the skeleton of an adapter, and an adapter over the line protocol."""

from __future__ import annotations

import argparse
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tessera_conformance.cases import c_header
from tessera_conformance.server import serve
from tessera_conformance.terminal import error_text, print_error
from tessera_conformance.transports import ImplementationUnavailable
from tessera_conformance.transports.locate import COMPILERS, TABLES, PassingAdapter, load_adapter

# `tessera-conformance new-adapter`: from nothing to an implementation that the harness understands.
#
# The skeletons are plain files in `adapter_templates`; `templates.toml` there says which belong together.


TEMPLATES = Path(__file__).with_name("adapter_templates")
HEADER = "tessera.h"
KINDS = ("runtime", "language", "operations", "collectives")
LANGUAGES = ("python", "c", "cpp", "rust", "go", "node")


@dataclass(frozen=True)
class Skeleton:
    """A skeleton: its files, how it is built, and the commands to try first."""

    files: Mapping[Path, Path]
    build: str
    impl: str
    first: Sequence[str]
    needs: Sequence[str]

    @property
    def commands(self) -> Sequence[Sequence[str]]:
        """Return the commands to run once it is built."""
        via = [option for option in self.first if option.startswith("--via")]
        commands = [["smoke", f"--impl={self.impl}", *via], ["run", f"--impl={self.impl}", *self.first]]
        return [["tessera-conformance", *words] for words in commands]

    def write(self) -> None:
        """Write the files. Raises `OSError`: one exists already, and then none is written; or one cannot be written."""
        for path in self.files:
            if path.exists():
                raise FileExistsError(17, "File exists", str(path))
        for path, template in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(template.read_text(encoding="utf-8"), encoding="utf-8")


def skeleton(language: str, kind: str, path: Path | None = None) -> Skeleton:
    """The skeleton of an adapter of a kind in a language, to be written at a path, or where its language has it."""
    row = _table()[language]
    row = {**row, **row.get(kind, {})}
    place = path or Path(row["path"])
    names = {"kind": kind, "path": str(place), "stem": place.stem}
    without_via = row["impl"].startswith(TABLES)
    first = [option for option in _table()["first"][kind] if not (without_via and option.startswith("--via"))]
    return Skeleton(
        {Path(to.format(**names)): _template(template.format(**names)) for to, template in row["files"].items()},
        row.get("build", "").format(**names),
        row["impl"].format(**names),
        first,
        row["needs"],
    )


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads((TEMPLATES / "templates.toml").read_text(encoding="utf-8"))


def _template(name: str) -> Path:
    return c_header() if name == HEADER else TEMPLATES / name


def configure_new_adapter(parser: argparse.ArgumentParser) -> None:
    """The command `new-adapter`."""
    parser.description = "Write the skeleton of an implementation: it runs as it is and answers a method or two."
    parser.add_argument("path", nargs="?", type=Path, help="default: my_adapter.py, or the folder my_adapter")
    parser.add_argument("--kind", choices=KINDS, default="language", help="what it is (default: a compiler)")
    parser.add_argument("--language", choices=LANGUAGES, default="python", help="what it is written in")
    parser.set_defaults(handler=new_adapter)


def new_adapter(arguments: argparse.Namespace) -> int:
    """Write the skeleton; never over a file that exists."""
    adapter_skeleton = skeleton(arguments.language, arguments.kind, arguments.path)
    try:
        adapter_skeleton.write()
    except OSError as error:
        print_error(
            error_text(str(error.filename), str(error.strerror), do="name a new file in a folder that can be written")
        )
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
    try:
        return serve(adapter)
    finally:
        if isinstance(adapter, PassingAdapter):
            adapter.close()
