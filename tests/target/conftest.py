"""Kernels of the Target level built by hand."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tessera_reference.graph.execution import execute
from tessera_reference.ir.diagnostics import Location, Span
from tessera_reference.ir.operation import Block, Builder, Function, Module
from tessera_reference.ir.targets import Target, target_of
from tessera_reference.ir.types import Pointer, Scalar, Type, Value
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES
from tessera_reference.target_ir.emission.machine_code import assembly, checked, machine_for
from tessera_reference.target_ir.operations.llvm import Constant
from tessera_reference.target_ir.operations.memory import GetElementPtr, Load, Store
from tessera_reference.target_ir.operations.vendors import REGISTERS
from tessera_reference.tile.interpreter import run_kernel

PLACE = Location("kernel.mlir", Span(1, 1, 1, 2))
BUFFER = Pointer(1)


class Build(Builder):
    """Builds instructions, with the ones that every kernel needs by short names."""

    def __init__(self, vendor: str = "nvidia", prefix: str = "v") -> None:
        super().__init__(PLACE, prefix)
        self.vendor = vendor

    def constant(self, value: float, name: str = "int32") -> Value:
        """A number in every lane."""
        return self(Constant, value=value, dtype=DTYPES[name])

    def thread(self, axis: int = 0) -> Value:
        """The place of the thread in its block."""
        return self(REGISTERS[self.vendor, "thread", axis])

    def load(self, pointer: Value, index: Value, type_: Type) -> Value:
        """Return the element that lies so many elements on."""
        return self(Load, self(GetElementPtr, pointer, index, elem_type=type_.dtype), returns=type_)

    def store(self, value: Value, pointer: Value, index: Value) -> None:
        """Write so many elements on."""
        self.all(Store, value, self(GetElementPtr, pointer, index, elem_type=value.type.dtype))


def kernel(
    parameters: Mapping[str, Type],
    body: Callable[..., None],
    block: tuple[int, int, int] = (32, 1, 1),
    grid: tuple[int, int, int] = (1, 1, 1),
    target: str = "sm_90",
    name: str = "tss_kernel_k",
    smem: int = 0,
) -> Function:
    """A kernel whose body `body(build, *parameters)` builds."""
    build = Build(target_of(target).vendor)
    arguments = tuple(Value(parameter, type_) for parameter, type_ in parameters.items())
    body(build, *arguments)
    attributes = {"grid": grid, "block": block, "smem_bytes": smem, "target": target}
    return Function(name, Block(arguments, tuple(build.instructions), ()), (), PLACE, attributes, device="target")


def array(name: str, values: Any) -> Array:
    """Numbers as an array of a dtype that holds them."""
    return Array.checked(DTYPES[name], np.asarray(values))


def run(made: Function, *arguments: Any) -> tuple[Array, ...]:
    """The buffers of a kernel after it has run."""
    return run_kernel(made, arguments, target_of(str(made.attributes["target"])))


def target_named(made: Function) -> Target:
    """The target that a kernel is for."""
    return target_of(str(made.attributes["target"]))


class Tools:
    """The tools that accept what is emitted; a test that needs one that is not there says how to install it."""

    @staticmethod
    def needs_llvm() -> None:
        """Skip without llvmlite."""
        pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")

    @staticmethod
    def assembly(text: str, target: Target) -> str:
        """The assembly of the target's vendor."""
        Tools.needs_llvm()
        return assembly(text, "ptx" if target.vendor == "nvidia" else "amdgcn", target)

    @staticmethod
    def assemble(text: str, target: Target, folder: Path) -> None:
        """Make machine code by the vendor's assembler or linker, where it is installed."""
        Tools.needs_llvm()
        if target.vendor == "nvidia":
            Tools._ptxas(assembly(text, "ptx", target), target, folder)
        else:
            Tools._link(machine_for(target).emit_object(checked(text)), folder)

    @staticmethod
    def _ptxas(code: str, target: Target, folder: Path) -> None:
        tool = shutil.which("ptxas")
        if tool is None:
            pytest.skip("ptxas is not installed: it is part of the CUDA toolkit")
        (folder / "kernel.ptx").write_text(code, encoding="utf-8")
        Tools._run(tool, f"-arch={target.name}", "-c", "kernel.ptx", "-o", "kernel.cubin", folder=folder)
        assert (folder / "kernel.cubin").stat().st_size > 0

    @staticmethod
    def _link(code: bytes, folder: Path) -> None:
        tool = shutil.which("ld.lld-22") or shutil.which("ld.lld")
        if tool is None:
            pytest.skip("ld.lld is not installed: apt-get install lld")
        (folder / "kernel.o").write_bytes(code)
        Tools._run(tool, "-shared", "kernel.o", "-o", "kernel.hsaco", folder=folder)
        assert (folder / "kernel.hsaco").read_bytes()[:4] == b"\x7fELF"

    @staticmethod
    def _run(*command: str, folder: Path) -> None:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


class Bits:
    """The bits that the function `f` of a program gives, and whether lowering keeps them."""

    @staticmethod
    def of(module: Module, inputs: dict[str, Array]) -> list[bytes]:
        return [result.to_bits() for result in execute(module, "f", inputs)]


@pytest.fixture
def bits() -> type[Bits]:
    return Bits


@pytest.fixture
def tools() -> type[Tools]:
    """The tools that accept emitted text."""
    return Tools


@pytest.fixture
def kernels() -> Any:
    """The functions of this file, which tests cannot import from it."""
    return KERNELS


class Kernels:
    """The builders of kernels."""

    Build = Build
    kernel = staticmethod(kernel)
    array = staticmethod(array)
    run = staticmethod(run)
    target_of = staticmethod(target_named)
    buffer = BUFFER
    int32 = Scalar(DTYPES["int32"])
    fp32 = Scalar(DTYPES["fp32"])


KERNELS = Kernels()
