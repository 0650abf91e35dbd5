"""The abi methods of the reference: constants, parameter buffers, module images, the C header (runtime spec 4-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..abi.fatbin import Fatbin, metadata_to_bytes, read
from ..abi.fatbin.image import BINARY_KINDS
from ..abi.parameters import BUFFER_ALIGNMENT, ParameterLayout, ParameterValue, layout_of, pack, parse_signature, unpack
from ..abi.policy import NumericsPolicy
from ..abi.status import ADDRESS_SPACES, AbiVersion, constants, header
from ..compilation.images import Start
from ..mesh import topology
from ..numerics.errors import InvalidArgument
from ..numerics.formats import DTYPES
from .messages import checked, data, outcomes, statuses
from .session_state import SessionState

ZEROS: Mapping[str, ParameterValue] = {"bool": False, "complex64": 0j, "complex128": 0j}
"""The value packed where a value is given as bytes; 0 for every other type."""


def device_targets() -> tuple[str, ...]:
    """Return the targets of the machine's devices, without duplicates."""
    return tuple(dict.fromkeys(device.target for device in topology.default().devices))


class AbiMethods(SessionState):
    """Methods of the binary interface: layouts, buffers, images and policies."""

    @checked
    def abi_dtype_ids(self) -> dict[str, Any]:
        """Return the ids of Appendix B; tf32, a math mode, has none."""
        return {"ids": {dtype.name: dtype.abi_id for dtype in DTYPES.values() if dtype.abi_id is not None}}

    @checked
    def abi_constants(self) -> dict[str, Any]:
        """Return every enumerator and flag of the header."""
        return {"constants": constants()}

    @checked
    def abi_address_spaces(self) -> dict[str, Any]:
        """Return the table of section 9."""
        spaces = []
        for address_space in ADDRESS_SPACES:
            backends = {"llvm": address_space.llvm, "nvvm": address_space.nvvm, "rocdl": address_space.rocdl}
            spaces.append({"number": address_space.number, "purpose": address_space.name, **backends})
        return {"spaces": spaces}

    @checked
    def abi_header(self) -> dict[str, Any]:
        """Return the C header."""
        return {"text": header()}

    @checked
    def abi_parameter_layout(self, *, signature: str) -> dict[str, Any]:
        """Return the offsets of a signature's arguments."""
        layout = layout_of(parse_signature(signature).parameters)
        return {
            "parameters": _parameters(layout),
            "end_of_last_argument": layout.end_of_last_argument,
            "size": layout.size,
            "alignment": BUFFER_ALIGNMENT,
        }

    @checked
    def abi_pack(self, *, signature: str, values: Sequence[Any]) -> dict[str, Any]:
        """Return the buffer of these values; a value given as bytes is copied."""
        layout = layout_of(parse_signature(signature).parameters)
        exact = {
            place: _bits(value, f"values[{place}]") for place, value in enumerate(values) if isinstance(value, Mapping)
        }
        types = [parameter.type for parameter in layout.parameters]
        plain = [
            ZEROS.get(types[place], 0) if place in exact and place < len(types) else value
            for place, value in enumerate(values)
        ]
        buffer = bytearray(pack(layout, plain))
        for place, bits in exact.items():
            offset, size = layout.offsets[place], layout.sizes[place]
            if len(bits) != size:
                raise InvalidArgument("abi.pack", f"values[{place}]", bits.hex(), f"{size} bytes")
            buffer[offset : offset + size] = bits
        return {"buffer": bytes(buffer).hex()}

    @checked
    def abi_unpack(self, *, signature: str, buffer: bytes) -> dict[str, Any]:
        """Return the bytes of each argument, and the value of a bool."""
        layout = layout_of(parse_signature(signature).parameters)
        values = unpack(layout, buffer)
        decoded = []
        for parameter, value, offset, size in zip(layout.parameters, values, layout.offsets, layout.sizes, strict=True):
            bits = bytes([bool(value)]) if parameter.type == "bool" else buffer[offset : offset + size]
            decoded.append({"bits": bits.hex()})
        return {"values": decoded}

    @checked
    def abi_compile(
        self,
        *,
        source: str,
        at: Start = "dsl",
        targets: Sequence[str] | None = None,
        abi_version: AbiVersion | None = None,
        policy: NumericsPolicy | None = None,
        signing_key: bytes | None = None,
        ir_pack: bool = False,
    ) -> dict[str, Any]:
        """Return the image of a program, or of kernels written in a level of IR."""
        with outcomes(), statuses():
            image = self.compiler.image(
                source,
                device_targets() if targets is None else targets,
                at=at,
                abi_version=abi_version,
                policy=policy,
                signing_key=signing_key,
                ir_pack=ir_pack,
            )
        return {"image": image.hex()}

    @checked
    def abi_inspect(self, *, image: bytes) -> dict[str, Any]:
        """Return the contents of an image of any ABI version."""
        fatbin = read(image, runtime=None)
        metadata = fatbin.metadata
        return {
            "abi_version": list(fatbin.abi_version),
            "targets": list(fatbin.targets),
            "ir_hash": fatbin.ir_hash.hex(),
            "sections": _sections(fatbin),
            "kernels": [
                {
                    "name": kernel.name,
                    "parameters": _parameters(kernel.layout),
                    "size": kernel.layout.size,
                    "returns": [],
                }
                for kernel in metadata.kernels
            ],
            "policy": None if metadata.policy is None else asdict(metadata.policy),
            "collective_plans": [dict(collective_plan.members) for collective_plan in metadata.collective_plans],
        }


def _parameters(layout: ParameterLayout) -> list[dict[str, Any]]:
    rows = zip(layout.parameters, layout.offsets, layout.sizes, strict=True)
    return [
        {"name": parameter.name, "type": parameter.type, "offset": offset, "size": size}
        for parameter, offset, size in rows
    ]


def _sections(fatbin: Fatbin) -> list[dict[str, Any]]:
    metadata = {"kind": "metadata", "target": None, "bytes": len(metadata_to_bytes(fatbin.metadata))}
    others = [
        {"kind": section.kind, "target": section.target, "bytes": len(section.data)}
        | ({"data": section.data.hex()} if section.kind in BINARY_KINDS else {})
        for section in fatbin.sections
    ]
    return [metadata, *others]


def _bits(value: Mapping[str, Any], name: str) -> bytes:
    if value.keys() != {"bits"}:
        raise InvalidArgument("abi.pack", name, dict(value), "an object with bits alone")
    return data("abi.pack", f"{name}.bits", value["bits"])
