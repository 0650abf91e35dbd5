"""The Python binding of the runtime: section 5 of the runtime spec, thin over `tessera_reference.runtime.api`.

`import tessera_reference as ts` gives the names below. Nothing here computes: a call becomes a call of the runtime, and
a status other than TESS_OK a `TesseraError`. Per-rank submission and graph replay are left to the runtime's extensions.
"""

from . import collectives, module
from .arguments import ArgumentBuffer, pack_args
from .contexts import Context, init, version
from .device_arrays import DeviceArray, PinnedArray, copy
from .errors import TesseraError
from .launches import LaunchFlag, launch
from .meshes import Event, Mesh, Stream, default_stream, mesh, synchronize
from .modules import Kernel, Module

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
