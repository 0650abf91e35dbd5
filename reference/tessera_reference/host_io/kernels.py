"""Kernels that a launch can name: those built in, and what they take (D7; AMB-HIO-40, AMB-HIO-57)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import ErrorCode, RequestFailed
from .memory import SparseMemory
from .numbers import bytes_of, rounded

__all__ = ["ANY", "BUILTINS", "Buffer", "Given", "Kernel", "require_bearable"]

MOST_READ = 1 << 28
"""Bytes."""
Floats: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Buffer:
    """A shard as the kernel sees it: bytes in the memory of the PE on which it runs."""

    space: SparseMemory
    pa: int
    nbytes: int

    def read(self) -> bytes:
        """Its bytes."""
        return self.space.read(self.pa, self.nbytes)

    def write(self, data: bytes) -> None:
        """Change its bytes."""
        self.space.write(self.pa, data)

    def floats(self) -> Floats:
        """Its elements as fp32."""
        return np.frombuffer(self.read(), "<f4")


Given: TypeAlias = Buffer | int | Decimal | bool
"""An argument of one PE: its shard of a tensor, or the value of a scalar."""


@dataclass(frozen=True)
class Kernel:
    """What a kernel takes, `tensor` or the dtype of a scalar each, and what it does on one PE.

    `parameters` is None where it takes anything. `check` refuses the bytes of shards that do not fit, before any runs;
    `run` raises `RequestFailed` with PE_FAULT.
    """

    parameters: tuple[str, ...] | None
    check: Callable[[Sequence[int]], None]
    run: Callable[[Sequence[Given]], None]


def require_bearable(count: int) -> None:
    """A kernel does not read more at once than this machine bears. Raises `RequestFailed` with UNSUPPORTED."""
    if count > MOST_READ:
        raise RequestFailed(ErrorCode.UNSUPPORTED, f"{count} bytes to be read at once, expected at most {MOST_READ}")


def _elements(size: int, reads: bool = True) -> Callable[[Sequence[int]], None]:
    """Shards that belong together have as many whole elements of a size; whether they are read."""

    def check(counts: Sequence[int]) -> None:
        require_bearable(sum(counts) if reads else 0)
        if len(set(counts)) > 1:
            raise RequestFailed(ErrorCode.ARGUMENT_MISMATCH, f"shards of {_listed(counts)} bytes, expected equal sizes")
        if counts and counts[0] % size:
            expected = f"expected a multiple of {size}"
            raise RequestFailed(ErrorCode.ARGUMENT_MISMATCH, f"a shard of {counts[0]} bytes, {expected}")

    return check


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))


def _nothing(given: object) -> None:
    """Neither check nor compute."""


def _copy(given: Sequence[Given]) -> None:
    source, target = given
    assert isinstance(source, Buffer) and isinstance(target, Buffer)
    target.write(source.read())


def _fill(given: Sequence[Given]) -> None:
    target, value = given
    assert isinstance(target, Buffer) and isinstance(value, int)
    target.space.fill(target.pa, target.nbytes, bytes_of(value, "i32"))


def _add(given: Sequence[Given]) -> None:
    a, b, total = given
    assert isinstance(a, Buffer) and isinstance(b, Buffer) and isinstance(total, Buffer)
    with np.errstate(all="ignore"):
        total.write((a.floats() + b.floats()).astype("<f4").tobytes())


def _scale(given: Sequence[Given]) -> None:
    target, factor = given
    assert isinstance(target, Buffer) and not isinstance(factor, Buffer)
    with np.errstate(all="ignore"):
        target.write((target.floats() * np.float32(rounded(factor, "fp32"))).astype("<f4").tobytes())


ANY = Kernel(None, _nothing, _nothing)
"""Computes nothing, whatever it is given."""
BUILTINS: Mapping[str, Kernel] = {
    "nop": ANY,
    "copy": Kernel(("tensor", "tensor"), _elements(1), _copy),
    "fill": Kernel(("tensor", "i32"), _elements(4, reads=False), _fill),
    "add_fp32": Kernel(("tensor", "tensor", "tensor"), _elements(4), _add),
    "scale_fp32": Kernel(("tensor", "fp32"), _elements(4), _scale),
}
"""By name."""
