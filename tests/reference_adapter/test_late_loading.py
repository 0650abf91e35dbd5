"""The areas of the adapter are imported when they are asked for: which, and what a substitute or a subclass sees."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from unittest import mock

import pytest

from tessera_conformance.interface import interface
from tessera_reference.adapter import METHODS, ReferenceAdapter, load_areas, make

SCRIPT = """
import sys
from tessera_reference.adapter import make
adapter = make()
adapter.hello()
{call}
rooms = {{name.split(".")[1] for name in sys.modules if name.startswith("tessera_reference.")}}
print(*sorted(rooms & set({rooms!r})))
"""
LOAD = "from tessera_reference.adapter import load_whole; load_whole()"
HEAVY = ("graph", "language", "schedule", "tile", "target", "runtime", "wsp", "host_io", "binding")
PROGRAM = "module m { func f(x: tensor<2xfp32>) -> tensor<2xfp32> { return x + x; } }"


@pytest.mark.parametrize(
    ("call", "absent"),
    [
        ("", HEAVY),
        ("adapter.runtime_tessInit(flags=0)", ("language", "schedule", "tile", "target", "wsp", "binding")),
        (f"adapter.language_verify(source={PROGRAM!r})", ("tile", "target", "runtime", "wsp", "binding")),
    ],
)
def test_what_is_not_asked_for_is_not_imported(call: str, absent: tuple[str, ...]) -> None:
    script = SCRIPT.format(call=call, rooms=HEAVY)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    assert found.isdisjoint(absent)
    assert not call or found


def test_the_whole_is_loaded_without_what_extras_bring() -> None:
    """The violators and variants are judged in a bare environment, too."""
    absent = ["cffi", "cryptography", "distributed", "jax", "llvmlite", "mpi4py", "numba"]
    script = f"import sys; sys.modules.update(dict.fromkeys({absent})); {LOAD}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_method_of_the_interface_has_an_area() -> None:
    load_areas()
    declared = {f"{area}_{name}" for area, row in interface().areas.items() if area in METHODS for name in row.methods}
    assert len(declared) > 100
    assert {name for name in declared if not callable(getattr(make(), name, None))} == set()
    assert getattr(make(), "language_translate", None) is None


def test_a_subclass_reaches_what_is_loaded_late() -> None:
    class Counting(ReferenceAdapter):
        calls = 0

        def language_parse(self, **request: Any) -> Any:
            self.calls += 1
            return super().language_parse(**request)

    adapter: Any = Counting()
    assert adapter.language_parse(source=PROGRAM)["modules"][0]["name"] == "m"
    assert adapter.calls == 1


def test_loading_does_not_undo_a_substitute() -> None:
    """Of a method whose area is loaded while the substitute stands, and after it."""
    with mock.patch.object(ReferenceAdapter, "abi_dtype_ids", return_value="of the substitute"):
        load_areas("abi")
        assert make().abi_dtype_ids() == "of the substitute"
    assert make().abi_dtype_ids()["ids"]["fp32"] >= 0


SUBSTITUTED = """
import sys
from tessera_conformance.strength import replaced
from tessera_reference.adapter import make
from tessera_reference.schedule import nests
REWRITTEN = nests.rewritten
def substitute(*given, **named):
    return REWRITTEN(*given, **named)
with replaced("RT-04.1-01", "a test", make, (nests, "rewritten", substitute)).broken() as adapter:
    adapter.language_lower(source={program!r}, to="tile")
modules = [module for name, module in sys.modules.items() if name.startswith("tessera_reference.")]
print(*(module.__name__ for module in modules if substitute in vars(module).values()))
"""


def test_nothing_keeps_a_substitute_that_was_in_force_when_it_was_first_needed() -> None:
    script = SUBSTITUTED.format(program=PROGRAM)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_a_reset_forgets_the_machine_and_keeps_the_compiler() -> None:
    adapter = make()
    runtime, compiler = adapter.runtime, adapter.compiler
    assert adapter.runtime is runtime
    adapter.session_reset()
    assert adapter.runtime is not runtime
    assert adapter.compiler is compiler
