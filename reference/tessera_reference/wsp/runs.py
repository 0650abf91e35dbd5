"""The runs of packages, by target."""

from __future__ import annotations

from collections.abc import Mapping

from .a2a3sim.device_run import DeviceRun
from .artifact.build import NativeRun
from .errors import DeviceNeeded
from .executor.run import MOST_STEPS, Run
from .package import Package

RUNS: Mapping[str, type[Run]] = {
    "cpu_sim": Run,
    "pto_runtime_a2a3sim": DeviceRun,
    "pto_runtime_a2a3sim_host_graph": DeviceRun,
}


def prepared(
    package: Package,
    symbols: Mapping[str, int] | None = None,
    tensors: Mapping[str, bytes] | None = None,
    resources: Mapping[str, int] | None = None,
    seed: int | None = None,
    max_steps: int = MOST_STEPS,
    native: bool = False,
) -> Run | NativeRun:
    """A run that has not begun, of a package for cpu_sim by its native program where that is asked for.

    Raises `DeviceNeeded` for a target that is not simulated, `ArgumentRefused`, `NoCompiler` and `BuildFailed`.
    """
    if package.target not in RUNS:
        raise DeviceNeeded(package.target)
    if native and package.target == "cpu_sim":
        return NativeRun(package, symbols, tensors, resources, seed, max_steps)
    return RUNS[package.target](package, symbols, tensors, resources, seed, max_steps=max_steps)
