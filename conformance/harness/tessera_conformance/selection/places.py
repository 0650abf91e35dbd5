"""Files, folders and tests of the suite as they are named on the command line, with `::` as pytest has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tessera_conformance.locations import CHAPTERS, suite_directory
from tessera_conformance.selection.choice import NothingChosen
from tessera_conformance.terminal.near_names import meant

MOST_FUNCTIONS = 100
"""Test functions that are named to pytest one by one."""


@dataclass(frozen=True)
class Place:
    """A file or folder that exists, and what follows it: `::test_k_tail[bf16]`, or nothing."""

    argument: str
    """As pytest is to be given it: a path from the working directory on, or from the root."""
    path: Path
    test: str = ""

    @property
    def in_suite(self) -> str:
        """The place from the folder of the suite on; nothing where it is, or holds, the whole suite."""
        suite = suite_directory()
        return "" if self.path in (suite, *suite.parents) else f"{self.path.relative_to(suite).as_posix()}{self.test}"

    @property
    def outside(self) -> bool:
        """Whether it has nothing of the suite."""
        suite = suite_directory()
        return self.path not in (suite, *suite.parents) and suite not in self.path.parents

    def holds(self, node: str) -> bool:
        """Whether a node id, from the folder of the suite on, belongs to it."""
        if self.outside:
            return False
        name = self.in_suite
        return not name or node == name or node.startswith((f"{name}/", f"{name}::", f"{name}["))


def places(arguments: Iterable[str], directory: Path) -> list[Place]:
    """What the arguments name: from the directory on, or from the folder of the suite on.

    Raises:
        NothingChosen: there is no such file or folder.
    """
    return [_place(argument, directory) for argument in arguments]


def _place(argument: str, directory: Path) -> Place:
    name, colons, test = argument.partition("::")
    suite = suite_directory()
    inside = Path(*Path(name).parts[1:]) if Path(name).parts[:1] == ("conformance",) else Path(name)
    for path, argued in ((directory / name, argument), (suite / inside, f"{suite / inside}{colons}{test}")):
        if path.exists():
            return Place(argued, path.resolve(), f"{colons}{test}")
    hint = meant(name, _near(Path(name), inside))
    raise NothingChosen(f"{name}: no such file or folder, here or in the suite{hint}")


def _near(given: Path, inside: Path) -> Iterator[str]:
    """The folders and test files of the suite, as the given path would name them."""
    before = given.parts[: len(given.parts) - len(inside.parts)]
    suite = suite_directory()
    for chapter in CHAPTERS:
        for path in [suite / chapter, *sorted((suite / chapter).rglob("*"))]:
            if path.match("test_*.py") or (path.is_dir() and next(path.glob("test_*.py"), None)):
                yield Path(*before, path.relative_to(suite)).as_posix()


def narrowed(nodes: Sequence[str]) -> list[str]:
    """Arguments for pytest that hold these nodes and little else: functions, or files where there are many."""
    suite = suite_directory()
    functions = list(dict.fromkeys(node.partition("[")[0] for node in nodes))
    files = list(dict.fromkeys(node.partition("::")[0] for node in nodes))
    return [f"{suite}/{name}" for name in (functions if len(functions) <= MOST_FUNCTIONS else files)]
