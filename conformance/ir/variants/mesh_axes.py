"""Meshes with the axes of the runtime, gradients of one rank (language spec, 5.5, 9; AMB-LANG-143, AMB-RT-52)."""

from __future__ import annotations

from tessera_conformance.strength import altered
from tessera_reference.adapter import ReferenceAdapter
from tessera_reference.graph.collectives import AllReduce
from tessera_reference.ir.operation import Refusal
from tessera_reference.ir.types import Mesh
from tessera_reference.language import modules, syntax
from tessera_reference.language import values as types_of_texts

REACH = ("ir/mesh*", "ir/annotations/*", "ir/collectives/*", "ir/declarations/*", "ir/grammar/*", "ir/ranks/*")
AXES = ("tp", "pp", "dp", "ep")
RESOLVE = types_of_texts.resolve_mesh


def of_the_runtime(type_: syntax.MeshType) -> Mesh:
    """A mesh of these axes."""
    mesh = RESOLVE(type_)
    if not {*mesh.axes} <= {*AXES}:
        raise Refusal("distributed", f"axes {', '.join(mesh.axes)}", ", ".join(AXES), "LANG-09-01")
    return mesh


RUNTIME_AXES = altered(
    "AMB-RT-52",
    "takes meshes of the axes tp, pp, dp and ep alone",
    REACH,
    ReferenceAdapter,
    (types_of_texts, "resolve_mesh", of_the_runtime),
    (modules, "resolve_mesh", of_the_runtime),
    name="runtime_axes",
)

ITS_OWN = altered(
    "AMB-LANG-143",
    "differentiates each rank's own result alone",
    ("ir/ranks/*", "ir/gradients*", "ir/mesh*"),
    ReferenceAdapter,
    (AllReduce, "adjoint", lambda self, at, build: (at.dy,)),
    name="gradients_of_its_own",
)
