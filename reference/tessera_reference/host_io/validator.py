"""What the schema of the messages cannot say: members that must agree with one another (D5, D7).

What depends on the endpoint is judged there: ids that are in use, devices, places and addresses that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NoReturn

from .errors import ErrorCode, RequestFailed
from .frames import write_frame
from .messages import KernelLaunch, KernelRef, MemoryRead, MemoryWrite, ScalarArgument, TensorArgument, TensorShard
from .numbers import FLOATS, INTEGERS, overflows
from .patterns import ELEMENTS

__all__ = ["require_agreement"]

ADDRESSES = 1 << 64
MOST_FREE_FORM = 4096
"""Characters of a grid, or of a meta: what needs more is bulk data (AMB-HIO-43)."""


def require_agreement(request: MemoryWrite | MemoryRead | KernelLaunch) -> None:
    """The members of a request agree. Raises `RequestFailed` with INVALID_MESSAGE, the member and its clause."""
    match request:
        case MemoryWrite():
            _require_range("dst_pa", request.dst_pa, request.nbytes, "HIO-D5-06")
            _require_source(request)
        case MemoryRead():
            _require_range("src_pa", request.src_pa, request.nbytes, "HIO-D6-06")
        case KernelLaunch():
            _require_deployment(request.kernel_ref)
            for place, argument in enumerate(request.args):
                _require_argument(f"args[{place}]", argument)
            _require_small("grid", request.grid, "HIO-D7-33")
            _require_small("meta", request.meta, "HIO-D7-33")


def _require_source(write: MemoryWrite) -> None:
    """A pattern where, and only where, the source is one, whose value fits and fills whole elements."""
    pattern = write.pattern
    if write.src_kind != "pattern":
        if pattern is not None:
            _refuse("pattern", f"is given beside src_kind {write.src_kind}", "HIO-D5-10")
        return
    if pattern is None:
        _refuse("pattern", "is missing, with src_kind pattern", "HIO-D5-11")
    element = ELEMENTS[pattern.pattern_kind]
    if pattern.pattern_kind != "zero":
        if pattern.value is None:
            _refuse("pattern.value", f"is missing, with pattern_kind {pattern.pattern_kind}", "HIO-D5-20")
        _require_fit("pattern.value", pattern.value, element.dtype, "HIO-D5-19")
    if write.nbytes % element.size:
        _refuse("nbytes", f"is {write.nbytes}, expected a multiple of {element.size}", "HIO-D5-07")


def _require_deployment(kernel: KernelRef) -> None:
    """An address and a size for what is deployed, no address for what is built in (AMB-HIO-07, AMB-HIO-40)."""
    if kernel.kind == "builtin":
        if kernel.deploy_pa is not None:
            _refuse("kernel_ref.deploy_pa", f"is {kernel.deploy_pa}, expected null for a builtin", "HIO-D7-07")
        return
    if kernel.deploy_pa is None:
        _refuse("kernel_ref.deploy_pa", "is missing, with kind deployed", "HIO-D7-08")
    if kernel.nbytes_code < 1:
        _refuse("kernel_ref.nbytes_code", "is 0, expected at least 1 for a deployed kernel", "HIO-D7-12")
    _require_range("kernel_ref.deploy_pa", kernel.deploy_pa, kernel.nbytes_code, "HIO-D7-07")


def _require_argument(field: str, argument: TensorArgument | ScalarArgument) -> None:
    if isinstance(argument, ScalarArgument):
        _require_scalar(f"{field}.value", argument)
        return
    for place, shard in enumerate(argument.tensor_pa_map.shards):
        _require_shard(f"{field}.tensor_pa_map.shards[{place}]", shard)


def _require_scalar(field: str, scalar: ScalarArgument) -> None:
    """A bool for bool and for nothing else; a number in the range of its dtype (AMB-HIO-14)."""
    value = scalar.value
    if isinstance(value, bool) != (scalar.dtype == "bool"):
        _refuse(
            field, f"is {value!r}, expected {'true or false' if scalar.dtype == 'bool' else 'a number'}", "HIO-D7-27"
        )
    if not isinstance(value, bool):
        _require_fit(field, value, scalar.dtype, "HIO-D7-27")


def _require_shard(field: str, shard: TensorShard) -> None:
    _require_range(f"{field}.pa", shard.pa, shard.nbytes, "HIO-D7-22")
    _require_range(f"{field}.offset_bytes", shard.offset_bytes, shard.nbytes, "HIO-D7-24")


def _require_fit(field: str, value: int | Decimal, dtype: str, clause: str) -> None:
    """A whole number in the range of an integer dtype, or a number that a floating dtype can round (AMB-HIO-06)."""
    if dtype in INTEGERS:
        least, most = INTEGERS[dtype]
        if not isinstance(value, int) or not least <= value <= most:
            _refuse(field, f"is {value}, expected a whole number from {least} to {most}", clause)
    elif overflows(value, dtype):
        _refuse(field, f"is {value}, which no finite {FLOATS[dtype].name} is nearest to", clause)


def _require_range(field: str, first: int, count: int, clause: str) -> None:
    if first + count > ADDRESSES:
        _refuse(field, f"is {first}, from where {count} bytes pass 2^64", clause)


def _require_small(field: str, members: Mapping[str, Any] | None, clause: str) -> None:
    if members is not None and len(write_frame(members)) > MOST_FREE_FORM:
        _refuse(field, f"holds more than {MOST_FREE_FORM} characters, which counts as bulk data", clause)


def _refuse(field: str, reason: str, clause: str) -> NoReturn:
    raise RequestFailed(ErrorCode.INVALID_MESSAGE, reason, field, clause)
