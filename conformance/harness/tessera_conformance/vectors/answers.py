"""What a call returned, as the tensors that a vector has frozen.

Programs, operations and collectives return tensors. Of a parameter layout the offsets, the sizes and the end count, as
int32; of a parameter buffer its bytes, as int8, and its padding as zeros, since nobody reads it (AMB-RT-55). Of a
compressed tensor its payload; of a top-k message the values, and the indices as int32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tessera_conformance.oracle.parameter_buffers import without_padding
from tessera_conformance.tensors import Tensor

__all__ = ["outputs_of"]


def outputs_of(method: str, params: Mapping[str, Any], value: Mapping[str, Any]) -> list[Any]:
    """The tensors in the returned value of a method."""
    match method:
        case "abi.parameter_layout":
            rows = (
                [each["offset"] for each in value["parameters"]],
                [each["size"] for each in value["parameters"]],
                [value["end_of_last_argument"], value["size"]],
            )
            return [_row("int32", row) for row in rows]
        case "abi.pack":
            return [_row("int8", list(without_padding(params["signature"], bytes.fromhex(value["buffer"]))))]
        case "collectives.compress":
            return [value["payload"]]
        case "collectives.sparsify":
            return [value["values"], _row("int32", [int(word) for word in value["indices"].words()])]
        case _:
            return list(value["outputs"])


def _row(dtype: str, words: Sequence[int]) -> Tensor:
    return Tensor.from_words(dtype, (len(words),), words)
