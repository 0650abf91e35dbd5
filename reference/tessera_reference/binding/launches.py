"""Launches (runtime spec 4.5, 5, 6)."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType

from ..abi.enumerations import LaunchFlag
from ..runtime.launches import LaunchConfig
from .arguments import ArgumentBuffer, pack_args
from .errors import invalid, require
from .locking import locked
from .meshes import DefaultStream, Mesh, Stream, stream_on
from .modules import Kernel

__all__ = ["LaunchFlag", "launch"]


@locked
def launch(
    kernel: Kernel,
    mesh: Mesh,
    *,
    grid: Sequence[int],
    block: Sequence[int] = (0, 0, 0),
    args: ArgumentBuffer | None = None,
    stream: Stream | DefaultStream | None = None,
    shmem_bytes: int = 0,
    flags: int = LaunchFlag.TESS_LAUNCH_DEFAULT,
) -> None:
    """tessLaunch: queue a kernel on every rank of a mesh (RT-05-05); zeros in `block` leave it to the compiler.

    Arrays of the caller are used where they lie, by all ranks: leave them alone until the stream is synchronized.
    Raises `TesseraError`; what fails while the kernel runs is raised by `synchronize`.
    """
    for name, given, wanted in (("kernel", kernel, Kernel), ("mesh", mesh, Mesh), ("flags", flags, int)):
        require("tessLaunch", name, given, wanted)
    require("tessLaunch", "args", args, ArgumentBuffer, NoneType)
    context = mesh.context
    on = stream_on(mesh, stream, "tessLaunch")
    config = LaunchConfig(_three("grid", grid, 1), _three("block", block, 1), shmem_bytes, int(flags))
    with mesh.submission(on):
        buffer = (args or pack_args()).bytes_for(mesh, kernel.entry)
        status = context.runtime.tessLaunch(kernel.handle, mesh.handle, config, buffer, len(buffer), on.handle)
        context.check(status)


def _three(name: str, extents: Sequence[int], rest: int) -> tuple[int, int, int]:
    """Extents in three dimensions, those left out being `rest`. Raises `TesseraError`."""
    require("tessLaunch", name, extents, int, tuple, list)
    given = (extents,) if isinstance(extents, int) else tuple(extents)
    if not 1 <= len(given) <= 3:
        raise invalid("tessLaunch", f"{name} {given}", "one to three extents")
    x, y, z = (*given, *[rest] * (3 - len(given)))
    return x, y, z
