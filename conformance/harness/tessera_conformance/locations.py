"""Folders of the suite's data, in a checkout or inside the installed wheel, and the start of pytest on them.

A checkout keeps tests, clauses, schemas and vectors in their own top-level folders; the wheel carries them all
under `tessera_conformance/suite`. Nothing else in the harness knows the difference.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_PACKAGED_SUITE = _PACKAGE / "suite"
_CHECKOUT = _PACKAGE.parents[2]

CHAPTERS = ("abi", "ir", "runtime", "collectives")
"""The top folders of the suite."""
_CONFIGURATION = "[pytest]\naddopts = --import-mode=importlib --strict-markers --strict-config -p no:cacheprovider\n"
_UNUSED = ("hypothesispytest", "logging", "doctest", "legacypath", "unraisableexception", "threadexception")
"""Plugins that no case needs, and that take a twentieth of a run: what an implementation logs is kept as output."""
_PLUGINS = ("--noconftest", "-p", "tessera_conformance.plugin", *(f"-pno:{name}" for name in _UNUSED))
"""The options of the suite are known whatever paths are given; no other plugin need be imported."""


def suite_directory() -> Path:
    """The folder that holds the chapters of tests: `abi`, `ir`, `runtime`, `collectives`."""
    return _PACKAGED_SUITE if _PACKAGED_SUITE.is_dir() else _CHECKOUT / "conformance"


def pytest_options(scratch: Path) -> list[str]:
    """The options with which pytest runs the suite by itself; its configuration is written into a folder.

    Its cases lie in the suite's folder, so that `-k` is not asked about the folders above.
    """
    configuration, suite = scratch / "pytest.ini", suite_directory()
    configuration.write_text(_CONFIGURATION, encoding="utf-8")
    return ["-c", str(configuration), f"--rootdir={suite}", f"--confcutdir={suite}", *_PLUGINS]


def clauses_directory() -> Path:
    """The clause registries, the interpretations, the lock and the list of enforced chapters."""
    return suite_directory() / "clauses"


def rooms(name: str) -> dict[str, Path]:
    """The files or folders of this name, `violators` or `interface.toml`, by the path of the chapter that holds each.

    A chapter may lie in another: `runtime/wsp`.
    """
    suite = suite_directory()
    found = [path for chapter in CHAPTERS for path in sorted((suite / chapter).rglob(name))]
    return {path.parent.relative_to(suite).as_posix(): path for path in found}


def schemas_directory() -> Path:
    """The JSON Schemas of every file and message the harness reads or writes."""
    return _beside_the_suite("schemas")


def vectors_directory() -> Path:
    """The golden vectors."""
    return _beside_the_suite("vectors")


def c_header() -> Path:
    """`tessera.h`, which declares the runtime's functions."""
    reference = _PACKAGE.parent if _PACKAGED_SUITE.is_dir() else _CHECKOUT / "reference"
    return reference / "tessera_reference" / "abi" / "tessera.h"


def _beside_the_suite(name: str) -> Path:
    return _PACKAGED_SUITE / name if _PACKAGED_SUITE.is_dir() else _CHECKOUT / name
