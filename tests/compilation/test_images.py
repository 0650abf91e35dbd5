"""Images of programs: without a compiler of machine code, explained, and the same bytes in every process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import Any

import pytest

from tessera_reference.compilation import images
from tessera_reference.compilation.images import compile_module
from tessera_reference.ir.diagnostics import MissingTool

ADD = "module m { kernel add(A: tensor<4x8xfp32>, B: tensor<4x8xfp32>, C: tensor<4x8xfp32>) { C = A + B; } }"
BOTH = """module m {
  func half(X: tensor<MxNxfp32>) -> tensor<MxNxfp32> { return X * 0.5; }
  kernel narrow(X: tensor<4x4xfp32>) { X = half(X); }
  kernel wide(X: tensor<4x64xfp32>) { X = half(X); }
  kernel open(X: tensor<NxNxfp32>, N: int64) { X = half(X); }
}
module n {
  func half(X: tensor<2xfp32>) -> tensor<2xfp32> { return X / 2.0; }
  kernel other(X: tensor<2xfp32>) { if (X[0] > 0.0) { X = half(X); } }
}
"""


def kinds(fatbin: Any) -> list[tuple[str, str | None]]:
    return [(section.kind, section.target) for section in fatbin.sections]


def test_without_the_compiler_of_machine_code_the_ir_stands_alone(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> str:
        raise MissingTool("llvmlite", "pip install it")

    monkeypatch.setattr(images, "emit", missing)
    assert kinds(build.compiled(ADD)) == [("graph-ir", None), ("target-ir", "sm_90")]


BYTES = """
import hashlib, sys
from tessera_reference.compilation.images import compile_module
print(hashlib.sha256(compile_module(sys.stdin.read(), ["sm_80", "gfx90a"])).hexdigest())
"""


@pytest.mark.slow
def test_the_bytes_of_an_image_are_the_same_in_every_process() -> None:
    expected = hashlib.sha256(compile_module(BOTH, ["sm_80", "gfx90a"])).hexdigest()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", BYTES], input=BOTH, env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected
