"""The messages between host and IO_CPU, typed (the Host - IO_CPU document, D3 to D7).

Written by `docs/draw_host_messages.py` from `schemas/host_io.schema.json`; not edited by hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal


@dataclass(frozen=True)
class MemoryWrite:
    """The host writes to, or initializes, memory of a PE (D5; HIO-D5-01, HIO-D5-02, HIO-D5-25)."""

    msg_type: ClassVar[str] = "MemoryWrite"
    """The kind of the message (HIO-D3-01, HIO-D2-02)."""
    correlation_id: str
    """Chosen by the host; a response carries the one of its request (HIO-D3-02, HIO-D3-03, HIO-D3-04)."""
    request_id: str
    """Unique within a correlation id (HIO-D3-05, HIO-D3-06)."""
    target_device: str
    """The device that is to act, such as sip:0 (HIO-D3-07)."""
    dst_sip: int
    """The SIP that holds the destination PE (HIO-D5-03)."""
    dst_cube: int
    """The cube within the SIP (HIO-D5-04)."""
    dst_pe: int
    """The PE within the cube (HIO-D5-05)."""
    dst_pa: int
    """Physical address of the first byte, as the destination PE sees it (HIO-D5-06)."""
    nbytes: int
    """Bytes written; a multiple of the element that a pattern repeats (HIO-D5-07)."""
    src_kind: Literal["pattern", "host_buffer_ref"]
    """The source of the bytes: a repeated pattern or a buffer of the host (HIO-D5-08, HIO-D5-09, HIO-D5-30)."""
    timestamp_tag: str | None = None
    """For debugging only: it changes nothing but itself (HIO-D3-08, HIO-D3-09)."""
    pattern: Pattern | None = None
    """The repeated pattern; required where the source is a pattern (HIO-D5-10, HIO-D5-11)."""
    dst_mem_kind: Literal["HBM", "TCM", "AUTO"] = "AUTO"
    """The memory that holds the address; AUTO follows from the address.

    HIO-D5-22, HIO-D5-23, HIO-D5-27, HIO-D5-28, HIO-D5-29, HIO-D5-31."""
    debug_label: str | None = None
    """For debugging only: it changes nothing (HIO-D5-24)."""


@dataclass(frozen=True)
class Pattern:
    """The pattern that a MemoryWrite repeats (D5)."""

    pattern_kind: Literal["zero", "fill_u8", "fill_u16", "fill_u32", "fill_fp16", "fill_fp32"]
    """Zero bytes, or the element type of the value, little-endian.

    HIO-D5-12, HIO-D5-13, HIO-D5-14, HIO-D5-15, HIO-D5-16, HIO-D5-17, HIO-D5-18."""
    value: int | Decimal | None = None
    """The element that is repeated; required for every fill, without influence for zero.

    HIO-D5-19, HIO-D5-20, HIO-D5-21."""


@dataclass(frozen=True)
class MemoryRead:
    """The host reads memory of a PE (D6; HIO-D6-01, HIO-D6-02)."""

    msg_type: ClassVar[str] = "MemoryRead"
    """The kind of the message (HIO-D3-01, HIO-D2-03)."""
    correlation_id: str
    """Chosen by the host; a response carries the one of its request (HIO-D3-02, HIO-D3-03, HIO-D3-04)."""
    request_id: str
    """Unique within a correlation id (HIO-D3-05, HIO-D3-06)."""
    target_device: str
    """The device that is to act, such as sip:0 (HIO-D3-07)."""
    src_sip: int
    """The SIP that holds the source PE (HIO-D6-03)."""
    src_cube: int
    """The cube within the SIP (HIO-D6-04)."""
    src_pe: int
    """The PE within the cube (HIO-D6-05)."""
    src_pa: int
    """Physical address of the first byte, as the source PE sees it (HIO-D6-06)."""
    nbytes: int
    """Bytes read (HIO-D6-07)."""
    timestamp_tag: str | None = None
    """For debugging only: it changes nothing but itself (HIO-D3-08, HIO-D3-09)."""
    dst_kind: Literal["host_sink", "discard"] = "host_sink"
    """The use of the bytes: the host keeps or drops them (HIO-D6-08, HIO-D6-09, HIO-D6-13, HIO-D6-14, HIO-D6-15)."""
    debug_label: str | None = None
    """For debugging only: it changes nothing (HIO-D6-10)."""


@dataclass(frozen=True)
class KernelLaunch:
    """The host launches a kernel on the PEs that its shards name (D7; HIO-D7-01, HIO-D7-02, HIO-D7-33)."""

    msg_type: ClassVar[str] = "KernelLaunch"
    """The kind of the message (HIO-D3-01, HIO-D2-04)."""
    correlation_id: str
    """Chosen by the host; a response carries the one of its request (HIO-D3-02, HIO-D3-03, HIO-D3-04)."""
    request_id: str
    """Unique within a correlation id (HIO-D3-05, HIO-D3-06)."""
    target_device: str
    """The device that is to act, such as sip:0 (HIO-D3-07)."""
    kernel_ref: KernelRef
    """The kernel that is launched (HIO-D7-03)."""
    args: tuple[TensorArgument | ScalarArgument, ...]
    """Tensors and scalars, in the order of the kernel's parameters (HIO-D7-04)."""
    timestamp_tag: str | None = None
    """For debugging only: it changes nothing but itself (HIO-D3-08, HIO-D3-09)."""
    grid: Mapping[str, Any] | None = None
    """Free-form; opaque to the contract (HIO-D7-28)."""
    meta: Mapping[str, Any] | None = None
    """Free-form; opaque to the contract (HIO-D7-29)."""
    failure_policy: Literal["fail_fast", "collect_all"] = "fail_fast"
    """The end of a launch: at its first failing shard, or after all.

    HIO-D7-30, HIO-D7-31, HIO-D7-43, HIO-D7-44, HIO-D7-50."""
    debug_label: str | None = None
    """For debugging only: it changes nothing (HIO-D7-32)."""


@dataclass(frozen=True)
class KernelRef:
    """A reference to a kernel and the place of its binary (D7; HIO-D7-13, HIO-D7-14, HIO-D7-15)."""

    name: str
    """The kernel's name (HIO-D7-05)."""
    kind: Literal["deployed", "builtin"]
    """The kind of kernel: a deployed binary, or one built into the device (HIO-D7-06, HIO-D7-36, HIO-D7-37)."""
    deploy_sip: int
    """The SIP where the binary resides (HIO-D7-09)."""
    deploy_cube: int
    """The cube where the binary resides (HIO-D7-10)."""
    deploy_pe: int
    """The PE where the binary resides (HIO-D7-11)."""
    nbytes_code: int
    """Bytes of the binary; 0 for builtin only (HIO-D7-12, HIO-D7-45)."""
    deploy_pa: int | None = None
    """Physical address of the binary; required for deployed, null or absent for builtin (HIO-D7-07, HIO-D7-08)."""


@dataclass(frozen=True)
class TensorArgument:
    """A tensor by the places of its shards (D7; HIO-D7-47)."""

    arg_kind: ClassVar[str] = "tensor"
    """A tensor (HIO-D7-16, HIO-D7-49)."""
    tensor_pa_map: TensorPAMap
    """The addresses of the tensor's shards (HIO-D7-17)."""


@dataclass(frozen=True)
class TensorPAMap:
    """The addresses of a tensor's shards (D7)."""

    shards: tuple[TensorShard, ...]
    """The parts of the tensor (HIO-D7-18)."""


@dataclass(frozen=True)
class TensorShard:
    """A part of a tensor, in the memory of one PE (D7)."""

    sip: int
    """The SIP that holds the shard (HIO-D7-19)."""
    cube: int
    """The cube within the SIP (HIO-D7-20)."""
    pe: int
    """The PE within the cube (HIO-D7-21)."""
    pa: int
    """Physical address of the first byte, as the PE sees it (HIO-D7-22)."""
    nbytes: int
    """Bytes of the shard (HIO-D7-23)."""
    offset_bytes: int
    """The start of the shard within the tensor (HIO-D7-24)."""


@dataclass(frozen=True)
class ScalarArgument:
    """A scalar by value (D7; HIO-D7-48)."""

    arg_kind: ClassVar[str] = "scalar"
    """A scalar (HIO-D7-25, HIO-D7-49)."""
    dtype: Literal["i32", "i64", "fp16", "fp32", "bool"]
    """The scalar's type (HIO-D7-26, HIO-D7-38, HIO-D7-39, HIO-D7-40, HIO-D7-41, HIO-D7-42)."""
    value: int | Decimal | bool
    """A number, or for bool true or false (HIO-D7-27, HIO-D7-46)."""
