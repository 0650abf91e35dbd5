"""The messages between host and IO_CPU, typed (the Host - IO_CPU document, D3 to D7).

Written by `docs/draw_host_messages.py` from `schemas/host_io.schema.json`; not edited by hand. The page of that schema,
`docs/host_messages.md`, says what each member is, with its clauses.
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
    correlation_id: str
    request_id: str
    target_device: str
    dst_sip: int
    dst_cube: int
    dst_pe: int
    dst_pa: int
    nbytes: int
    src_kind: Literal["pattern", "host_buffer_ref"]
    timestamp_tag: str | None = None
    pattern: Pattern | None = None
    dst_mem_kind: Literal["HBM", "TCM", "AUTO"] = "AUTO"
    debug_label: str | None = None


@dataclass(frozen=True)
class Pattern:
    """The pattern that a MemoryWrite repeats (D5)."""

    pattern_kind: Literal["zero", "fill_u8", "fill_u16", "fill_u32", "fill_fp16", "fill_fp32"]
    value: int | Decimal | None = None


@dataclass(frozen=True)
class MemoryRead:
    """The host reads memory of a PE (D6; HIO-D6-01, HIO-D6-02)."""

    msg_type: ClassVar[str] = "MemoryRead"
    correlation_id: str
    request_id: str
    target_device: str
    src_sip: int
    src_cube: int
    src_pe: int
    src_pa: int
    nbytes: int
    timestamp_tag: str | None = None
    dst_kind: Literal["host_sink", "discard"] = "host_sink"
    debug_label: str | None = None


@dataclass(frozen=True)
class KernelLaunch:
    """The host launches a kernel on the PEs that its shards name (D7; HIO-D7-01, HIO-D7-02, HIO-D7-33)."""

    msg_type: ClassVar[str] = "KernelLaunch"
    correlation_id: str
    request_id: str
    target_device: str
    kernel_ref: KernelRef
    args: tuple[TensorArgument | ScalarArgument, ...]
    timestamp_tag: str | None = None
    grid: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None
    failure_policy: Literal["fail_fast", "collect_all"] = "fail_fast"
    debug_label: str | None = None


@dataclass(frozen=True)
class KernelRef:
    """A reference to a kernel and the place of its binary (D7; HIO-D7-13, HIO-D7-14, HIO-D7-15)."""

    name: str
    kind: Literal["deployed", "builtin"]
    deploy_sip: int
    deploy_cube: int
    deploy_pe: int
    nbytes_code: int
    deploy_pa: int | None = None


@dataclass(frozen=True)
class TensorArgument:
    """A tensor by the places of its shards (D7; HIO-D7-47)."""

    arg_kind: ClassVar[str] = "tensor"
    tensor_pa_map: TensorPAMap


@dataclass(frozen=True)
class TensorPAMap:
    """The addresses of a tensor's shards (D7)."""

    shards: tuple[TensorShard, ...]


@dataclass(frozen=True)
class TensorShard:
    """A part of a tensor, in the memory of one PE (D7)."""

    sip: int
    cube: int
    pe: int
    pa: int
    nbytes: int
    offset_bytes: int


@dataclass(frozen=True)
class ScalarArgument:
    """A scalar by value (D7; HIO-D7-48)."""

    arg_kind: ClassVar[str] = "scalar"
    dtype: Literal["i32", "i64", "fp16", "fp32", "bool"]
    value: int | Decimal | bool
