"""Shared by the tests of the probe: the fakes, and how one is probed."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessera_conformance.oracle.trees import Tree
from tessera_conformance.probe import Finding, Subject, probe
from tessera_conformance.session import Session
from tessera_conformance.transports.locate import DirectTransport

FAKES = Path(__file__).parent / "fakes"


def _load() -> ModuleType:
    specification = importlib.util.spec_from_file_location("known_orders", FAKES / "known_orders.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def orders() -> ModuleType:
    return _load()


@pytest.fixture
def fakes_directory(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the fakes, made the current one, so that `py:known_orders:make_fold` is found."""
    monkeypatch.chdir(FAKES)
    monkeypatch.setattr(sys, "path", [str(FAKES), *sys.path])
    return FAKES


@pytest.fixture(scope="session")
def probed(orders: ModuleType) -> Callable[..., Finding]:
    """Probe a fake: `probed(subject, reduce=..., products=..., declared=...)`."""

    def run(subject: Subject, seed: int = 0, in_full: bool = False, **options: Any) -> Finding:
        session = Session(DirectTransport(lambda: orders.Summing(**options), "py:known_orders"), deadline=20.0)
        try:
            return probe(session, subject, seed, in_full)
        finally:
            session.close()

    return run


@pytest.fixture(scope="session")
def nesting() -> Callable[[random.Random, int, int], Any]:
    """A random nesting of tuples over so many leaves, with nodes of at most so many children."""

    def make(chance: random.Random, terms: int, arity: int) -> Any:
        parts: list[Any] = list(range(terms))
        while len(parts) > 1:
            count = min(len(parts), chance.randint(2, arity))
            parts.append(tuple(parts.pop(chance.randrange(len(parts))) for _ in range(count)))
        return parts[0]

    return make


@pytest.fixture(scope="session")
def tree_of() -> Callable[[Any], Tree]:
    """The tree of a nesting of tuples, in canonical order."""

    def as_lists(part: Any) -> Any:
        return [as_lists(child) for child in part] if isinstance(part, tuple) else part

    return lambda part: Tree.from_json(as_lists(part)).canonical()
