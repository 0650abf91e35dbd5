"""Shared by the tests of the binary interface: a module with one of everything, and images put together by hand."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable

import pytest

from tessera_reference.abi.fatbin import (
    CollectivePlan,
    Explanation,
    Fatbin,
    FusionGroup,
    KernelEntry,
    KernelParameter,
    Metadata,
    Section,
    TileShape,
)
from tessera_reference.abi.policy import NumericsPolicy
from tessera_reference.abi.status import Failure, Status

Refused = Callable[[Callable[[], object]], Failure]


class Surgeon:
    """Puts images together from parts, with right checksums, whatever the parts say."""

    def image(
        self, sections: list[tuple[int, int, bytes]], targets: tuple[bytes, ...] = (), abi: tuple[int, int] = (1, 0)
    ) -> bytes:
        """An image of (kind, target index, data)."""
        end = 64 + 32 * len(targets) + 56 * len(sections)
        table = bodies = b""
        for kind, target, data in sections:
            table += struct.pack("<IIQQ32s", kind, target, end + len(bodies), len(data), hashlib.sha256(data).digest())
            bodies += data + bytes(-len(data) % 8)
        size = end + len(bodies) + 32
        head = struct.pack(
            "<8sHHHHQII32s", b"TESSFBIN", 1, 0, *abi, size, len(targets), len(sections), bytes(range(32))
        )
        return self.sealed(head + b"".join(name.ljust(32, b"\0") for name in targets) + table + bodies + bytes(32))

    def sealed(self, image: bytes) -> bytes:
        """The image with its last 32 bytes replaced by the checksum of the others."""
        return image[:-32] + hashlib.sha256(image[:-32]).digest()

    def resealed(self, image: bytes) -> bytes:
        """The image with every size and digest that can be put right, so that what else is wrong is what is found."""
        found = bytearray(image)
        struct.pack_into("<Q", found, 16, len(found))
        targets, sections = struct.unpack_from("<II", found, 24)
        table = 64 + 32 * targets
        for position in range(min(sections, max(0, len(found) - table) // 56)):
            at = table + 56 * position
            offset, size = struct.unpack_from("<QQ", found, at + 8)
            if offset + size <= len(found):
                found[at + 24 : at + 56] = hashlib.sha256(found[offset : offset + size]).digest()
        return self.sealed(bytes(found))


@pytest.fixture(scope="session")
def surgeon() -> Surgeon:
    return Surgeon()


@pytest.fixture(scope="session")
def module() -> Fatbin:
    """Two targets, two kernels, every kind of section but the signature."""
    kernels = (
        KernelEntry(
            name="scale",
            module="sample",
            parameters=(
                KernelParameter("x", "ptr", "bf16", ("n", 4), written=True),
                KernelParameter("n", "int32"),
                KernelParameter("opaque", "ptr"),
                KernelParameter("factor", "complex64"),
            ),
            grid=None,
            block=(128, 1, 1),
            shared_bytes=2048,
            dynamic_shared=True,
            level="tile",
        ),
        KernelEntry("nothing", "", (), (1, 2, 3), (1, 1, 1)),
    )
    explanation = Explanation(
        (FusionGroup("scale", ("matmul", "größer")),), (TileShape("scale", "matmul", (("k", 8), ("m", 16), ("n", 32))),)
    )
    plans = (
        CollectivePlan("all_reduce", "dp", "ring"),
        CollectivePlan("broadcast", None, "tree"),
        CollectivePlan(
            "all_to_all",
            None,
            "direct",
            "default",
            "größer",
            "!tessera.shard<groups=[[0, 3], [1, 2]]>",
            4096,
            512,
            "fp8_e4m3",
            "rdma",
            "node",
            -1,
            "[1, true]",
            0,
        ),
    )
    sections = (
        Section("graph-ir", None, b'"builtin.module"() ({}) : () -> ()'),
        Section("target-ir", "sm_90", "ü".encode()),
        Section("ptx", "sm_90", b".version 8.0"),
        Section("amdgcn", "gfx942", bytes(range(256))),
    )
    metadata = Metadata(kernels, NumericsPolicy(allowFastMath=1), plans, explanation)
    return Fatbin((1, 0), bytes(range(32)), ("sm_90", "gfx942"), sections, metadata)


@pytest.fixture(scope="session")
def small_module() -> Fatbin:
    """The smallest image, for tests that read many."""
    kernel = KernelEntry("f", "m", (KernelParameter("x", "ptr", "fp32", (4,), True),), None, (32, 1, 1))
    return Fatbin((1, 0), bytes(32), ("sm_90",), (Section("ptx", "sm_90", b"ptx"),), Metadata((kernel,)))


@pytest.fixture(scope="session")
def refused() -> Refused:
    """The failure, with TESS_ERR_INVALID_VALUE, of what must fail."""

    def refuse(action: Callable[[], object]) -> Failure:
        with pytest.raises(Failure) as caught:
            action()
        assert caught.value.status is Status.TESS_ERR_INVALID_VALUE
        return caught.value

    return refuse
