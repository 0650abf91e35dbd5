"""`import tessera_reference as ts`: what it gives, and what it does not load."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import tessera_reference as ts
from tessera_reference import binding
from tessera_reference.runtime.api import Runtime


def test_every_name_of_the_binding_is_one_of_the_package() -> None:
    assert ts.__all__ == binding.__all__
    for name in binding.__all__:
        assert getattr(ts, name) is getattr(binding, name)
        assert name in dir(ts) or name in ts.__all__
    with pytest.raises(AttributeError, match="'tessera_reference' has no attribute 'nothing'"):
        _ = ts.nothing


@pytest.mark.parametrize(
    "first",
    [
        "",
        "import tessera_reference.mesh.axes, tessera_reference.collectives",
        "from tessera_reference.mesh.axes import MeshAxes",
    ],
)
def test_rooms_do_not_hide_the_binding(first: str) -> None:
    """The rooms `mesh` and `collectives` bear names of section 5; whichever is imported first, the binding's holds."""
    program = f"""
{first}
import tessera_reference as ts
from tessera_reference.mesh.topology import default
from tessera_reference.binding import meshes
assert ts.mesh is meshes.mesh and ts.collectives.broadcast and default().devices
from tessera_reference import mesh
assert mesh is meshes.mesh
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_no_room() -> None:
    program = "import sys, tessera_reference; print([n for n in sys.modules if n.startswith('tessera_reference.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_function_of_the_c_api_has_its_call_here() -> None:
    """Bindings are one to one (RT-05-07): each tess function is called somewhere, and nothing that does not exist."""
    functions = {name for name, _ in inspect.getmembers(Runtime, inspect.isfunction) if name.startswith("tess")}
    called = {
        node.attr
        for path in Path(str(binding.__file__)).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("tess")
    }
    assert {name for name in functions if not name.startswith("tessx")} <= called <= functions
