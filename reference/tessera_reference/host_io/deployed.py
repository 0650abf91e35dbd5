"""Kernels whose binary was written to memory: images of modules, or bytes that are none (D7; AMB-HIO-56)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod

from ..abi.fatbin import Fatbin, KernelEntry, read
from ..abi.status import Failure
from ..compilation.executables import Executable, executables_of
from ..compilation.extents import named_dimensions, shapes_of
from ..ir.diagnostics import Rejection, UnsupportedConstruct
from ..numerics.array import Array
from ..numerics.errors import NumericsFailure
from ..numerics.formats import dtype
from .errors import ErrorCode, RequestFailed
from .kernels import ANY, Buffer, Given, Kernel, require_bearable
from .machine import Machine, Place
from .messages import KernelRef
from .numbers import bytes_of

__all__ = ["deployed_kernel"]

MAGIC = b"TESSFBIN"
"""How an image begins."""
NAMES = {"ptr": "tensor", "int32": "i32", "int64": "i64", "fp16": "fp16", "fp32": "fp32", "bool": "bool"}
"""What an argument of a message is called, by the parameter's type."""
PROBLEMS = (Failure, Rejection, UnsupportedConstruct, NumericsFailure)


def deployed_kernel(machine: Machine, reference: KernelRef) -> Kernel:
    """The kernel whose binary lies where a launch says.

    Raises `RequestFailed`: UNKNOWN_PLACE, ADDRESS_OUT_OF_RANGE, KERNEL_NOT_DEPLOYED where not all of it was written,
    or it is a broken image, UNKNOWN_KERNEL for a name that the image has not.
    """
    place = Place(reference.deploy_sip, reference.deploy_cube, reference.deploy_pe)
    pa, nbytes = reference.deploy_pa or 0, reference.nbytes_code
    machine.require(place, pa, nbytes, field="kernel_ref")
    space = machine.space(place)
    if not space.was_written(pa, nbytes):
        raise _absent(f"not all of its {nbytes} bytes from {pa:#x} were written", "HIO-D7-13")
    if nbytes < len(MAGIC) or space.read(pa, len(MAGIC)) != MAGIC:
        return ANY
    require_bearable(nbytes)
    return _kernel(space.read(pa, nbytes), reference.name)


@lru_cache(maxsize=64)
def _kernel(image: bytes, name: str) -> Kernel:
    try:
        fatbin = read(image)
    except Failure as failure:
        raise _absent(f"a broken image: {failure}") from None
    entry = fatbin.metadata.kernel(name)
    if entry is None:
        known = ", ".join(each.name for each in fatbin.metadata.kernels)
        raise RequestFailed(ErrorCode.UNKNOWN_KERNEL, f"{name!r} is not in the image: {known}", "kernel_ref.name")
    return _ImageKernel(fatbin, entry).kernel()


class _ImageKernel:
    """A kernel of an image, for the first target of it."""

    def __init__(self, fatbin: Fatbin, entry: KernelEntry) -> None:
        self._fatbin, self._entry = fatbin, entry

    def kernel(self) -> Kernel:
        """What the endpoint launches."""
        parameters = tuple(NAMES.get(each.type, each.type) for each in self._entry.parameters)
        return Kernel(parameters, self._check, self._run)

    def _check(self, counts: Sequence[int]) -> None:
        """A shard is the whole tensor that the kernel takes, where that is known before the launch."""
        require_bearable(sum(counts))
        if named_dimensions(self._entry):
            return
        for (name, expected), count in zip(self._sizes({}).items(), counts, strict=True):
            if expected is not None and count != expected:
                reason = f"a shard of {count} bytes for {name}, expected {expected}"
                raise RequestFailed(ErrorCode.ARGUMENT_MISMATCH, reason)

    def _sizes(self, extents: Mapping[str, int]) -> dict[str, int | None]:
        """The bytes of each pointer parameter; None for one that says nothing of what is behind it."""
        shapes = shapes_of(self._entry, extents)
        return {
            each.name: None if each.dtype is None else prod(shapes[each.name]) * dtype(each.dtype).storage_bytes
            for each in self._entry.parameters
            if each.type == "ptr"
        }

    def _run(self, given: Sequence[Given]) -> None:
        """Read the shards, run, and write what the kernel writes. Raises `RequestFailed` with PE_FAULT."""
        by_name = {each.name: value for each, value in zip(self._entry.parameters, given, strict=True)}
        try:
            left = self._executed(by_name)
        except PROBLEMS as problem:
            raise RequestFailed(ErrorCode.PE_FAULT, f"kernel {self._entry.name}: {problem}") from None
        for name, array in left.items():
            target = by_name[name]
            assert isinstance(target, Buffer)
            target.write(array.to_bits())

    def _executed(self, given: Mapping[str, Given]) -> Mapping[str, Array]:
        extents = {name: int(value) for name, value in given.items() if isinstance(value, int)}
        extents = {name: extents[name] for name in named_dimensions(self._entry) if name in extents}
        executable = _executable(self._fatbin, self._entry.name, tuple(extents.items()))
        shapes = shapes_of(self._entry, extents)
        arguments = {}
        for each in self._entry.parameters:
            value = given[each.name]
            if isinstance(value, Buffer):
                known = each.dtype is not None
                shape = shapes[each.name] if known else (value.nbytes,)
                arguments[each.name] = Array.from_bits(dtype(each.dtype or "int8"), shape, value.read())
            else:
                bits = bytes_of(value, NAMES[each.type])
                arguments[each.name] = Array.from_bits(dtype(each.type), (), bits)
        return executable.run(arguments)


@lru_cache(maxsize=64)
def _executable(fatbin: Fatbin, name: str, extents: tuple[tuple[str, int], ...]) -> Executable:
    """A kernel for the first target of its image. Raises `RequestFailed` where ranks meet in it, and `PROBLEMS`."""
    executable = executables_of(fatbin, name, fatbin.targets[0], dict(extents))
    if executable.needs_mesh:
        raise RequestFailed(ErrorCode.UNSUPPORTED, f"kernel {name} meets other ranks", "kernel_ref.name")
    return executable


def _absent(reason: str, clause: str = "") -> RequestFailed:
    return RequestFailed(ErrorCode.KERNEL_NOT_DEPLOYED, reason, "kernel_ref.deploy_pa", clause)
