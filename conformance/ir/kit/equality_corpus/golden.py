"""Single operations and attention: golden vectors, whose frozen bits are the right answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tessera_conformance.cases import vectors_directory
from tessera_conformance.vectors.files import parse, path_of, reader

from .model import Program

VECTORS = {
    "matmul": (
        "fp8_e5m2/larger",
        "fp16/left-fold",
        "fp64/left-fold",
        "int16/k-13",
        "bf16/batched",
        "bf16/infinities",
        "fp32/negative-zero",
        "fp16/subnormals",
        "bf16/k-0",
        "bf16/no-rows",
    ),
    "softmax": ("fp8_e4m3/n-16", "fp64/tree", "bf16/negative-infinity", "fp32/axis-1"),
    "normalization": ("fp32/layer_norm/order", "fp16/rms_norm/n-13", "bf16/layer_norm/axis-0", "fp32/rms_norm/special"),
    "reductions": (
        "fp32/sum/n-33",
        "fp32/prod/special",
        "bf16/logsumexp/special",
        "fp32/argmax/special",
        "bf16/sum/keepdims",
        "fp32/sum/axis-1",
        "fp32/sum/nothing",
    ),
    "movement": ("bf16/transpose/perm-201", "complex64/reshape/matrix", "bool/broadcast/rows", "fp8_e4m3/pad/frame"),
    "selection": (
        "fp16/clamp/special",
        "bool/select/elements",
        "bf16/maximum/stretched",
        "int32/abs/edges",
        "bf16/abs/edges",
    ),
    "fourier": (
        "complex64/fft/n-31",
        "complex128/ifft/n-12",
        "complex64/fft/forward",
        "complex64/ifft/forward",
        "complex64/fft/special",
        "bf16/fft/real-7",
        "fp64/ifft/real-12",
        "fp32/fft/real-special",
    ),
    "attention": ("bf16/rectangular", "fp64/rectangular"),
    "fused_attention": ("bf16/rectangular", "fp32/causal-7", "fp32/nan"),
    "casts": (
        "fp32-to-fp8_e4m3/edges",
        "bf16-to-int8/in-range",
        "int64-to-fp16/edges",
        "int64-to-fp32/large",
        "int16-to-int64/edges",
        "int32-to-bool/edges",
        "fp32-to-bool/edges",
        "bool-to-bf16/both",
        "bool-to-int8/both",
    ),
    "elementwise": ("int8/divide/edges", "fp8_e4m3/divide/counted"),
    "functions": ("fp16/exp/edges", "fp32/tan/edges"),
    "activations": ("bf16/gelu-tanh/edges", "fp32/gelu-tanh/counted", "fp32/silu/edges"),
}
"""Golden vectors by topic."""


def of_vectors(topic: str, names: Collection[str]) -> Iterator[Program]:
    """Return the programs of golden vectors of a topic; only these lines of its file are parsed: all take seconds."""
    path, read = path_of(f"ir/{topic}"), reader(vectors_directory())
    members = [f'"name":"{name}"' for name in names]

    def those(file: str) -> bytes:
        if file != path:
            return read(file)
        header, *lines = read(file).decode().splitlines(keepends=True)
        return "".join([header, *(line for line in lines if any(name in line for name in members))]).encode()

    for found in parse(path, those).vectors:
        if found.name in names:
            params = found.call.params
            name = f"{topic}/{found.name}"
            yield Program(name, found.comment, params["source"], params["inputs"], found.features, found.expected)
