"""The pieces with a defect each."""

from __future__ import annotations

from typing import Any

import numpy as np
from credit_limiter import Limiter
from wire_packer import TYPES, Packer, saturated

from tessera_conformance.tensors import Tensor


class Exceeds(Limiter):
    """A chunk needs a credit of one of its links."""

    def fits(self, links: list[str]) -> bool:
        """True if any link has a credit."""
        return any(self.free[link] > 0 for link in links)


class Stubborn(Limiter):
    """A chunk without credits holds up those before it."""

    def collectives_acquire(self, *, ready: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
        """The last chunk or none."""
        return super().collectives_acquire(ready=ready[-1:])


class Wide(Packer):
    """Elements travel as they are, and are rounded on arrival."""

    def collectives_pack(self, *, dtype: str = "", block: int = 0, **rest: Any) -> dict[str, Any]:
        """Without a wire dtype."""
        return super().collectives_pack(dtype=dtype if block else "", block=block, **rest)

    def collectives_unpack(self, *, dtype: str = "", block: int = 0, **rest: Any) -> dict[str, Any]:
        """Round the elements that `pack` left whole."""
        answer = super().collectives_unpack(dtype=dtype if block else "", block=block, **rest)
        return answer if block or not dtype else {"outputs": [rounded(output, dtype) for output in answer["outputs"]]}


def rounded(tensor: Tensor, wire: str) -> Tensor:
    """A tensor after a cast there and back."""
    kind = TYPES[tensor.dtype]
    values = saturated(np.frombuffer(tensor.data, kind), TYPES[wire]).astype(np.float32).astype(kind)
    return Tensor(tensor.dtype, tensor.shape, values.tobytes())


class Swapped(Packer):
    """The tensors of a buffer that is not compressed come back from the last to the first."""

    def collectives_pack(self, *, inputs: list[Tensor], dtype: str = "", **rest: Any) -> dict[str, Any]:
        """From the last to the first."""
        return super().collectives_pack(inputs=inputs if dtype else inputs[::-1], dtype=dtype, **rest)
