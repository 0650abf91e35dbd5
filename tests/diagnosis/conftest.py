"""The small vendor, its changed lines, and the report lines of its answers to golden vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.cases import slug
from tessera_conformance.check import Check
from tessera_conformance.operations.table_adapter import adapter_of
from tessera_conformance.reports.lines import observed_line
from tessera_conformance.session import Implementation, Session
from tessera_conformance.transports.locate import DirectTransport
from tessera_conformance.vectors import Vector, load
from tessera_conformance.vectors.judging import judge
from tessera_conformance.verdicts import after_running

SOURCE = (Path(__file__).parent / "vendor.py").read_text(encoding="utf-8")


def library(function: str = "", old: str = "", new: str = "") -> ModuleType:
    """The vendor's library with one line of one of its functions changed."""
    beginning, mark, rest = SOURCE.partition(f"def {function}(") if function else (SOURCE, "", "")
    body, gap, others = rest.partition("\n\n\n")
    assert not function or body.count(old) == 1, f"{old!r} stands {body.count(old)} times in {function}"
    module = ModuleType("small_vendor")
    source = "".join([beginning, mark, body.replace(old, new) if function else body, gap, others])
    exec(compile(source, "vendor.py", "exec"), vars(module))
    return module


@pytest.fixture(scope="session")
def vendor() -> Callable[..., ModuleType]:
    return library


def vectors_of(operation: str, *topics: str) -> list[Vector]:
    """The golden vectors of an operation in some topics."""
    return [
        vector
        for topic in topics
        for vector in load(topic)
        if vector.provenance.check.function == f"oracle.{operation}"
    ]


@pytest.fixture(scope="session")
def chosen() -> Callable[..., list[Vector]]:
    return vectors_of


@pytest.fixture(scope="session")
def judged() -> Callable[..., list[dict[str, Any]]]:
    """The lines of a report on these vectors, as it is written and read again."""

    def run(
        module: ModuleType, vectors: Sequence[Vector], level: str = "strict", via: str = "operations"
    ) -> list[dict[str, Any]]:
        session = Session(DirectTransport(lambda: adapter_of(module, "TABLE"), "small"))
        implementation = Implementation(session, level, via)
        lines = []
        for vector in vectors:
            check, error, before = Check(), None, len(session.exchanges)
            try:
                judge(implementation, check, vector)
            except Exception as raised:
                error = raised
            verdict = after_running(error, check.records, None).verdict
            topic, _, name = vector.id.partition("/")[2].partition("/")
            head = {
                "case": f"{vector.id.partition('/')[0]}/{slug(topic)}/golden/{slug(name)}",
                "title": vector.comment,
                "clauses": list(vector.clauses),
                "verdict": verdict,
                "disposition": "none",
            }
            exchanges = session.exchanges[before:]
            lines.append(json.loads(observed_line(head, check.records, exchanges, {"run": {}}, None).text))
            session.reset()
        return lines

    return run
