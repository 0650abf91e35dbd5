"""`tessera-reference inspect`: what a module image holds (runtime spec 8.1, 17)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ..abi.fatbin import KernelEntry, read
from ..abi.fatbin.image import KEY_BYTES
from ..abi.status import is_compatible
from .program import file_command, read_bytes

PLACE_IN_HELP = 6


def register(subparsers: Any) -> None:
    """Add `inspect`."""
    file_command(subparsers, "inspect", run, "say what a module image holds")


def run(options: argparse.Namespace) -> int:
    """Print what an image says about itself."""
    print(*inspect_image(read_bytes(options)), sep="\n")
    return 0


def inspect_image(image: bytes) -> Iterator[str]:
    """Yield an image's description line by line, whatever ABI version it is of. Raises `Failure`."""
    fatbin = read(image, runtime=None)
    major, minor = fatbin.abi_version
    yield f"ABI {major}.{minor}" + ("" if is_compatible(fatbin.abi_version) else ", which this runtime does not load")
    yield f"source IR sha256:{fatbin.ir_hash.hex()}"
    yield f"targets {', '.join(fatbin.targets) or 'none'}"
    for section in fatbin.sections:
        signed = f", by {section.data[:KEY_BYTES].hex()}" if section.kind == "signature" else ""
        of_target = f" {section.target}" if section.target else ""
        yield f"section {section.kind}{of_target}: {len(section.data)} bytes{signed}"
    policy = fatbin.metadata.policy
    yield f"policy {policy}" if policy else "policy: that of the context"
    for kernel in fatbin.metadata.kernels:
        yield from _kernel_lines(kernel)
    for plan in fatbin.metadata.collective_plans:
        yield f"plan {plan}"


def _kernel_lines(kernel: KernelEntry) -> Iterator[str]:
    block = "x".join(map(str, kernel.block))
    dynamic = " and a dynamic segment" if kernel.dynamic_shared else ""
    yield (
        f"kernel {kernel.name} of module {kernel.module or '(unnamed)'}: {kernel.level}, block {block}, "
        f"{kernel.shared_bytes} bytes of shared memory{dynamic}, parameter buffer of {kernel.layout.size} bytes"
    )
    for parameter, offset in zip(kernel.parameters, kernel.layout.offsets, strict=True):
        shape = "" if parameter.shape is None else f" to {'x'.join(map(str, (*parameter.shape, parameter.dtype)))}"
        yield f"  {offset:#06x} {parameter.name}: {parameter.type}{shape}{', written' if parameter.written else ''}"
