"""Programs of the equality corpus as kernels of an image, on devices too: the bits of Graph IR."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tessera_conformance.chapters.ir.kit.equality_corpus import PROGRAMS
from tessera_reference.abi.fatbin import Fatbin, read
from tessera_reference.compilation.executables import executables_of

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
