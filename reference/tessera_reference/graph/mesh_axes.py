"""The mesh in force and its axes (spec section 5.4; AMB-LANG-60, AMB-LANG-108)."""

from collections.abc import Mapping

from ..ir.operation import require
from ..ir.spelling import did_you_mean
from ..ir.types import Mesh


def resolve_axis(meshes: Mapping[str, Mesh], axis: str, mesh: str | None) -> tuple[str, int]:
    """The mesh in force and its extent along `axis`: the only mesh, or the named one (AMB-LANG-60, AMB-LANG-108).

    Raises `Refusal` of category distributed.
    """
    require(
        bool(meshes),
        "distributed",
        f"axis {axis} is of no mesh: the module declares none",
        f"a mesh with an axis {axis}",
        "LANG-05.4-04",
        f"declare one: mesh g = mesh<axes=[{axis}], shape=[2]>;",
    )
    require(
        mesh is not None or len(meshes) == 1,
        "distributed",
        f"which mesh has the axis {axis}? There are {', '.join(meshes)}",
        "a mesh by name, where the module declares several",
        "AMB-LANG-108",
        f"name it: mesh={next(iter(meshes), '')}",
    )
    name = next(iter(meshes)) if mesh is None else mesh
    require(
        name in meshes,
        "distributed",
        f"unknown mesh {name!r}",
        f"one of {', '.join(meshes)}",
        "AMB-LANG-108",
        did_you_mean(name, meshes),
    )
    axes = dict(zip(meshes[name].axes, meshes[name].shape, strict=True))
    require(
        axis in axes,
        "distributed",
        f"mesh {name} has no axis {axis!r}",
        f"one of its axes: {', '.join(axes)}",
        "LANG-05.4-04",
        did_you_mean(axis, axes),
    )
    return name, axes[axis]
