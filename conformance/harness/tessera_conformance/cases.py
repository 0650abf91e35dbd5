"""The folders of the suite's data, and the ids of its cases."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path, PurePosixPath

# Folders of the suite's data, in a checkout or inside the installed wheel, and pytest's options for them.
#
# A checkout keeps tests, clauses, schemas and vectors in their own top-level folders; the wheel carries them all under
# `tessera_conformance/suite`. No other part of the harness knows the difference.


_PACKAGE = Path(__file__).resolve().parent
_PACKAGED_SUITE = _PACKAGE / "suite"
_CHECKOUT = _PACKAGE.parents[2]

CHAPTERS = ("abi", "ir", "runtime", "collectives")
"""The top folders of the suite."""
_CONFIGURATION = "[pytest]\naddopts = --import-mode=importlib --strict-markers --strict-config -p no:cacheprovider\n"
_UNUSED = ("hypothesispytest", "logging", "doctest", "legacypath", "unraisableexception", "threadexception")
"""Plugins that no case needs, and that take a twentieth of a run: an implementation's log is kept as output."""
_PLUGINS = ("--noconftest", "-p", "tessera_conformance.plugin", *(f"-pno:{name}" for name in _UNUSED))
"""The options of the suite are registered for any paths; no other plugin is imported."""


def suite_directory() -> Path:
    """Return the folder that holds the chapters of tests: `abi`, `ir`, `runtime`, `collectives`."""
    return _PACKAGED_SUITE if _PACKAGED_SUITE.is_dir() else _CHECKOUT / "conformance"


def pytest_options(scratch: Path) -> list[str]:
    """Return the options with which pytest runs the suite by itself; its configuration is written into a folder.

    Its cases are in the suite's folder, so that `-k` does not match the folders above.
    """
    configuration, suite = scratch / "pytest.ini", suite_directory()
    configuration.write_text(_CONFIGURATION, encoding="utf-8")
    return ["-c", str(configuration), f"--rootdir={suite}", f"--confcutdir={suite}", *_PLUGINS]


def clauses_directory() -> Path:
    """Return the folder of clause registries, interpretations, the lock and the list of enforced chapters."""
    return suite_directory() / "clauses"


def chapter_files(name: str) -> dict[str, Path]:
    """Return the files or folders of this name, `violators` or `interface.toml`, by the path of their chapter.

    A chapter may be in another: `runtime/wsp`.
    """
    suite = suite_directory()
    paths = [path for chapter in CHAPTERS for path in sorted((suite / chapter).rglob(name))]
    return {path.parent.relative_to(suite).as_posix(): path for path in paths}


def schemas_directory() -> Path:
    """Return the folder of JSON Schemas of every file and message that the harness reads or writes."""
    return _beside_the_suite("schemas")


def vectors_directory() -> Path:
    """Return the folder of golden vectors."""
    return _beside_the_suite("vectors")


def c_header() -> Path:
    """Return the path of `tessera.h`, which declares the runtime's functions."""
    reference = _PACKAGE.parent if _PACKAGED_SUITE.is_dir() else _CHECKOUT / "reference"
    return reference / "tessera_reference" / "abi" / "tessera.h"


def _beside_the_suite(name: str) -> Path:
    return _PACKAGED_SUITE / name if _PACKAGED_SUITE.is_dir() else _CHECKOUT / name


# Case ids: stable slugs from the path and name of a test, `ir/matmul/k-tail/bf16`.


ABOVE = ("", suite_directory().name)
"""The folders above a chapter's: none, or the folder of the suite."""


class SuiteNotCollected(Exception):
    """The suite could not be collected; the text is pytest's own."""


@cache
def case_id(node_id: str) -> str | None:
    """Return the case id of a pytest node id, or None if it is no test of the suite.

    `conformance/ir/test_matmul.py::test_k_tail[bf16]` is `ir/matmul/k-tail/bf16`.
    """
    place, _, test = node_id.partition("::")
    folders = _folders(place)
    if folders is None or not test:
        return None
    name, _, parameters = test.replace("::", "-").partition("[")
    slugs = [name.removeprefix("test_"), *([parameters.removesuffix("]")] if parameters else [])]
    return "/".join([folders, *map(slug, slugs)])


@cache
def _folders(place: str) -> str | None:
    """Return the prefix of the ids of a file's cases, or None if it is no file of the suite."""
    parts = PurePosixPath(place).parts
    positions = [i for i, part in enumerate(parts[:-1]) if part in CHAPTERS and ("", *parts)[i] in ABOVE]
    if not positions:
        return None
    folders = [*parts[positions[-1] : -1], parts[-1].removesuffix(".py").removeprefix("test_")]
    return "/".join(map(slug, folders))


def slug(text: str) -> str:
    """Return a text in lower case, with a hyphen for every run of characters other than letters, digits and points."""
    return re.sub(r"[^a-z0-9./-]+", "-", text.lower())


def in_shard(case: str, shard: tuple[int, int]) -> bool:
    """True if a case belongs to shard k of N, by the hash of its id: the same cases on every machine."""
    number, count = shard
    return int.from_bytes(hashlib.sha256(case.encode()).digest()[:8], "big") % count == number - 1


def parse_shard(text: str) -> tuple[int, int]:
    """Return k and N of `k/N` with 1 <= k <= N. Raises `ValueError`: the text has another form."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"--shard {text}: expected k/N with 1 <= k <= N, such as 2/4")
    return int(match[1]), int(match[2])
