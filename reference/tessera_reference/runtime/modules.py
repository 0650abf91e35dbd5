"""Loaded modules and their kernels (runtime spec 4.5, 8.1, 8.2; AMB-RT-18, AMB-RT-35, AMB-RT-42, AMB-RT-43)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..abi.fatbin import Fatbin, KernelEntry
from .contexts import Context

if TYPE_CHECKING:
    from ..compilation.executable import Executable

__all__ = ["Kernel", "LoadedModule"]


@dataclass(eq=False)
class LoadedModule:
    """A module of a context, and its executables by kernel, target, extents and policy."""

    handle: int
    context: Context
    fatbin: Fatbin
    executables: dict[tuple[object, ...], Executable] = field(default_factory=dict)
    kernels: dict[str, int] = field(default_factory=dict)
    """The handles of its kernels, by name."""

    def entry(self, name: str) -> KernelEntry | None:
        """The entry descriptor of a kernel, or None."""
        return next((each for each in self.fatbin.metadata.kernels if each.name == name), None)


@dataclass(eq=False)
class Kernel:
    """A kernel of a loaded module."""

    handle: int
    module: LoadedModule
    entry: KernelEntry

    @property
    def context(self) -> Context:
        """The context of its module."""
        return self.module.context
