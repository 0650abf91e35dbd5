"""The suite's tests, collected once by pytest and kept as callables with their cases.

As a program, `python -m tessera_conformance.collection FILE`, it writes the index of cases, as a wheel has it.
"""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tessera_conformance.cases import SuiteNotCollected, suite_directory
from tessera_conformance.plugin import CASE
from tessera_conformance.registry.cases import IndexedCase, digest_of_contents, write_index


class CollectedSuite:
    """The suite's tests as callables, collected once by pytest; only those of `files`, if given."""

    def __init__(self, implementation: str = "reference", files: Sequence[str] = ()) -> None:
        collector = _Collector()
        suite = suite_directory()
        options = ["--collect-only", "-qq", "--import-mode=importlib", "-c", os.devnull]
        places = [f"--rootdir={suite}", f"--confcutdir={suite}", *(str(suite / file) for file in files or [""])]
        output = io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            code = pytest.main([f"--impl={implementation}", *options, *places], plugins=[collector])
        if collector.interruption is not None:
            raise collector.interruption
        if code != pytest.ExitCode.OK:
            raise SuiteNotCollected(f"pytest could not collect the suite (exit code {int(code)}):\n{output.getvalue()}")
        self.items = collector.items

    def index(self) -> dict[str, IndexedCase]:
        """Return every case by its id."""
        index = {}
        for item in self.items:
            case = item.stash[CASE]
            index[case.id] = IndexedCase(item.nodeid, tuple(case.clause_ids), tuple(case.needs), tuple(case.levels))
        return index


class _Collector:
    def __init__(self) -> None:
        self.items: list[pytest.Function] = []
        self.interruption: BaseException | None = None

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.interruption = excinfo.value

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        items = [item for item in session.items if isinstance(item, pytest.Function) and CASE in item.stash]
        self.items = sorted(items, key=lambda item: item.stash[CASE].id)


def main(file: Path) -> int:
    """Write the index of cases; return 1 if pytest cannot collect the suite.

    No implementation is called, and the reference, which takes long to import, is not needed.
    """
    try:
        write_index(file, digest_of_contents(), CollectedSuite(f"rpc:{shlex.quote(sys.executable)}").index())
    except SuiteNotCollected as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
