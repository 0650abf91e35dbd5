"""Programs whose modules load, loading an image, running `fill` (runtime specification, 4.5)."""

from __future__ import annotations

from tessera_conformance.protocol import Observation

from ...ir.kit.level_programs import WARPS
from .encoding import packed
from .mesh_session import BYTES, MeshSession

PROGRAMS = {
    "one kernel": "module m { kernel k(v: int32, x: tensor<64xint32>) { x[0:64] = v; } }",
    "named dimensions": "module m { kernel k(N: int32, x: tensor<Nxint32>) { x[0:N] = N; } }",
    "a matrix product": "module m { kernel k(a: tensor<16x16xfp32>, b: tensor<16x16xfp32>) { b = a @ a; } }",
    "a function beside it": """module m {
        func double(x: tensor<4xfp32>) -> tensor<4xfp32> { return x + x; }
        kernel k(x: tensor<4xfp32>) { x = double(x); }
    }""",
    "no parameters": "module m { kernel k() { } }",
}


def filled(session: MeshSession, kernel: int, value: int) -> list[float]:
    """Return memory after a launch of `fill` with this value."""
    pointer = session.allocate(BYTES)
    session.launch(kernel, packed(("int32", value), ("ptr", pointer)))
    return session.integers(pointer)


def loading(session: MeshSession, image: str) -> Observation:
    """Return the answer of tessModuleLoad to an image."""
    return session.attempt("tessModuleLoad", context=session.context, image=image)


def foreign_targets(session: MeshSession) -> list[str]:
    """Return targets that no device of the machine runs: of the other vendor if there are such (AMB-RT-125)."""
    own = {device["target"] for device in session.ask("tessxDevices")["devices"]}
    vendors = {target[:2] for target in own}
    return [warp for warp in WARPS if warp[:2] not in vendors] or [warp for warp in WARPS if warp not in own]
