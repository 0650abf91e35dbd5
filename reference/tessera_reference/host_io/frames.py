"""Frames: reading, checks against schema and rules, refusals, and typed messages (D3 to D7)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_05UP, Context, Decimal
from enum import StrEnum
from fractions import Fraction
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ..ir.diagnostics import STRICT
from ..numerics.formats import DTYPES
from ..numerics.rounding import round_exact
from .messages import (
    KernelLaunch,
    KernelRef,
    MemoryRead,
    MemoryWrite,
    Pattern,
    ScalarArgument,
    TensorArgument,
    TensorPAMap,
    TensorShard,
)


class ErrorCode(StrEnum):
    """The causes of refusals, which docs/host_io.md explains; a cause has the same code each time."""

    INVALID_MESSAGE = "INVALID_MESSAGE"
    DUPLICATE_REQUEST = "DUPLICATE_REQUEST"
    QUEUE_FULL = "QUEUE_FULL"
    UNKNOWN_DEVICE = "UNKNOWN_DEVICE"
    UNKNOWN_PLACE = "UNKNOWN_PLACE"
    ADDRESS_OUT_OF_RANGE = "ADDRESS_OUT_OF_RANGE"
    UNKNOWN_KERNEL = "UNKNOWN_KERNEL"
    KERNEL_NOT_DEPLOYED = "KERNEL_NOT_DEPLOYED"
    ARGUMENT_MISMATCH = "ARGUMENT_MISMATCH"
    UNSUPPORTED = "UNSUPPORTED"
    PE_FAULT = "PE_FAULT"


LONGEST_REASON = 300
"""The most characters of a message, since it may quote the request."""


@dataclass(eq=False)
class RequestFailed(Exception):
    """A request that is answered with `ok` false: the code, the fault, the member at fault and its clause.

    Its text is that of `error_message`.
    """

    code: ErrorCode
    reason: str
    field: str = ""
    clause: str = ""

    def __str__(self) -> str:
        field, clause = f"{self.field}: " if self.field else "", f" ({self.clause})" if self.clause else ""
        return f"{field}{self.reason:.{LONGEST_REASON}}{clause}"


def argument_mismatch(reason: str, field: str = "") -> RequestFailed:
    """Return a failure with ARGUMENT_MISMATCH."""
    return RequestFailed(ErrorCode.ARGUMENT_MISMATCH, reason, field)


class InvalidFrame(Exception):
    """A frame without readable ids, so that no response can answer it (AMB-HIO-19)."""


# Numbers of messages as elements of a dtype: exact, then rounded once to nearest even (AMB-HIO-06, AMB-HIO-36).


FLOATS = {"fp16": DTYPES["fp16"], "fp32": DTYPES["fp32"]}

_BEYOND = 64
"""A power of ten beyond every fp32, whose inverse rounds to zero."""
_SHORT = Context(prec=200, rounding=ROUND_05UP, Emax=MAX_EMAX, Emin=MIN_EMIN)
"""More digits than a value halfway between two elements has; the last one shows whether any were dropped."""


class MinusZero(int):
    """The whole number that a message writes as -0: 0 for an integer dtype, -0 for a float (AMB-HIO-33)."""


def rounded(value: int | Decimal, dtype: str) -> float:
    """Return the nearest element of fp16 or fp32, infinite past the largest; zeros keep their sign."""
    number = Decimal("-0" if isinstance(value, MinusZero) else value)
    sign = -1.0 if number.is_signed() else 1.0
    if not number or number.adjusted() < -_BEYOND:
        return math.copysign(0.0, sign)
    if number.adjusted() > _BEYOND:
        return math.copysign(math.inf, sign)
    return math.copysign(round_exact(Fraction(_SHORT.plus(number)), FLOATS[dtype], "nonfinite"), sign)


def bytes_of(value: int | Decimal | bool, dtype: str) -> bytes:
    """Return the bytes of the element in memory, little-endian; a bool is one byte."""
    if dtype in FLOATS:
        return np.array(rounded(value, dtype), FLOATS[dtype].storage.carrier).astype(f"<f{_SIZES[dtype]}").tobytes()
    return int(value).to_bytes(_SIZES[dtype], "little", signed=dtype.startswith("i"))


_SIZES = {"u8": 1, "u16": 2, "u32": 4, "i32": 4, "i64": 8, "fp16": 2, "fp32": 4, "bool": 1}

# The bytes that a pattern repeats (D5; AMB-HIO-05, AMB-HIO-06, AMB-HIO-35).


ELEMENTS = {"zero": "u8", **{f"fill_{dtype}": dtype for dtype in ("u8", "u16", "u32", "fp16", "fp32")}}
"""The dtype of the repeated element, by kind of pattern."""


def element_bytes(pattern: Pattern) -> bytes:
    """Return one element, little-endian; a zero byte for `zero`, whatever its value (HIO-D5-13 to -18, HIO-D5-21)."""
    value = 0 if pattern.value is None or pattern.pattern_kind == "zero" else pattern.value
    return bytes_of(value, ELEMENTS[pattern.pattern_kind])


# One frame: a JSON object in UTF-8, read without loss and written in one form (D3; AMB-HIO-19, AMB-HIO-33).


_MOST_DIGITS = 20
"""The digits of 2^64: a member cannot have a larger whole number."""
_EXPONENT_DIGITS = 8
"""The digits of a power of ten far beyond every element; a longer exponent counts as the first with more."""
_FARTHEST = 10**_EXPONENT_DIGITS
_DEEPEST = 64
"""The depth of objects and lists within each other."""


def read_frame(frame: str | bytes) -> dict[str, Any]:
    """Return the object of a frame; numbers are whole or `Decimal`, as written. Raises `InvalidFrame`."""
    try:
        text = frame if isinstance(frame, str) else frame.decode("utf-8")
        value = _DECODER.decode(text)
        if not isinstance(value, dict):
            raise InvalidFrame(f"a JSON {type(value).__name__}, expected an object")
        if text.count("{") + text.count("[") > _DEEPEST:
            _require_shallow(value)
        if "\\u" in text or not text.isascii():
            write_frame(value).encode("utf-8")  # lone surrogates, which no response could repeat
    except (ValueError, RecursionError) as error:
        raise InvalidFrame(f"not a JSON text in UTF-8: {error}") from None
    return value


def write_frame(value: Any) -> str:
    """Return the text of a message in one line; equal messages have equal text. A `Decimal` keeps all its digits.

    Raises `TypeError` or `ValueError` for values that JSON does not have.
    """
    try:
        return _encode(value)
    except TypeError:  # most messages have no number with a fraction
        return _exact(value)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def _exact(value: Any) -> str:
    """Encode as `_encode` does, with numbers as written."""
    match value:
        case dict():
            return f"{{{','.join(f'{_encode(name)}:{_exact(member)}' for name, member in value.items())}}}"
        case list() | tuple():
            return f"[{','.join(map(_exact, value))}]"
        case Decimal() if value.is_finite():
            return str(value)
    return _encode(value)


def _whole(text: str) -> int | Decimal:
    """Return a number without fraction and exponent; one longer than any member may have is kept as `Decimal`."""
    if text == "-0":
        return MinusZero()
    return int(text) if len(text) <= 2 * _MOST_DIGITS else Decimal(text)


def _number(text: str) -> int | Decimal:
    """Return a number with a fraction or exponent: an int where it is whole, but for negative zero (AMB-HIO-33)."""
    mantissa, _, exponent = text.lower().partition("e")
    if len(exponent.lstrip("+-0")) > _EXPONENT_DIGITS:
        far = "-" if exponent.startswith("-") else ""
        sign = "-" if mantissa.startswith("-") else ""
        text = f"{sign}1e{far}{_FARTHEST}" if mantissa.strip("-.0") else mantissa
    number = Decimal(text)
    if not number:
        return number if number.is_signed() else 0
    whole = 0 <= number.adjusted() < _MOST_DIGITS and number == number.to_integral_value()
    return int(number) if whole else number


def _require_shallow(value: dict[str, Any] | list[Any], most: int = _DEEPEST) -> None:
    """Require values nested no deeper than messages need. Raises `ValueError`."""
    if not most:
        raise ValueError(f"more than {_DEEPEST} objects and lists within each other")
    for member in value.values() if isinstance(value, dict) else value:
        if isinstance(member, dict | list):
            _require_shallow(member, most - 1)


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_number, **STRICT)

# The check of a value against the schema of the messages, with the member at fault and its clause (AMB-HIO-31).
#
# Every reference of the schema is replaced once by its target. An argument of a launch is checked against the
# definition of its kind, so that an error is one of that kind.


ARGUMENTS = {"tensor": "tensor_argument", "scalar": "scalar_argument"}
"""The definition of each kind of argument."""
Path: TypeAlias = Sequence[str | int]


@cache
def definitions() -> Mapping[str, Any]:
    """Return the definitions of the published schema, by name."""
    schema = json.loads(files(__package__).joinpath("messages.schema.json").read_text(encoding="utf-8"))
    table: Mapping[str, Any] = schema["$defs"]
    return table


def require_form(definition: str, value: Any, *, fast: bool = True) -> None:
    """Require the form of a definition; with `fast`, fastjsonschema checks it if it is installed.

    Raises `RequestFailed` with INVALID_MESSAGE, the path of the member, the expected form, and the clause.
    """
    _require(definition, value, (), fast)
    if definition == "kernel_launch":
        for place, argument in enumerate(value["args"]):
            kind = argument.get("arg_kind") if isinstance(argument, dict) else None
            if isinstance(kind, str) and kind in ARGUMENTS:
                _require(ARGUMENTS[kind], argument, ("args", place), fast)
            else:
                raise _strange(argument, place)


def _require(definition: str, value: Any, within: Path, fast: bool) -> None:
    """Require the form of a definition, without the arguments of a launch. Raises `RequestFailed`."""
    if fast and (sound := _fast_judge(definition)) is not None and sound(value):
        return
    judge = _judge(definition)
    if judge.is_valid(value):
        return
    from jsonschema.exceptions import best_match  # slow to import, and only faulty messages need it

    raise _failure(definition, best_match(judge.iter_errors(value)), within)


@cache
def _inlined(definition: str) -> Mapping[str, Any]:
    """Return a definition without references; no definition refers to itself.

    It is also without `allOf`: `require_agreement` checks that, and names the clause.
    """

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(item) for item in node]
        if not isinstance(node, dict):
            return node
        own = {key: inlined(member) for key, member in node.items() if key not in ("$ref", "allOf")}
        return {**inlined(definitions()[node["$ref"].removeprefix("#/$defs/")]), **own} if "$ref" in node else own

    whole: dict[str, Any] = inlined(definitions()[definition])
    if definition == "kernel_launch":
        del whole["properties"]["args"]["items"]
    return whole


@cache
def _judge(definition: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_inlined(definition))


@cache
def _fast_judge(definition: str) -> Callable[[Any], bool] | None:
    """Return the validator of the extra `host-io`, or None without it."""
    if find_spec("fastjsonschema") is None:
        return None
    import fastjsonschema

    # draft 7, the newest that it knows, says the same about every keyword that the schema uses
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **_inlined(definition)}
    judge = fastjsonschema.compile(schema, use_default=False)

    def sound(value: Any) -> bool:
        try:
            judge(value)
        except fastjsonschema.JsonSchemaValueException:
            return False
        return True

    return sound


def _strange(argument: Any, place: int) -> RequestFailed:
    """Return the failure for an argument of no kind."""
    if not isinstance(argument, dict):
        return _refusal("is no object", ("args", place), "HIO-D7-04")
    if "arg_kind" not in argument:
        return _refusal("is missing", ("args", place, "arg_kind"), "HIO-D7-49")
    kinds = " or ".join(ARGUMENTS)
    return _refusal(f"is {argument['arg_kind']!r:.100}, expected {kinds}", ("args", place, "arg_kind"), "HIO-D7-49")


def _failure(definition: str, error: Any, within: Path) -> RequestFailed:
    """Return the failure for an error of jsonschema; a missing or unknown member is itself at fault."""
    path, schema = list(error.absolute_path), _inlined(definition)
    if error.validator == "required":
        path.append(next(name for name in error.validator_value if name not in error.instance))
        return _refusal("is missing", [*within, *path], _clause(schema, path))
    if error.validator == "additionalProperties":
        unknown = min(set(error.instance) - set(error.schema["properties"]))
        barred = _part(schema, path)["x-other-members"]
        return _refusal("is no member of this", [*within, *path, unknown], barred)
    clause = _part(schema, path).get("x-other-values") or _clause(schema, path)
    return _refusal(error.message, [*within, *path], clause)


def _refusal(reason: str, path: Path, clause: str) -> RequestFailed:
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part:.100}" for part in path).lstrip(".")
    return RequestFailed(ErrorCode.INVALID_MESSAGE, reason, field, clause)


def _clause(schema: Mapping[str, Any], path: Path) -> str:
    """Return the first clause of the innermost part along a path that has one."""
    stated = [_part(schema, path[:depth]).get("x-clauses", ()) for depth in range(len(path) + 1)]
    return next((str(clauses[0]) for clauses in reversed(stated) if clauses), "")


def _part(schema: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """Return the definition of the value at a path; the contents of a free-form object are unknown."""
    for part in path:
        inner = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
        schema = {**inner.get("then", {}), **inner}
    return schema


# Members that must agree (D5, D7); where the schema refuses them too, by `allOf`, the failure names a clause.
#
# The endpoint checks what depends on it: ids that are in use, devices, places and addresses that exist.


ADDRESSES = 1 << 64
MOST_FREE_FORM = 4096
"""The characters of a grid or of a meta; anything longer is bulk data (AMB-HIO-43)."""


def require_agreement(request: MemoryWrite | MemoryRead | KernelLaunch) -> None:
    """Require members that agree. Raises `RequestFailed` with INVALID_MESSAGE, the member and its clause."""
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
            _require_small("grid", request.grid)
            _require_small("meta", request.meta)


def _require_source(write: MemoryWrite) -> None:
    """Require a pattern exactly where the source is one, with a value that fits and fills whole elements."""
    pattern = write.pattern
    if write.src_kind != "pattern":
        if pattern is not None:
            _refuse("pattern", f"is given with src_kind {write.src_kind}", "HIO-D5-10")
        return
    if pattern is None:
        _refuse("pattern", "is missing, with src_kind pattern", "HIO-D5-11")
    dtype = ELEMENTS[pattern.pattern_kind]
    if pattern.pattern_kind != "zero":
        if pattern.value is None:
            _refuse("pattern.value", f"is missing, with pattern_kind {pattern.pattern_kind}", "HIO-D5-20")
        _require_fit("pattern.value", pattern.value, dtype, "HIO-D5-19")
    if write.nbytes % _SIZES[dtype]:
        _refuse("nbytes", f"is {write.nbytes}, expected a multiple of {_SIZES[dtype]}", "HIO-D5-07")


def _require_deployment(kernel: KernelRef) -> None:
    """Require address and size of a deployed kernel, and no address of a built-in one (AMB-HIO-07, AMB-HIO-40)."""
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
        at = f"{field}.tensor_pa_map.shards[{place}]"
        _require_range(f"{at}.pa", shard.pa, shard.nbytes, "HIO-D7-22")
        _require_range(f"{at}.offset_bytes", shard.offset_bytes, shard.nbytes, "HIO-D7-24")


def _require_scalar(field: str, scalar: ScalarArgument) -> None:
    """Require a bool exactly for bool, and a number in the range of its dtype (AMB-HIO-14, AMB-HIO-69)."""
    value = scalar.value
    if isinstance(value, bool) != (scalar.dtype == "bool"):
        expected = "true or false" if scalar.dtype == "bool" else "a number"
        _refuse(field, f"is {value!r}, expected {expected}", "HIO-D7-27")
    if not isinstance(value, bool):
        _require_fit(field, value, scalar.dtype, "HIO-D7-27")


def _require_fit(field: str, value: int | Decimal, dtype: str, clause: str) -> None:
    """Require an integer in its dtype's range, or a number that a floating dtype can round (AMB-HIO-06)."""
    if dtype in FLOATS:
        if math.isinf(rounded(value, dtype)):
            _refuse(field, f"is {value}, which no finite {FLOATS[dtype].name} is nearest to", clause)
        return
    count = 1 << 8 * _SIZES[dtype]
    least = -count // 2 if dtype.startswith("i") else 0
    most = least + count - 1
    if not isinstance(value, int) or not least <= value <= most:
        _refuse(field, f"is {value}, expected a whole number from {least} to {most}", clause)


def _require_range(field: str, first: int, count: int, clause: str) -> None:
    if first + count > ADDRESSES:
        _refuse(field, f"is {first}, from where {count} bytes pass 2^64", clause)


def _require_small(field: str, members: Mapping[str, Any] | None) -> None:
    if members is not None and len(write_frame(members)) > MOST_FREE_FORM:
        _refuse(field, f"holds more than {MOST_FREE_FORM} characters, which counts as bulk data", "HIO-D7-33")


def _refuse(field: str, reason: str, clause: str) -> NoReturn:
    raise RequestFailed(ErrorCode.INVALID_MESSAGE, reason, field, clause)


# From a frame's object to a typed message and back (D3 to D7; AMB-HIO-18).


Request: TypeAlias = MemoryWrite | MemoryRead | KernelLaunch
MESSAGES: Mapping[str, type[Request]] = {form.msg_type: form for form in (MemoryWrite, MemoryRead, KernelLaunch)}
DEFINITIONS = {"MemoryWrite": "memory_write", "MemoryRead": "memory_read", "KernelLaunch": "kernel_launch"}
"""The part of the schema, by message."""


def request_of(value: Mapping[str, Any], *, fast: bool = True) -> Request:
    """Return the request of an object that has the form of one and whose members agree.

    Raises `RequestFailed` with INVALID_MESSAGE: the path of the member, the fault, the clause.
    """
    kind = value.get("msg_type")
    if not isinstance(kind, str) or kind not in MESSAGES:
        kinds = ", ".join(MESSAGES)
        actual = "is missing" if "msg_type" not in value else f"is {kind!r:.100}, expected one of {kinds}"
        raise RequestFailed(ErrorCode.INVALID_MESSAGE, actual, "msg_type", "HIO-D2-01")
    require_form(DEFINITIONS[kind], value, fast=fast)
    members = {name: member for name, member in value.items() if name != "msg_type" and member is not None}
    if kind == "MemoryWrite" and "pattern" in members:
        members["pattern"] = Pattern(**members["pattern"])
    if kind == "KernelLaunch":
        members["kernel_ref"] = KernelRef(**members["kernel_ref"])
        members["args"] = tuple(map(_argument, members["args"]))
    request = MESSAGES[kind](**members)
    require_agreement(request)
    return request


def _argument(value: Mapping[str, Any]) -> TensorArgument | ScalarArgument:
    if value["arg_kind"] == "scalar":
        return ScalarArgument(value["dtype"], value["value"])
    shards = tuple(TensorShard(**shard) for shard in value["tensor_pa_map"]["shards"])
    return TensorArgument(TensorPAMap(shards))


def value_of(message: Any) -> dict[str, Any]:
    """Return the object of a message, for a frame; optional members with their default are left out."""
    kind = {name: getattr(message, name) for name in ("msg_type", "arg_kind") if hasattr(message, name)}
    members = ((field, getattr(message, field.name)) for field in fields(message))
    return kind | {field.name: _plain(member) for field, member in members if member != field.default}


def _plain(member: Any) -> Any:
    if is_dataclass(member):
        return value_of(member)
    return [_plain(item) for item in member] if isinstance(member, tuple) else member
