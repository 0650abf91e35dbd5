"""Mutants of a package: their names, samples, and the change of functions that are held in several ways."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tessera_conformance.strength.mutants import Mutant, install, mutants_of, sample

pytestmark = pytest.mark.filterwarnings("ignore:.*os.fork")
"""Where another test has started threads, as JAX does; the child uses none."""

MODULE = '''
"""Breaks RT-04.1-16 and LANG-15-05 where it is changed."""

from functools import cache, wraps

TABLE = {}


def entry(function):
    TABLE[function.__name__] = function

    @wraps(function)
    def call(*arguments):
        return function(*arguments)

    return call


@entry
def double(value):
    return value + value


class Box:
    def __init__(self, size):
        self.size = size

    @property
    def half(self):
        return self.size / 2

    @classmethod
    def of(cls, size):
        return cls(size * 4)


def adder(by):
    def add(value):
        return value + by

    return add


add_three = adder(3)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package `mutable` with a room `room`."""
    folder = tmp_path / "mutable" / "room"
    folder.mkdir(parents=True)
    (tmp_path / "mutable" / "__init__.py").write_text("")
    (folder / "__init__.py").write_text("")
    (folder / "things.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("mutable.room.things")
    for name in [name for name in sys.modules if name.partition(".")[0] == "mutable"]:
        del sys.modules[name]


def mutant(ending: str) -> Mutant:
    (found,) = [each for each in mutants_of("mutable", ["room"]) if each.name.startswith(f"room.things.{ending}")]
    return found


def in_a_child(act: Callable[[], bool]) -> bool:
    """What a process says that ends with its change."""
    child = os.fork()
    if child == 0:
        os._exit(0 if act() else 1)
    return os.waitpid(child, 0)[1] == 0


def test_a_mutant_says_where_it_is(package: ModuleType) -> None:
    found = mutant("Box.half/operator")
    assert (found.room, found.module) == ("room", "mutable.room.things")
    assert found.description == "line 30: 'self.size / 2' becomes 'self.size * 2'"
    assert found.clauses == {"RT-04.1-16", "LANG-15-05"}


def test_a_room_that_is_not_there_is_refused(package: ModuleType) -> None:
    with pytest.raises(ValueError, match="mutable has no room 'cellar'"):
        mutants_of("mutable", ["cellar"])


def test_modules_that_nothing_has_imported_yet_are_mutated_too(package: ModuleType) -> None:
    del sys.modules["mutable.room.things"]
    assert mutants_of("mutable", ["room"])


def test_a_sample_follows_from_its_seed(package: ModuleType) -> None:
    every = mutants_of("mutable", ["room"])
    assert sample(every, 3, seed=1) == sample(every, 3, seed=1)
    assert {tuple(sample(every, 3, seed=seed)) for seed in range(20)} != {tuple(sample(every, 3, seed=1))}
    assert set(sample(every, 3, seed=1)) < set(sample(every, 4, seed=1))
    assert set(sample(every, 3, seed=1)) <= set(sample(every[:5], 3, seed=1)) | set(every[5:])
    assert sample(every, 1000, seed=1) == sorted(every, key=lambda each: each.name)


def test_a_decorated_function_is_changed_wherever_it_is_held(package: ModuleType) -> None:
    change = mutant("double")

    def act() -> bool:
        assert package.double(3) == 6
        return install(change) and package.double(3) == 0 and package.TABLE["double"](3) == 0

    assert in_a_child(act)
    assert package.double(3) == 6


def test_a_method_behind_a_descriptor_is_changed(package: ModuleType) -> None:
    change = mutant("Box.of/operator")
    held = package.Box.of
    assert in_a_child(lambda: install(change) and held(1).size != 4)


def test_a_closure_that_exists_is_changed(package: ModuleType) -> None:
    change = mutant("adder")
    assert in_a_child(lambda: install(change) and package.add_three(1) == -2)


def test_a_frozen_function_is_changed(package: ModuleType) -> None:
    import gc

    change = mutant("adder")

    def act() -> bool:
        gc.freeze()
        return install(change) and package.add_three(1) == -2

    assert in_a_child(act)
