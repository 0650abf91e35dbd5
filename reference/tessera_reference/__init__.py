"""The reference implementation of the Tessera specifications: small, readable, bit-exact.

The names of the Python binding are here too (runtime spec 5), each loaded when it is first asked for: `ts.init()`.
`ts.mesh` and `ts.collectives` are those of the binding; the packages of these names are reached by
`from tessera_reference.mesh.topology import ...`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .binding import *  # noqa: F403

__version__ = "0.1.0"

__all__ = """
    ArgumentBuffer Context DeviceArray Event Kernel LaunchFlag Mesh Module PinnedArray Stream TesseraError collectives
    copy default_stream init launch mesh module pack_args synchronize version
""".split()  # the names of `binding.__all__`, which is not imported yet


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(".binding", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(ModuleType):
    """This package. Importing a package sets an attribute of its name here, which must not hide the binding's."""

    @property
    def mesh(self) -> Any:
        return __getattr__("mesh")

    @mesh.setter
    def mesh(self, package: ModuleType) -> None: ...

    @property
    def collectives(self) -> Any:
        return __getattr__("collectives")

    @collectives.setter
    def collectives(self, package: ModuleType) -> None: ...


sys.modules[__name__].__class__ = _Package
