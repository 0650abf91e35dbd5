"""The Python binding of the runtime: section 5 of the runtime spec, thin over `tessera_reference.runtime.api`.

`import tessera_reference as ts` gives the names below. Nothing here computes: a call becomes a call of the runtime, and
a status other than TESS_OK a `TesseraError`. Per-rank submission and graph replay are left to the runtime's extensions.
"""

from ..abi.status import LaunchFlag
from . import collectives, module
from .contexts import Context, TesseraError, init, version
from .launches import ArgumentBuffer, Kernel, Module, launch, pack_args
from .meshes import DeviceArray, Event, Mesh, PinnedArray, Stream, copy, default_stream, mesh, synchronize

__all__ = [
    "ArgumentBuffer",
    "Context",
    "DeviceArray",
    "Event",
    "Kernel",
    "LaunchFlag",
    "Mesh",
    "Module",
    "PinnedArray",
    "Stream",
    "TesseraError",
    "collectives",
    "copy",
    "default_stream",
    "init",
    "launch",
    "mesh",
    "module",
    "pack_args",
    "synchronize",
    "version",
]
