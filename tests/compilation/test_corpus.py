"""Programs of the equality corpus as kernels of an image, on devices too: the bits of Graph IR and golden vectors."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS, Program
from tessera_reference.abi.fatbin import Fatbin, read
from tessera_reference.abi.status import Status
from tessera_reference.compilation.executables import executables_of
from tessera_reference.compilation.images import compile_module
from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.mesh.axes import MeshAxes
from tessera_reference.mesh.topology import named
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import DTYPES, dtype
from tessera_reference.runtime import Runtime
from tessera_reference.runtime.launches import LaunchConfig

SPREAD = (
    "relu",
    "bias-gelu",
    "chain",
    "turns",
    "called-in-a-loop",
    "drawn",
    "directed",
    "tiled-rows",
    "matmul/fp64/left-fold",
    "matmul/bf16/batched",
    "softmax/fp32/axis-1",
    "reductions/fp32/sum/n-33",
    "movement/complex64/reshape/matrix",
    "attention/bf16/rectangular",
    "casts/fp32-to-fp8_e4m3/edges",
)
BY_NAME = {program.name: program for program in PROGRAMS}


def require_same_bits(kernel: Any, fatbin: Fatbin, target: str) -> None:
    written = executables_of(fatbin, "k", target).run(kernel.arguments, (3, 2, 1), (64, 1, 1))
    assert list(written) == ["Result"]
    assert written["Result"].to_bits() == kernel.expected, kernel.program.name


@pytest.mark.parametrize("name", SPREAD)
def test_a_kernel_leaves_the_bits_of_graph_ir(build: Any, name: str) -> None:
    kernel = build.corpus_kernel(name)
    require_same_bits(kernel, build.compiled(kernel.source, ir_pack=True), "sm_90")


@pytest.mark.slow
def test_every_program_that_can_be_a_kernel_does_so_from_its_target_ir(build: Any, drawn: Callable[[int], int]) -> None:
    """A quarter of them without `--whole`."""
    kernels = [build.corpus_kernel(program.name) for program in PROGRAMS]
    possible = [kernel for kernel in kernels if kernel.is_possible]
    assert len(possible) >= 85
    for kernel in Random(2).sample(possible, drawn(len(possible))):
        fatbin = read(build.image_for_two_vendors(kernel.source))
        for target in fatbin.targets:
            assert fatbin.section("target-ir", target) is not None
            require_same_bits(kernel, fatbin, target)


@pytest.mark.slow
def test_what_stands_for_the_tools_of_vendors_is_accepted(build: Any, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    tool = shutil.which("ptxas")
    if tool is None:
        pytest.skip("ptxas is not installed: it is part of the CUDA toolkit")
    assert [_assembled(build.corpus_kernel(name), build, tool, tmp_path) for name in SPREAD].count(True) >= 12


def _assembled(kernel: Any, build: Any, tool: str, folder: Path) -> bool:
    fatbin = read(build.image_for_two_vendors(kernel.source))
    code = fatbin.section("ptx", "sm_90")
    if code is None:
        return False
    (folder / "kernels.ptx").write_bytes(code.data)
    command = [tool, "-arch=sm_90", "-c", "kernels.ptx", "-o", "kernels.cubin"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text, other = fatbin.section("target-ir", "gfx942"), fatbin.section("rocdl", "gfx942")
    assert text is not None and other is not None
    symbols = [part.split('"')[0] for part in text.data.decode().split('sym_name = "tss_kernel_')[1:]]
    assert symbols and all(f"tss_kernel_{symbol}".encode() in other.data for symbol in symbols)
    return True


def test_the_spread_is_of_the_corpus() -> None:
    assert all(isinstance(BY_NAME.get(name), Program) for name in SPREAD)


RANKS = 8
FEW = ("bias-gelu", "turns", "matmul/bf16/batched", "softmax/fp32/axis-1", "attention/bf16/rectangular", "drawn")
ATTENTION = """module attention {
  kernel flash_attention_fused(Q: tensor<BxHxLxDxbf16>, K: tensor<BxHxLxDxbf16>, V: tensor<BxHxLxDxbf16>,
                               O: tensor<BxHxLxDxbf16>, B: int32, H: int32, L: int32, D: int32, scale: fp32) {
    O = op.flash_attention(Q, K, V);
  }
}
"""


class Devices:
    """Eight devices with one stream; every call has to succeed."""

    def __init__(self, topology: str = "eight-sm90") -> None:
        self.runtime = Runtime(named(topology))
        self.context = self.ask("tessInit")
        self.mesh = self.ask(
            "tessMeshCreate", self.context, list(range(RANKS)), RANKS, MeshAxes(tp=2, pp=1, dp=4, ep=0)
        )
        self.stream = self.ask("tessStreamCreate", self.mesh, 0)

    def ask(self, function: str, *arguments: Any) -> Any:
        answer = getattr(self.runtime, function)(*arguments)
        status, output = answer if isinstance(answer, tuple) else (answer, None)
        assert status is Status.TESS_OK, self.runtime.last_error
        return output

    def kernel(self, image: bytes, name: str) -> int:
        module = self.ask("tessModuleLoad", self.context, image, len(image))
        return int(self.ask("tessKernelGet", module, name))

    def allocated(self, per_rank: list[bytes]) -> int:
        pointer = self.ask("tessMalloc", self.mesh, len(per_rank[0]))
        for rank, data in enumerate(per_rank):
            self.ask("tessxPoke", self.mesh, rank, pointer, data)
        return int(pointer)

    def launched(self, kernel: int, arguments: bytes, flags: int = 0) -> None:
        config = LaunchConfig((256, 1, 1), (128, 1, 1), 0, flags)
        self.ask("tessLaunch", kernel, self.mesh, config, arguments, len(arguments), self.stream)
        self.ask("tessStreamSynchronize", self.stream)

    def held(self, rank: int, pointer: int, count: int) -> bytes:
        return bytes(self.ask("tessxPeek", self.mesh, rank, pointer, count))


def packed(devices: Devices, kernel: Any) -> tuple[bytes, int]:
    """The parameter buffer of a kernel of the corpus, and the pointer to its result."""
    buffer, result = bytearray(), 0
    for name, array in kernel.arguments.items():
        data = array.to_bits()
        if array.shape:
            result = devices.allocated([data] * RANKS)
            data = struct.pack("<Q", result)
        step = min(len(data), 8)
        buffer += bytes(-len(buffer) % step) + data
        assert name == "Result" or array is not None
    return bytes(buffer) + bytes(-len(buffer) % 8), result


def require_bits_on_every_rank(build: Any, kernel: Any, topology: str) -> None:
    devices = Devices(topology)
    image = build.image_for_two_vendors(kernel.source)
    buffer, result = packed(devices, kernel)
    devices.launched(devices.kernel(image, "k"), buffer)
    for rank in range(RANKS):
        assert devices.held(rank, result, len(kernel.expected)) == kernel.expected, (kernel.program.name, rank)


@pytest.mark.parametrize("name", FEW)
def test_a_program_of_the_corpus(build: Any, name: str) -> None:
    require_bits_on_every_rank(build, build.corpus_kernel(name), "eight-sm90")


@pytest.mark.slow
def test_every_program_of_the_corpus_on_devices_of_two_vendors(build: Any, drawn: Callable[[int], int]) -> None:
    """A quarter of them without `--whole`, and not the same as in `test_corpus`."""
    kernels = [build.corpus_kernel(program.name) for program in PROGRAMS]
    possible = [kernel for kernel in kernels if kernel.is_possible and _passes(kernel)]
    assert len(possible) >= 80
    for kernel in Random(1).sample(possible, drawn(len(possible))):
        require_bits_on_every_rank(build, kernel, "mixed")


def _passes(kernel: Any) -> bool:
    has_ids = all(DTYPES[array.dtype.name].abi_id is not None for array in kernel.arguments.values())
    return has_ids and "mesh<" not in kernel.source


@pytest.mark.parametrize("topology", ["eight-sm90", "mixed", "two-nodes"])
@pytest.mark.parametrize("extents", [(1, 2, 4, 8), (2, 1, 16, 8)], ids=str)
def test_the_sample_of_section_18_with_other_data_on_every_rank(
    topology: str, extents: tuple[int, int, int, int]
) -> None:
    devices = Devices(topology)
    kernel = devices.kernel(compile_module(ATTENTION, ("sm_90", "gfx942")), "flash_attention_fused")
    count = int(np.prod(extents))  # integers
    # Codes of bf16 from 2^-7 to 2^2 and their negatives, another sequence on every rank and for every tensor.
    given = [
        [
            Array.from_bits(
                dtype("bf16"),
                extents,
                b"".join(
                    struct.pack("<H", 0x3C00 + (97 * i + 31 * rank + 11 * which) % 0x440 + 0x8000 * (i % 3 == 0))
                    for i in range(count)
                ),
            )
            for which in range(3)
        ]
        for rank in range(RANKS)
    ]
    pointers = [devices.allocated([given[rank][which].to_bits() for rank in range(RANKS)]) for which in range(3)]
    pointers.append(devices.ask("tessMalloc", devices.mesh, 2 * count))
    devices.launched(kernel, struct.pack("<4Q4if4x", *pointers, *extents, 1.0), flags=1)
    graph = compile_source(ATTENTION).module
    for rank in range(RANKS):
        inputs = dict(zip("QKV", given[rank], strict=True)) | {"O": given[rank][0]}
        for name, extent in zip("BHLD", extents, strict=True):
            inputs[name] = Array.checked(dtype("int32"), np.asarray(extent))
        inputs["scale"] = Array.checked(dtype("fp32"), np.asarray(1.0))
        *_, expected = execute(graph, "flash_attention_fused", inputs)
        assert devices.held(rank, pointers[3], 2 * count) == expected.to_bits(), rank
    assert devices.runtime.tessxFindings() == ()
