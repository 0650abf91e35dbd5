"""Modules with collectives, which determine their plans (runtime specification, 8.1; AMB-COLL-85)."""

from __future__ import annotations

from .mesh_session import MeshSession

MESH = "dp=8 tp=1"


def module_text(*collectives: tuple[str, str], mesh: str = MESH, type_: str = "tensor<64xfp32>") -> str:
    """Return Graph IR of a module with a kernel and collectives of a tensor of a type: their names and attributes.

    The future of collective n is `%fn`; nothing awaits it.
    """
    axes, extents = zip(*(axis.split("=") for axis in mesh.split()), strict=True)
    names = ", ".join(f'"{axis}"' for axis in axes)
    issues = [
        f"%f{n} = tessera.collective.{name} %x {{{attributes}}}" for n, (name, attributes) in enumerate(collectives)
    ]
    return "\n".join(
        [
            '"builtin.module"() ({',
            f'  "tessera.graph.mesh"() {{sym_name = "g", axes = [{names}], shape = [{", ".join(extents)}]}} : () -> ()',
            '  "tessera.graph.func"() ({',
            f"  ^bb0(%x: {type_}):",
            *(f"    {line}" for line in issues),
            f'    "tessera.graph.return"(%x) : ({type_}) -> ()',
            f'  }}) {{sym_name = "f", function_type = ({type_}) -> ({type_})}} : () -> ()',
            '  "tessera.graph.kernel"() ({',
            "  ^bb0():",
            '    "tessera.graph.return"() : () -> ()',
            '  }) {sym_name = "nothing", function_type = () -> ()} : () -> ()',
            '}) {sym_name = "m"} : () -> ()',
            "",
        ]
    )


def load_hinting(session: MeshSession, algorithm: str, axis: str = "dp") -> int:
    """Load a module with a hint of an algorithm for all_reduce along an axis."""
    text = module_text(("all_reduce", f'op="sum", axis="{axis}", algo="{algorithm}"'))
    return session.load(text, at="graph")
