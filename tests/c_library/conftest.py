"""Programs that are compiled and linked with libtessera, and what section 18's needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tessera_conformance.oracle.compositions import flash_attention
from tessera_conformance.oracle.elementwise import add
from tessera_conformance.tensors import Tensor
from tessera_conformance.vectors.building import counted
from tessera_reference.compilation.images import compile_module
from tessera_reference.mesh.topology import default

PROGRAMS = Path(__file__).parent / "programs"
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror")
SHAPE = (1, 2, 4, 8)

KERNEL = """module model {
  kernel flash_attention_fused(Q: tensor<BxHxLxDxfp32>, K: tensor<BxHxLxDxfp32>, V: tensor<BxHxLxDxfp32>,
                               O: tensor<BxHxLxDxfp32>, B: int32, H: int32, L: int32, D: int32, scale: fp32) {
    O = %s;
  }
}
"""
ATTENTION = "op.matmul(op.softmax(op.matmul(Q, op.transpose(K, perm=[0, 1, 3, 2])) * scale, axis=3), V)"


def tool(name: str, package: str = "") -> str:
    """The path of a program; without it the test skips."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}: apt-get install {package or name}")
    return found


def flags(libtessera: Path) -> list[str]:
    """What pkg-config says of the library."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(libtessera / "lib/pkgconfig")}
    command = [tool("pkg-config"), "--cflags", "--libs", "tessera"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture
def compiled(libtessera: Path, tmp_path: Path) -> Callable[..., Path]:
    """Compile one of the programs and link it by pkg-config."""

    def compile_program(name: str, compiler: str = "gcc", *options: str) -> Path:
        target = tmp_path / f"{name}-{compiler}"
        source = str(PROGRAMS / f"{name}.c")
        command = [tool(compiler), *STRICT, *options, source, "-o", str(target), *flags(libtessera), "-pthread", "-lm"]
        subprocess.run(command, check=True)
        return target

    return compile_program


@dataclass(frozen=True)
class Sample:
    """The files that section 18's program takes, and the bits that it has to write."""

    image: Path
    inputs: Path
    output: bytes


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Attention by the program's kernel; what it has to write is the oracle's, which knows no implementation."""
    return made(tmp_path_factory.mktemp("section-18"), ATTENTION, partial(flash_attention, scale=1.0))


@pytest.fixture(scope="session")
def sum_sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The same with a kernel that adds: of libtessera it asks the same, of Python's numerics next to nothing."""
    return made(tmp_path_factory.mktemp("sum"), "Q + K + V", lambda q, k, v: add(add(q, k), v))


def made(folder: Path, result: str, expected: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Sample:
    """The files for a kernel that computes this of its operands, as the oracle has it."""
    q, k, v = (counted("fp32", SHAPE, seed=1800 + place) for place in range(3))
    sample = Sample(folder / "model.fatbin", folder / "inputs", expected(q, k, v).data)
    targets = list(dict.fromkeys(each.target for each in default().devices))
    sample.image.write_bytes(compile_module(KERNEL % result, targets))
    sample.inputs.write_bytes(b"".join(each.data for each in (q, k, v)))
    return sample
