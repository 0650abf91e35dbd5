"""Modules and their kernels (runtime spec 4.5, 5, 17)."""

from __future__ import annotations

from collections.abc import Iterator

from ..abi.fatbin import KernelEntry, read
from ..runtime.calls.planning import Explained
from .contexts import Context, current
from .errors import failures_raised, require
from .locking import locked_class

__all__ = ["Kernel", "Kernels", "Module"]


@locked_class
class Kernel:
    """A kernel of a module, with its entry descriptor; it lives as long as the module."""

    def __init__(self, module: Module, name: str) -> None:
        """tessKernelGet. Raises `TesseraError`."""
        context = module.context
        self.module = module
        self.handle = context.value(context.runtime.tessKernelGet(module.handle, name))
        self.entry: KernelEntry = module.entries[name]

    @property
    def name(self) -> str:
        """The public name."""
        return self.entry.name


@locked_class
class Kernels:
    """The kernels of a module by name (RT-05-09)."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._kernels: dict[str, Kernel] = {}

    def __getitem__(self, name: str) -> Kernel:
        """The kernel called `name`. Raises `TesseraError` where the module has none."""
        require("tessKernelGet", "name", name, str)
        if name not in self._kernels:
            self._kernels[name] = Kernel(self._module, name)
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._module.entries)

    def __len__(self) -> int:
        return len(self._module.entries)


@locked_class
class Module:
    """A fatbin in a context: `module.kernel["name"]`."""

    def __init__(self, image: bytes, context: Context | None = None) -> None:
        """tessModuleLoad. Raises `TesseraError`."""
        self.context = current("tessModuleLoad", context)
        require("tessModuleLoad", "image", image, bytes, bytearray, memoryview)
        self.handle = self.context.value(self.context.runtime.tessModuleLoad(self.context.handle, image, len(image)))
        with failures_raised():
            self.entries = {entry.name: entry for entry in read(image).metadata.kernels}
        self.kernel = Kernels(self)
        self._is_open = True

    def explain(self) -> str:
        """tessExplain: fusion groups, tile shapes and collective plans, in words."""
        explained: Explained = self.context.value(self.context.runtime.tessxExplain(self.handle))
        return explained.text

    def close(self) -> None:
        """tessModuleUnload, which lets queued launches finish. Closing twice is no error."""
        if self._is_open and self.context.is_open:
            self._is_open = False
            self.context.check(self.context.runtime.tessModuleUnload(self.handle))
