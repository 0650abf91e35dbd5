"""Programs of several modules become one text for the tools of vendors."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tessera_reference.ir.targets import target_of
from tessera_reference.language import compile_source
from tessera_reference.levels.emission import emit_all
from tessera_reference.levels.execution import Options

SOURCE = """
module m { func f(A: tensor<8xfp32>) -> tensor<8xfp32> { return A * A; } }
module n { func f(A: tensor<8xfp32>) -> tensor<8xfp32> { return A + A; } }
"""


def emitted(to: str, target: str) -> str:
    pytest.importorskip("llvmlite", reason="pip install 'tessera-conformance[llvm]'")
    return emit_all(compile_source(SOURCE).modules, to, target_of(target), Options())


def test_each_kernel_has_a_symbol_of_its_own() -> None:
    text = emitted("llvm", "sm_90")
    assert text.count("target triple") == 1
    assert text.count("define ptx_kernel void @tss_kernel_f_0(") == 1
    assert text.count("define ptx_kernel void @tss_kernel_n_f_0(") == 1


def test_ptxas_takes_them_together(tmp_path: Path) -> None:
    tool = shutil.which("ptxas")
    if tool is None:
        pytest.skip("ptxas is not installed: it is part of the CUDA toolkit")
    (tmp_path / "kernels.ptx").write_text(emitted("ptx", "sm_90"), encoding="utf-8")
    command = [tool, "-arch=sm_90", "-c", "kernels.ptx", "-o", "kernels.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
