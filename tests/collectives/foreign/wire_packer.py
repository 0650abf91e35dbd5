"""A packer of wires and nothing else, written from sections 2.4 and 2.5 alone: `wire_packer:Packer`."""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from tessera_conformance.tensors import Tensor

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
TYPES = {"fp32": np.float32, "fp16": np.float16, "bf16": ml_dtypes.bfloat16}
TYPES |= {"fp8": E4M3, "fp8_e4m3": E4M3, "fp8_e5m2": E5M2}


def saturated(x: Any, kind: Any) -> Any:
    """A cast whose fp8 has no overflow."""
    most = float(ml_dtypes.finfo(kind).max) if np.dtype(kind).itemsize == 1 else np.inf
    return np.where(np.isnan(x), x, np.clip(x, -most, most)).astype(np.float32).astype(kind)


class Packer:
    """Codes, and the scales of blocks behind them."""

    def hello(self) -> dict[str, Any]:
        """Identity and claims."""
        capabilities = dict.fromkeys(("compression", "fusion", "wire-packing"), "enforced")
        claims = {"documents": ["collectives"], "capabilities": capabilities, "arithmetic": {"level": "fast"}}
        identity = {"implementation": {"name": "bare-packer", "version": "1"}}
        return {"protocol": {"minimum": 1, "maximum": 1}, **identity, **claims}

    def collectives_pack(self, *, inputs: list[Tensor], dtype: str = "", block: int = 0, **rest: Any) -> dict[str, Any]:
        """One tensor behind the other."""
        wire = b""
        for tensor in inputs:
            x = np.frombuffer(tensor.data, TYPES[tensor.dtype])
            if block:
                rows = np.pad(x, (0, -x.size % block)).reshape(-1, block)
                scales = np.abs(rows).max(axis=1) / np.float32(min(ml_dtypes.finfo(TYPES[dtype]).max, 65504))
                codes = saturated(rows / np.where(scales, scales, 1)[:, None], TYPES[dtype])
                wire += codes.tobytes() + scales.astype(np.float32).tobytes()
            else:
                wire += (saturated(x, TYPES[dtype]) if dtype else x).tobytes()
        return {"wire": wire.hex()}

    def collectives_unpack(
        self, *, wire: str, tensors: list[Any], dtype: str = "", block: int = 0, **rest: Any
    ) -> dict[str, Any]:
        """In the same order."""
        data, outputs = bytes.fromhex(wire), []
        for tensor in tensors:
            count, kind = prod(tensor["shape"]), TYPES[dtype or tensor["dtype"]]
            size = -(-count // (block or 1)) * (block or 1)
            codes, data = np.frombuffer(data, kind, size), data[size * np.dtype(kind).itemsize :]
            if block:
                scales, data = np.frombuffer(data, np.float32, size // block), data[size // block * 4 :]
                codes = codes.astype(np.float32) * np.repeat(scales, block)
            values = codes[:count].astype(np.float32).astype(TYPES[tensor["dtype"]])
            outputs.append(Tensor(tensor["dtype"], tuple(tensor["shape"]), values.tobytes()))
        return {"outputs": outputs}
