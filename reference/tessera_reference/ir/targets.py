"""The targets that programs are lowered for, with their hardware limits (sections 7.3, 8, 11; AMB-LANG-62, -68).

They are data: `targets.toml`, beside this file, names the sources of its numbers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ..numerics.formats import DType, dtype
from .diagnostics import did_you_mean

DEFAULT = "sm_90"


@dataclass(frozen=True)
class MmaShape:
    """A matrix instruction: (m, k) x (k, n) of one operand dtype."""

    dtype: DType
    m: int
    n: int
    k: int

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k} of {self.dtype}"


@dataclass(frozen=True)
class Target:
    """One kind of device: widths in lanes, sizes in bytes, registers of 32 bits."""

    name: str
    vendor: str
    warp: int
    shared_bytes: int
    registers: int
    threads_per_block: int
    mma: tuple[MmaShape, ...]

    def shapes_of(self, element: DType) -> tuple[MmaShape, ...]:
        """Return its matrix instructions for operands of a dtype."""
        return tuple(shape for shape in self.mma if shape.dtype == element)

    def has_mma(self, element: DType, m: int, n: int, k: int) -> bool:
        """True if it has a matrix instruction of that shape (LANG-07.3-02, LANG-11-10)."""
        return MmaShape(element, m, n, k) in self.mma


class OtherVendor(Exception):
    """The target's vendor does not have this kind of assembly."""

    def __init__(self, kind: str, target: Target) -> None:
        super().__init__(f"{target.name} takes no {kind}: it is {target.vendor}'s")


class UnknownTarget(Exception):
    """No target has that name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = tuple(TARGETS)
        hint = did_you_mean(name, self.known)
        super().__init__(f"no target {name!r}; there is {', '.join(self.known)}{hint and f': {hint}'}")


def target_of(name: str) -> Target:
    """Return the target with this name. Raises `UnknownTarget`."""
    if name not in TARGETS:
        raise UnknownTarget(name)
    return TARGETS[name]


def _read(name: str, entry: Mapping[str, Any]) -> Target:
    shapes = tuple(MmaShape(dtype(element), *shape) for element, every in entry["mma"].items() for shape in every)
    return Target(name, **{**entry, "mma": shapes})


TARGETS: Mapping[str, Target] = {
    name: _read(name, entry)
    for name, entry in tomllib.loads(files(__package__).joinpath("targets.toml").read_text(encoding="utf-8")).items()
}
"""Every target by name."""
