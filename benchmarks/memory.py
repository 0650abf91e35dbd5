"""The most memory that a process takes for a sum in bf16, and for a chain of five operations on 256 MiB each."""

from __future__ import annotations

import subprocess
import sys

from measurement import Measurement

PEAK = "\nimport resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
SUM = """
import numpy as np
from tessera_reference.numerics.arithmetic import add
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
x, y = (Array.from_bits(dtype("bf16"), (1 << 26,), np.full(1 << 26, 0x3F80, "<u2").tobytes()) for _ in range(2))
add(x, y)
"""
CHAIN = """
import numpy as np
from tessera_reference.graph.execution import execute
from tessera_reference.language import compile_source
from tessera_reference.numerics.array import Array
from tessera_reference.numerics.formats import dtype
source = '''module m { func f(x: tensor<Nxfp32>) -> tensor<Nxfp32> {
  let a: tensor<Nxfp32> = x + x;
  let b: tensor<Nxfp32> = a * a;
  let c: tensor<Nxfp32> = b - b;
  let d: tensor<Nxfp32> = op.relu(c);
  return op.exp(d);
} }'''
x = Array(dtype("fp32"), np.ones(1 << 26, np.float32))
execute(compile_source(source).module, "f", {"x": x})
"""
BARE_SUM = "import numpy as np\nx, y = np.ones((2, 1 << 26), np.float32)\nx + y"
BARE_CHAIN = "import numpy as np\nx = np.ones(1 << 26, np.float32)\na = x + x\na = a * a\na = a - a\n"
BARE_CHAIN += "a = np.maximum(a, 0)\na = np.exp(a)"


def measure() -> list[Measurement]:
    """Gigabytes. The operands of the sum come as bits, and the result is held as bits, 128 MiB each."""
    rows = [("sum of 128 MiB in bf16", SUM, BARE_SUM, 0.6), ("five operations on 256 MiB", CHAIN, BARE_CHAIN, 0.8)]
    return [_peak(name, ours, peer, limit) for name, ours, peer, limit in rows]


def _peak(name: str, ours: str, peer: str, limit: float) -> Measurement:
    mine, other = (_gigabytes(script) for script in (ours, peer))
    return Measurement(name, mine, "numpy", other, mine, "GB", limit, peer_unit="MB")


def _gigabytes(script: str) -> float:
    done = subprocess.run([sys.executable, "-c", script + PEAK], check=True, capture_output=True, text=True)
    return int(done.stdout) * (1 if sys.platform == "darwin" else 1024) / 1e9
