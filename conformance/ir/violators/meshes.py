"""Front ends with one rule of meshes changed: form, type or scope (sections 2.3, 5, 9)."""

from tessera_conformance.strength import Around
from tessera_reference.ir.types import Mesh, Shard

from .changes import instead, wrapped
from .language_syntax import filtered, refuses, rewrites


def of_any_lengths(type_):
    shape = tuple(map(int, type_.shape)) + (1,) * len(type_.axes)
    return Mesh(type_.axes, shape[: len(type_.axes)])


def with_repeated_axes(usual, type_):
    if len(type_.axes) == len(set(type_.axes)):
        return usual(type_)
    return Mesh(tuple(f"{axis}{place}" for place, axis in enumerate(type_.axes)), (1,) * len(type_.axes))


def unknown_axes_of_one(meshes, axis, mesh):
    name = mesh or next(iter(meshes), "g")
    known = meshes.get(name, Mesh((), ()))
    group = dict(zip(known.axes, known.shape, strict=True)).get(axis, 1)
    return {"group": group, "grid": name, "met": Shard((axis,))}


VIOLATIONS = [
    rewrites("LANG-02.3-06", "mesh_without_semicolon", "lets a mesh declaration go without a semicolon",
        r"(mesh \w+ = mesh<[^>]*>)\n", r"\1;\n"),
    rewrites("LANG-02.3-06", "mesh_without_equals", "lets a mesh declaration go without an equals sign",
        r"(mesh \w+) mesh<", r"\1 = mesh<"),
    refuses("LANG-02.3-06", "mesh_on_one_line", "wants a mesh declaration on one line", r"mesh<[^>]*\n"),
    rewrites("LANG-02.3-50", "shape_before_axes", "takes the shape of a mesh before its axes",
        r"mesh<(shape=\[\w+\]), (axes=\[\w+\])>", r"mesh<\2, \1>"),
    rewrites("LANG-02.3-50", "bare_axes", "takes one axis without brackets", r"axes=(\w+), shape=(\w+)",
        r"axes=[\1], shape=[\2]"),
    rewrites("LANG-02.3-50", "axis_for_axes", "takes the word axis for axes", r"mesh<axis=", "mesh<axes="),
    refuses("LANG-02.3-50", "reserved_axes", "reserves the words axes and shape", r"mesh (axes|shape)\b"),
    filtered("LANG-13.2-01", "implicit_module", "takes declarations outside a module as a module",
        lambda source: source if "module" in source else f"module implicit {{ {source} }}"),
    instead("LANG-09-01", "any_lengths", "fills missing extents of a mesh up", "language.modules.resolve_mesh",
        of_any_lengths),
    wrapped("LANG-09-01", "repeated_axes", "takes a mesh with an axis twice", "language.modules.resolve_mesh",
        with_repeated_axes),
    instead("LANG-09-01", "column_major_ranks", "counts ranks with the first axis fastest", "graph.execution.Group.of",
        Around(lambda usual: staticmethod(lambda name, mesh, *place:
            usual(name, Mesh(mesh.axes[::-1], mesh.shape[::-1]), *place)))),
    instead("LANG-05.1-02", "mesh_type_of_sorted_axes", "lists the axes of its mesh types in alphabetical order",
        "ir.types.Mesh.__str__",
        lambda self: f"mesh<axes=[{', '.join(sorted(self.axes, reverse=True))}], shape={list(self.shape)}>"),
    instead("LANG-05.4-04", "axis_of_no_mesh", "takes an axis of no mesh for one of a single rank",
        "language.expressions.ranks_along", unknown_axes_of_one),
    rewrites("LANG-05.4-04", "unknown_axis", "takes the first axis for one that the mesh lacks",
        r"axis=\"?(pp|d|dpp|g|mesh|meshes)\b\"?", "axis=dp"),
    rewrites("LANG-05.4-04", "axes_of_any_case", "takes DP for dp", r'axis=("?)DP', r"axis=\1dp"),
    refuses("LANG-13.2-03", "no_dist_values", "has dist calls as statements only", r"= dist\.|return dist\."),
]  # fmt: skip
